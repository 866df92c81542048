"""Claude Code's stream-json, one event per line: read without trust, and what its parts mean.

Pure. Whatever stands in a line, of whatever type, nothing here raises: a field of the wrong type
is taken for absent.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

import msgspec

from subagents.domain.run.usage import Usage
from subagents.domain.run.values import Value
from subagents.domain.run.worker_output import ApiError, ContextUse
from subagents.extensions.conversation.json_fields import count_at, table_at, text_at, texts_at
from subagents.runtimes.output.counts import COUNT_MAX
from subagents.runtimes.output.worker_events import without_nul

Event: TypeAlias = Mapping[str, object]
"""A JSON object of the stream."""

COST_MAX: Final = 1e12
KNOWN_COST: Final = frozenset({"list", "managed"})
"""Values of ``costBasis`` that stand for a price list; ``unknown`` is a guess."""
SYNTHETIC: Final = "<synthetic>"
"""The "model" of messages that the program itself wrote."""
LIMITS: Final = frozenset({429, 529})
LIMIT_WORDS: Final = frozenset({"rate_limit", "overloaded"})
ERROR_CHARS_MAX: Final = 1_000
_EXIT: Final = re.compile(r"\AExit code (\d{1,9})\b\n?")
_DECODER: Final = msgspec.json.Decoder()


def decode(line: bytes) -> dict[str, object] | None:
    """The event in one line; None = it is no JSON object."""
    try:
        found = _DECODER.decode(without_nul(line))
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def at_ms(event: Event) -> int | None:
    """When the program says that it was, in milliseconds since 1970."""
    try:
        return int(datetime.fromisoformat(text_at(event, "timestamp")).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None


# -- tools ------------------------------------------------------------------------------------


class ToolResult(NamedTuple):
    """How a tool call ended, by its ``tool_result``."""

    output: str
    is_error: bool
    exit_code: int | None
    """The exit code of a shell command that ran to its end; None with any other."""


def tool_result(block: Event, event: Event, *, is_shell: bool) -> ToolResult:
    """Read one ``tool_result``.

    Args:
        block: The result's.
        event: The ``user`` event it stands in, with what the tool itself returned.
        is_shell: Whether its call ran a command.
    """
    output = _shown(block.get("content"))
    is_error = block.get("is_error") is True
    code = None
    if is_shell:
        prefix = _EXIT.match(output)
        if is_error and prefix is not None:
            code, output = int(prefix[1]), output[prefix.end() :]
        elif not is_error:
            returned = table_at(event, "tool_use_result")
            is_whole = "stdout" in returned and not (
                returned.get("interrupted")
                or returned.get("backgroundTaskId")
                or returned.get("returnCodeInterpretation")
            )
            code = 0 if is_whole else None
    return ToolResult(output, is_error, code)


def _shown(content: object) -> str:
    """The text of a result; what is no text is named."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    shown = (
        text_at(each, "text") or f"[{text_at(each, 'type') or 'block'}]"
        for each in blocks
        if isinstance(each, dict)
    )
    return "\n".join(shown)


# -- usage ------------------------------------------------------------------------------------


