"""How full a worker's context is.

A window that a runtime did not say is looked up by the beginning of the model's name, as it is
generally known in 2026. A model that is in no row has an unknown window, which causes no alert.
"""

import re
from typing import Final

from subagents.domain.alerts.detectors.detector_state import Watch
from subagents.domain.run.alert import Alert, AlertKind, AlertRules
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import ContextUse

COMPACTS_SOON_PERCENT: Final = 75
SLACK_PERCENT: Final = 5
"""How far below a threshold it has to fall before that is due again: it was compacted."""
PERCENT_MAX: Final = 999

WINDOWS: Final = {
    "claude-": 200_000,
    "claude-2.0": 100_000,
    "claude-instant": 100_000,
    "gpt-3.5": 16_385,
    "gpt-4": 8_192,
    "gpt-4-32k": 32_768,
    "gpt-4-turbo": 128_000,
    "gpt-4-1106": 128_000,
    "gpt-4-0125": 128_000,
    "gpt-4o": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-4.5": 128_000,
    "chatgpt-4o": 128_000,
    "gpt-5": 400_000,
    "gpt-5-chat": 128_000,
    "gpt-oss": 131_072,
    "codex-mini": 200_000,
    "o1": 200_000,
    "o1-mini": 128_000,
    "o1-preview": 128_000,
    "o3": 200_000,
    "o4-mini": 200_000,
    "gemini-": 1_048_576,
    "gemini-1.5-pro": 2_097_152,
    "gemma-2": 8_192,
    "gemma-3": 131_072,
    "grok-3": 131_072,
    "grok-4": 256_000,
    "grok-code": 256_000,
    "deepseek-": 131_072,
    "qwen3-coder": 262_144,
    "qwen3-max": 262_144,
    "kimi-k2": 262_144,
    "glm-4.5": 131_072,
    "glm-4.6": 202_752,
    "mistral-large": 131_072,
    "mistral-medium": 131_072,
    "devstral": 131_072,
    "codestral": 262_144,
    "llama-3.1": 131_072,
    "llama-3.3": 131_072,
    "llama-4-scout": 10_485_760,
    "llama-4-maverick": 1_048_576,
}
"""The longest row that a name begins with counts."""
_LONGEST: Final = tuple(sorted(WINDOWS, key=len, reverse=True))
_MILLION: Final = re.compile(r"\[1m\]$|(?<![a-z0-9])1m(?![a-z0-9])", re.ASCII)
"""How Claude Code marks models whose larger window is switched on."""


def look(watch: Watch, use: ContextUse, rules: AlertRules) -> tuple[Watch, tuple[Alert, ...]]:
    """Tell the highest threshold that is newly reached; those below it are reported with it."""
    # What the runtime says beats the table: the same model has other windows on other plans.
    window = use.window or window_of(use.model)
    tokens = max(use.tokens, 0)
    if window is None or window <= 0:
        return replace(watch, context_tokens=tokens, context_percent=None), ()
    percent = min(tokens * 100 // window, PERCENT_MAX)
    announced = max(
        (
            each
            for each in rules.context_percent
            if each <= watch.context_told and percent > each - SLACK_PERCENT
        ),
        default=0,
    )
    number = watch.context_round + (announced < watch.context_told)
    reached = max((each for each in rules.context_percent if each <= percent), default=0)
    watch = replace(
        watch,
        context_tokens=tokens,
        context_percent=percent,
        context_told=max(announced, reached),
        context_round=number,
    )
    if reached <= announced:
        return watch, ()
    again = "" if number == 1 else f".{number}"
    soon = " — may compact soon" if percent >= COMPACTS_SOON_PERCENT else ""
    return watch, (
        Alert(
            kind=AlertKind.CONTEXT_PRESSURE,
            text=f"🧠 Context at {percent}%{soon}",
            key=f"{AlertKind.CONTEXT_PRESSURE}:{watch.attempt}:{reached}{again}",
            fields={"percent": percent, "tokens": tokens},
        ),
    )


def window_of(model: str | None) -> int | None:
    """The window of a model, in tokens; a provider before the name does not matter."""
    if model is None:
        return None
    whole = model[:200].lower().rpartition("/")[2]
    for name in (whole, whole.partition(":")[2], whole.rpartition("anthropic.")[2]):
        if name.startswith("claude-") and _MILLION.search(name):
            return 1_000_000
        found = next((WINDOWS[row] for row in _LONGEST if name.startswith(row)), None)
        if found is not None:
            return found
    return None
