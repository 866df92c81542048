"""What an ACP agent tells of its turn (``session/update``), decoded; pure.

Chunks of a message are joined: a line of a transcript is a message, not the tokens it came in. A
tool call is told of in several updates, each of which may know more than the one before: its name
is where each agent puts it (``_name``), and it is said to have begun once its input is there.

Nothing here raises, whatever the update holds: what is of the wrong type is taken for absent, and
an update nobody knows is said so by its name, once a turn.
"""

import re
from collections.abc import Mapping
from typing import Final

from subagents.domain.run.run import Usage
from subagents.domain.run.signals import Signal, ToolSeen, UsageSeen
from subagents.domain.run.values import Value, replace
from subagents.domain.run.worker_output import (
    ApiError,
    ContextUse,
    LineType,
    OutputItem,
)
from subagents.runtimes.acp.acp_calls import (
    NAME_CHARS_MAX,
    Call,
    block_text,
    given_to,
    has_input,
    learned,
    named,
    of,
    text_of,
)
from subagents.runtimes.output.terminal_text import plain, shortened
from subagents.runtimes.output.tool_lines import COUNT_MAX, tool_line, tool_use

BUFFER_CHARS_MAX: Final = 7_000
"""Of a message that is not said yet; then it is said up to its last line end."""
MESSAGE_CHARS_MAX: Final = 512 * 1024
"""Kept of the last message, which is the result; its end counts."""
CALLS_MAX: Final = 500
"""Tool calls that began and did not end; agents that never say how a call ended exist."""

_QUIET: Final = frozenset(
    {
        *("available_commands_update", "config_option_update", "current_mode_update"),
        *("session_info_update", "user_message_chunk"),
    }
)
"""Known, and nothing to anybody who reads of the work."""
_ENDED: Final = frozenset({"completed", "failed", "cancelled"})
_THOUGHT: Final = "thought"
_MESSAGE: Final = "message"


class Stream(Value, frozen=True):
    """What was told of the turn so far."""

    speaking: str = ""
    """Which kind of message the next chunk belongs to; empty = none."""
    message_id: str | None = None
    unsaid: str = ""
    """What came of the present message or thought and was not said yet."""
    message: str = ""
    """The present message; what comes after a tool call is another one."""
    before: str = ""
    """The newest message before it that was not empty."""
    calls: dict[str, Call] = {}
    usage: Usage = Usage()
    is_broken: bool = False
    """The agent said that its turn failed; Codex ends it as if it were well."""
    status: int | None = None
    """The provider's HTTP status in that."""
    unknown: tuple[str, ...] = ()
    """Names of events that were said to be unknown."""

    @property
    def last_words(self) -> str:
        """The last message of the turn: its result."""
        return (self.message if self.message.strip() else self.before).strip()


class Told(Value, frozen=True):
    """What one update came to."""

    stream: Stream
    output: tuple[OutputItem, ...] = ()
    signals: tuple[Signal, ...] = ()


def hear(
    stream: Stream, update: Mapping[str, object], *, now_ms: int | None, sums_requests: bool = False
) -> Told:
    """Take one ``update`` of a ``session/update``.

    Args:
        stream: Before it.
        update: As decoded from JSON.
        now_ms: About when it came; None = unknown, then no duration is told.
        sums_requests: Whether ``_meta.usage`` of message chunks is to be added up.
    """
    kind = text_of(update.get("sessionUpdate"))
    match kind:
        case "agent_message_chunk" | "agent_thought_chunk":
            speaking = _MESSAGE if kind == "agent_message_chunk" else _THOUGHT
            told = _chunk(stream, update, speaking)
            return _with_request_usage(told, update) if sums_requests else told
        case "tool_call" | "tool_call_update":
            return _call(stream, update, now_ms=now_ms, is_first=kind == "tool_call")
        case "plan":
            output = flush(stream)
            return replace(output, output=(*output.output, *_plan(update)))
        case "usage_update":
            return _usage(stream, update)
        case "session_info_update" if isinstance(codex := of(update.get("_meta"), "codex"), dict):
            return _codex(stream, codex)
        case _ if kind in _QUIET:
            return Told(stream=stream, output=(OutputItem(type=LineType.SYSTEM),))
        case _:
            return unknown(stream, f"session/update {kind}".strip())


def flush(stream: Stream) -> Told:
    """Say what is left of the present message or thought; the message itself goes on."""
    text = stream.unsaid.strip("\n")
    rest = replace(stream, unsaid="")
    if not text.strip():
        return Told(stream=rest)
    kind = LineType.THINKING if stream.speaking == _THOUGHT else LineType.TEXT
    return Told(stream=rest, output=(OutputItem(type=kind, text=shortened(plain(text))),))


