"""How full a worker's context is.

Source: 4-observability §4 (``context_pressure``); seed 003 §1.
"""

from typing import Final

from subagents.domain.alerts.detectors.context_windows import window_of
from subagents.domain.alerts.detectors.detector_state import Watch
from subagents.domain.run.alert import Alert, AlertKind, AlertRules
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import ContextUse

COMPACTS_SOON_PERCENT: Final = 75
SLACK_PERCENT: Final = 5
"""So far below a threshold it has to fall before that is due again: it was compacted."""
PERCENT_MAX: Final = 999


def look(watch: Watch, use: ContextUse, rules: AlertRules) -> tuple[Watch, tuple[Alert, ...]]:
    """Tell the highest threshold that is newly reached; those below it are told with it."""
    window = use.window or window_of(use.model)
    tokens = max(use.tokens, 0)
    if window is None or window <= 0:
        return replace(watch, context_tokens=tokens, context_percent=None), ()
    percent = min(tokens * 100 // window, PERCENT_MAX)
    told = max(
        (
            each
            for each in rules.context_percent
            if each <= watch.context_told and percent > each - SLACK_PERCENT
        ),
        default=0,
    )
    number = watch.context_round + (told < watch.context_told)
    reached = max((each for each in rules.context_percent if each <= percent), default=0)
    watch = replace(
        watch,
        context_tokens=tokens,
        context_percent=percent,
        context_told=max(told, reached),
        context_round=number,
    )
    if reached <= told:
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