class Spending(Value, frozen=True):
    """What the process used so far, by its messages; a lower bound until the result."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cache_read: int = 0
    tokens_cache_write: int = 0
    open: dict[str, tuple[str | int, ...]] = {}
    """An agent ("" = itself) → its newest message, and what is counted of it already: tokens in
    and out, read from the cache and written to it (the last two not where 0.1 wrote it down)."""

    @property
    def usage(self) -> Usage:
        return Usage(**{name: getattr(self, name) for name in _COUNTED})


_COUNTED: Final = ("tokens_in", "tokens_out", "tokens_cache_read", "tokens_cache_write")


def spent(known: Spending, agent: str, message: Event) -> Spending:
    """With one more ``assistant`` event; the blocks of a message repeat its usage."""
    usage, name = table_at(message, "usage"), text_at(message, "id")
    keys = ("output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    seen = (_input(usage), *(count_at(usage, key) or 0 for key in keys))
    before = known.open.get(agent, ("",))
    counted = [int(each) for each in before[1:]] if before[0] == name else []
    counted += [0] * (len(_COUNTED) - len(counted))
    now = list(map(max, seen, counted))
    more = zip(_COUNTED, now, counted, strict=True)
    return Spending(
        **{field: getattr(known, field) + new - old for field, new, old in more},
        open={**known.open, agent: (name, *now)},
    )


def context_of(message: Event) -> ContextUse | None:
    """How full the window was when the model answered."""
    usage = table_at(message, "usage")
    tokens = _input(usage) + (count_at(usage, "output_tokens") or 0)
    model = text_at(message, "model")
    if not tokens or model == SYNTHETIC:
        return None
    return ContextUse(tokens=tokens, model=model or None)


def total(models: Event) -> Usage | None:
    """``modelUsage``: of all models together; None when it holds nothing.

    The cost is known only when every model's is (``costBasis``): one guess makes it all a guess.
    """
    each = [found for found in models.values() if isinstance(found, dict)]
    if not each:
        return None
    plain, read, written, tokens_out = (
        sum(count_at(one, key) or 0 for one in each)
        for key in (
            "inputTokens",
            "cacheReadInputTokens",
            "cacheCreationInputTokens",
            "outputTokens",
        )
    )
    return Usage(
        tokens_in=min(plain + read + written, COUNT_MAX),
        tokens_out=min(tokens_out, COUNT_MAX),
        tokens_cache_read=min(read, COUNT_MAX),
        tokens_cache_write=min(written, COUNT_MAX),
        cost_usd=_cost(each),
    )


def _cost(models: list[dict[str, object]]) -> float | None:
    cost = 0.0
    for each in models:
        found = each.get("costUSD")
        is_idle = not (count_at(each, "inputTokens") or count_at(each, "outputTokens"))
        if is_idle and not found:
            continue
        if text_at(each, "costBasis") not in KNOWN_COST:
            return None
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            return None
        if not 0 <= found <= COST_MAX:
            return None
        cost += found
    return cost


def _input(usage: Event) -> int:
    """All that the model read, also what came from a cache."""
    keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(count_at(usage, key) or 0 for key in keys)


# -- what goes wrong --------------------------------------------------------------------------


def retry_of(event: Event) -> ApiError:
    """``system/api_retry``: the provider refused, and the program will ask again."""
    status = count_at(event, "error_status")
    delay_ms = count_at(event, "retry_delay_ms")
    reason = text_at(event, "error").replace("_", " ") or "no answer"
    tries = (count_at(event, "attempt"), count_at(event, "max_retries"))
    named = reason if status is None else f"{status} {reason}"
    wait = "" if delay_ms is None else f", again in {delay_ms / 1000:.1f} s"
    return ApiError(
        message=f"{named}{wait}"[:ERROR_CHARS_MAX],
        retry=None if None in tries else f"{tries[0]}/{tries[1]}",
        status=status,
        retry_after_ms=delay_ms,
    )


def error_of(event: Event, *, section: str) -> str | None:
    """Why a ``result`` is no good one; None = it is good.

    Args:
        event: The result.
        section: Where its limits are set, for the way out: ``runtime_options``.
    """
    kind = text_at(event, "subtype")
    if kind == "success":
        is_error = event.get("is_error") is True
        return (text_at(event, "result") or "an API error")[:ERROR_CHARS_MAX] if is_error else None
    if text_at(event, "terminal_reason").startswith("aborted"):
        return "the turn was interrupted"
    errors = [each for each in texts_at(event, "errors") if not each.startswith("[ede_")]
    reasons = "; ".join(errors)[:ERROR_CHARS_MAX]
    match kind:
        case "error_max_turns":
            return f"{reasons or 'reached the maximum number of turns'} ({section}.max_turns)"
        case "error_max_budget_usd":
            return f"{reasons or 'reached the maximum budget'} ({section}.max_budget_usd)"
        case _:
            return reasons or f"the turn ended with {kind or 'no reason'}"


def is_limit(event: Event, *, reason: str) -> bool:
    """Whether a ``result`` is an error because the provider takes no more for now.

    Args:
        event: The result.
        reason: ``error`` of the program's last own message.
    """
    if event.get("is_error") is not True:
        return False
    return count_at(event, "api_error_status") in LIMITS or reason in LIMIT_WORDS