def unknown(stream: Stream, name: str) -> Told:
    """Say once a turn that an event of this name came."""
    name = plain(" ".join(name.split()))[:NAME_CHARS_MAX]
    if name in stream.unknown or len(stream.unknown) >= CALLS_MAX:
        return Told(stream=stream, output=(OutputItem(type=LineType.SYSTEM),))
    output = OutputItem(type=LineType.SYSTEM, text=f"unknown event: {name}")
    return Told(stream=replace(stream, unknown=(*stream.unknown, name)), output=(output,))


def learn(stream: Stream, update: Mapping[str, object], *, now_ms: int | None) -> Told:
    """What a question for permission tells of its tool call: some agents tell of it only there."""
    asked = {name: value for name, value in update.items() if name not in {"status", "content"}}
    return _call(stream, asked, now_ms=now_ms, is_first=False)


def call_of(stream: Stream, update: Mapping[str, object]) -> Call:
    """The tool call that an update is about, with all that is known of it."""
    known = stream.calls.get(text_of(update.get("toolCallId")), Call())
    return learned(known, update, is_first=False)


def add(usage: Usage, more: Usage) -> Usage:
    """The sum; what neither knows stays unknown."""
    return Usage(
        tokens_in=_sum(usage.tokens_in, more.tokens_in),
        tokens_out=_sum(usage.tokens_out, more.tokens_out),
        cost_usd=usage.cost_usd if more.cost_usd is None else more.cost_usd,
    )


def tokens_of(found: object) -> Usage | None:
    """Tokens of a turn or a request, as agents write them; None when nothing useful is there.

    ``inputTokens`` counts what came from the cache with some and without it with others: the total
    tells which.
    """
    if not isinstance(found, dict):
        return None
    tokens_in = count(found.get("inputTokens", found.get("input_tokens")))
    tokens_out = count(found.get("outputTokens", found.get("output_tokens")))
    if tokens_in is None or tokens_out is None:
        return None
    cached = (count(found.get("cachedReadTokens")) or 0) + (
        count(found.get("cachedWriteTokens")) or 0
    )
    if (count(found.get("totalTokens")) or 0) >= tokens_in + cached + tokens_out:
        tokens_in += cached
    return Usage(tokens_in=tokens_in, tokens_out=tokens_out)


def count(value: object) -> int | None:
    """A whole number that counts something; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value <= COUNT_MAX else None


def _chunk(stream: Stream, update: Mapping[str, object], speaking: str) -> Told:
    message_id = text_of(update.get("messageId")) or None
    text = block_text(update.get("content"))
    output: tuple[OutputItem, ...] = ()
    is_other = speaking == _MESSAGE and message_id != stream.message_id
    if speaking != stream.speaking or is_other:
        output, stream = _other_message(stream, speaking, message_id)
    unsaid = stream.unsaid + text
    stream = replace(stream, unsaid=unsaid)
    if speaking == _MESSAGE:
        stream = replace(stream, message=(stream.message + text)[-MESSAGE_CHARS_MAX:])
    if len(unsaid) > BUFFER_CHARS_MAX:
        at = unsaid.rfind("\n") + 1 or len(unsaid)
        told = flush(replace(stream, unsaid=unsaid[:at]))
        return Told(stream=replace(told.stream, unsaid=unsaid[at:]), output=(*output, *told.output))
    # Nothing to write down yet, and the detectors see that the agent is at it.
    kind = LineType.TEXT if speaking == _MESSAGE else LineType.THINKING
    return Told(stream=stream, output=output or (OutputItem(type=kind),))


def _other_message(
    stream: Stream, speaking: str, message_id: str | None
) -> tuple[tuple[OutputItem, ...], Stream]:
    """A thought between two chunks does not end a message; another id does."""
    told = flush(stream)
    ends = speaking == _MESSAGE and message_id != stream.message_id
    stream = told.stream if not ends else _closed(told.stream)
    kept = message_id if speaking == _MESSAGE else stream.message_id
    return told.output, replace(stream, speaking=speaking, message_id=kept)


def _closed(stream: Stream) -> Stream:
    before = stream.message if stream.message.strip() else stream.before
    return replace(stream, message="", before=before)


def _with_request_usage(told: Told, update: Mapping[str, object]) -> Told:
    found = tokens_of(of(update.get("_meta"), "usage"))
    if found is None:
        return told
    usage = add(told.stream.usage, found)
    return replace(
        told,
        stream=replace(told.stream, usage=usage),
        signals=(*told.signals, UsageSeen(key="", usage=usage)),
    )


def _call(
    stream: Stream, update: Mapping[str, object], *, now_ms: int | None, is_first: bool
) -> Told:
    call_id = text_of(update.get("toolCallId"))
    told = flush(stream)
    stream = replace(_closed(told.stream), speaking="", message_id=None)
    known = stream.calls.get(call_id)
    call = learned(known or Call(began_ms=now_ms), update, is_first=is_first)
    if text_of(update.get("status")) in _ENDED:
        return _ended(told, stream, call_id, call, update, now_ms=now_ms)
    output = told.output
    if not call.is_told and has_input(call, update):
        call = replace(call, is_told=True)
        began = tool_use(named(call), given=given_to(call), call_id=call_id, is_end=False)
        output = (*output, OutputItem(type=LineType.TOOL, text=tool_line(began), tool=began))
    calls = {**stream.calls, call_id: call}
    while len(calls) > CALLS_MAX:
        del calls[next(iter(calls))]
    return Told(
        stream=replace(stream, calls=calls), output=output or (OutputItem(type=LineType.TOOL),)
    )


def _ended(
    told: Told,
    stream: Stream,
    call_id: str,
    call: Call,
    update: Mapping[str, object],
    *,
    now_ms: int | None,
) -> Told:
    calls = {each: stream.calls[each] for each in stream.calls if each != call_id}
    timed = now_ms is not None and call.began_ms is not None and call_id in stream.calls
    tool = tool_use(
        named(call),
        given=given_to(call),
        returned=call.output,
        call_id=call_id,
        exit_code=call.exit_code,
        is_error=text_of(update.get("status")) == "failed",
        duration_ms=max(now_ms - call.began_ms, 0)
        if timed and now_ms is not None and call.began_ms is not None
        else None,
    )
    return Told(
        stream=replace(stream, calls=calls),
        output=(*told.output, OutputItem(type=LineType.TOOL, text=tool_line(tool), tool=tool)),
        signals=(ToolSeen(key="", name=tool.name),),
    )


def _codex(stream: Stream, told: Mapping[str, object]) -> Told:
    """What codex-acp says of its thread: a provider that refuses, and the end that comes of it."""
    if of(told.get("threadStatus"), "type") == "systemError":
        return Told(
            stream=replace(stream, is_broken=True), output=(OutputItem(type=LineType.SYSTEM),)
        )
    error = told.get("error")
    message = text_of(of(error, "message"))
    if not message:
        return Told(stream=stream, output=(OutputItem(type=LineType.SYSTEM),))
    details = text_of(of(error, "additionalDetails"))
    text = f"{message}: {details}" if details else message
    info = of(error, "codexErrorInfo")
    kinds = info.values() if isinstance(info, dict) else ()
    found = (count(of(each, "httpStatusCode")) for each in kinds)
    status = next((each for each in found if each), None)
    retry = re.search(r"\b(\d+/\d+)\b", message)
    api_error = ApiError(message=text, retry=retry[1] if retry else None, status=status)
    output = OutputItem(type=LineType.ERROR, text=shortened(plain(text)), api_error=api_error)
    return Told(stream=replace(stream, status=status or stream.status), output=(output,))


def _plan(update: Mapping[str, object]) -> tuple[OutputItem, ...]:
    tool = tool_use("plan", given={"plan": update.get("entries")})
    return (OutputItem(type=LineType.TOOL, text=tool_line(tool), tool=tool),)


def _usage(stream: Stream, update: Mapping[str, object]) -> Told:
    used, size = count(update.get("used")), count(update.get("size"))
    output: tuple[OutputItem, ...] = ()
    if used:
        output = (
            OutputItem(type=LineType.SYSTEM, context=ContextUse(tokens=used, window=size or None)),
        )
    cost = of(update.get("cost"), "amount")
    is_dollars = of(update.get("cost"), "currency") in {None, "USD"}
    if not isinstance(cost, (int, float)) or isinstance(cost, bool) or not is_dollars:
        return Told(stream=stream, output=output)
    if not 0 < cost < 1e12:  # 0 is what is said of models without a price
        return Told(stream=stream, output=output)
    usage = replace(stream.usage, cost_usd=float(cost))
    signals = (UsageSeen(key="", usage=usage),)
    return Told(stream=replace(stream, usage=usage), output=output, signals=signals)


def _sum(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return one + other
