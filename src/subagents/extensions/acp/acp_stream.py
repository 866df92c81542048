"""What an ACP agent reports of its turn (``session/update``), decoded; pure.

Chunks of a message are joined: a line of a transcript is a message, not the tokens it came in. A
tool call comes in several updates, each of which may know more than the one before: its name is
where each agent puts it (``_name``), and a reader is shown it once its input is there.

Nothing here raises, whatever the update holds: what is of the wrong type is taken for absent, and
an unknown update is named to the reader, once a turn.
"""

import operator
import re
from collections.abc import Mapping
from typing import Final

from msgspec import field

from subagents.domain.run.signals import Signal, ToolSeen, UsageSeen
from subagents.domain.run.usage import Usage, merged
from subagents.domain.run.values import Value, replace
from subagents.domain.run.worker_output import (
    ApiError,
    ContextUse,
    LineType,
    OutputItem,
)
from subagents.extensions.conversation.dialect import SERVER
from subagents.extensions.conversation.json_fields import count_at, text_at, value_at
from subagents.runtimes.output.counts import as_count
from subagents.runtimes.output.output_items import ALIVE, shown, system_item, tool_item
from subagents.runtimes.output.terminal_text import plain
from subagents.runtimes.output.tool_lines import tool_use
from subagents.text import cut_middle

BUFFER_CHARS_MAX: Final = 7_000
"""How much of a message is held back until it is whole; a longer one is given out up to its last
line end."""
MESSAGE_CHARS_MAX: Final = 512 * 1024
"""Kept of the last message, which is the result; its end counts."""
OUTPUT_CHARS_MAX: Final = 64_000
"""Kept of a tool's output: its beginning and its end."""
NAME_CHARS_MAX: Final = 120
CALLS_MAX: Final = 500
"""Tool calls that began and did not end; some agents never report the end of a call."""

_QUIET: Final = frozenset(
    {
        *("available_commands_update", "config_option_update", "current_mode_update"),
        *("session_info_update", "user_message_chunk"),
    }
)
"""Known, and nothing to anybody who reads of the work."""
_ENDED: Final = frozenset({"completed", "failed", "cancelled"})
_WORD: Final = re.compile(r"[A-Za-z_][\w.-]{0,119}\Z")
_GEMINI_ID: Final = re.compile(r"([A-Za-z_][\w.-]*?)(?:__fc_|__call_|-\d{9,})")
RESUMED: Final = "Retry finished, resuming."
"""What pi-acp says when the provider answers again, and when it gives up."""
_NOTICES: Final = re.compile(
    r"Info: (Disabled tools: |Unknown tool name in the tool |.* Retrying\.\.\.\Z)"
    rf"|Retrying \(attempt \d+/\d+, |{re.escape(RESUMED)}\Z"
)
"""What Copilot and pi-acp say of scopes and of the provider, as if it were words of their model."""
_TITLED: Final = re.compile(rf"(apply_patch|{SERVER}__\w+)(?:: |\Z)")
"""Cline's titles of tools that it gives no kind but ``other``; names it gives to none."""
_THOUGHT: Final = "thought"
_MESSAGE: Final = "message"


class AcpCall(Value, frozen=True):
    """A tool call that did not end yet."""

    name: str = ""
    kind: str = ""
    title: str = ""
    given: object = None
    output: str = ""
    path: str | None = None
    exit_code: object = None
    is_reported: bool = field(default=False, name="isTold")
    """A reader was shown that it began."""
    began_ms: int | None = None


class AcpStream(Value, frozen=True):
    """What the updates of the turn came to so far; kept in the attempt's checkpoint."""

    speaking: str = ""
    """Which kind of message the next chunk belongs to; empty = none."""
    message_id: str | None = None
    buffer: str = field(default="", name="unsaid")
    """What came of the present message or thought and is not in the output yet."""
    message: str = ""
    """The present message; what comes after a tool call is another one."""
    before: str = ""
    """The newest message before it that was not empty."""
    calls: dict[str, AcpCall] = {}
    usage: Usage = Usage()
    cost_before: float = 0
    """What the session had cost before the turn: some agents report that of the whole session."""
    is_broken: bool = False
    """The agent reported that its turn failed; Codex ends it as if it were well."""
    status: int | None = None
    """The provider's HTTP status in that."""
    unknown: tuple[str, ...] = ()
    """Names of unknown events that a reader was shown."""

    @property
    def last_words(self) -> str:
        """The last message of the turn: its result."""
        return (self.message if self.message.strip() else self.before).strip()


class StreamStep(Value, frozen=True):
    """What one update came to."""

    stream: AcpStream
    output: tuple[OutputItem, ...] = ()
    signals: tuple[Signal, ...] = ()


def stream_step(
    stream: AcpStream,
    update: Mapping[str, object],
    *,
    now_ms: int | None,
    sums_requests: bool = False,
) -> StreamStep:
    """Take one ``update`` of a ``session/update``.

    Args:
        stream: Before it.
        update: As decoded from JSON.
        now_ms: About when it came; None = unknown, then no duration is given.
        sums_requests: Whether ``_meta.usage`` of message chunks is to be added up.
    """
    kind = text_at(update, "sessionUpdate")
    match kind:
        case "agent_message_chunk" if _is_notice(update):
            return _notice(stream, block_text(value_at(update, "content")))
        case "notice":
            parts = (text_at(update, "title"), text_at(update, "description"))
            return _notice(stream, ": ".join(filter(None, parts)))
        case "agent_message_chunk" | "agent_thought_chunk":
            speaking = _MESSAGE if kind == "agent_message_chunk" else _THOUGHT
            step = _chunk(stream, update, speaking)
            return _with_request_usage(step, update) if sums_requests else step
        case "tool_call" | "tool_call_update":
            return _call(stream, update, now_ms=now_ms, is_first=kind == "tool_call")
        case "plan":
            output = flush(stream)
            return replace(output, output=(*output.output, *_plan(update)))
        case "usage_update":
            return _usage(stream, update)
        case "session_info_update" if isinstance(
            codex := value_at(value_at(update, "_meta"), "codex"), dict
        ):
            return _codex(stream, codex)
        case _ if kind in _QUIET:
            return StreamStep(stream=stream, output=(ALIVE,))
        case _:
            return unknown(stream, f"session/update {kind}".strip())


def flush(stream: AcpStream) -> StreamStep:
    """Give out what is left of the present message or thought; the message itself continues."""
    text = stream.buffer.strip("\n")
    rest = replace(stream, buffer="")
    if not text.strip():
        return StreamStep(stream=rest)
    kind = LineType.THINKING if stream.speaking == _THOUGHT else LineType.TEXT
    return StreamStep(stream=rest, output=(OutputItem(type=kind, text=shown(text)),))


def unknown(stream: AcpStream, name: str) -> StreamStep:
    """Name an unknown event to the reader, once a turn."""
    name = plain(" ".join(name.split()))[:NAME_CHARS_MAX]
    if name in stream.unknown or len(stream.unknown) >= CALLS_MAX:
        return StreamStep(stream=stream, output=(ALIVE,))
    output = OutputItem(type=LineType.SYSTEM, text=f"unknown event: {name}")
    return StreamStep(stream=replace(stream, unknown=(*stream.unknown, name)), output=(output,))


def learn(stream: AcpStream, update: Mapping[str, object], *, now_ms: int | None) -> StreamStep:
    """What a question for permission holds of its tool call: some agents describe it only there."""
    asked = {name: value for name, value in update.items() if name not in {"status", "content"}}
    return _call(stream, asked, now_ms=now_ms, is_first=False)


def call_of(stream: AcpStream, update: Mapping[str, object]) -> AcpCall:
    """The tool call that an update is about, with all that is known of it."""
    known = stream.calls.get(text_at(update, "toolCallId"), AcpCall())
    return updated_call(known, update, is_first=False)


def add(usage: Usage, more: Usage) -> Usage:
    """The sum; what neither knows stays unknown."""
    cost_usd = usage.cost_usd if more.cost_usd is None else more.cost_usd
    return replace(merged(usage, more, operator.add), cost_usd=cost_usd)


def tokens_of(found: object) -> Usage | None:
    """TokenSource of a turn or a request, as agents write them; None when nothing useful is there.

    ``inputTokens`` counts what came from the cache with some and without it with others: the total
    tells which.
    """
    if not isinstance(found, dict):
        return None
    tokens_in = as_count(found.get("inputTokens", value_at(found, "input_tokens")))
    tokens_out = as_count(found.get("outputTokens", value_at(found, "output_tokens")))
    if tokens_in is None or tokens_out is None:
        return None
    read, written = count_at(found, "cachedReadTokens"), count_at(found, "cachedWriteTokens")
    cached = (read or 0) + (written or 0)
    total = count_at(found, "totalTokens") or 0
    if cached > tokens_in or total >= tokens_in + cached + tokens_out:
        tokens_in += cached
    return Usage(
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_cache_read=read,
        tokens_cache_write=written,
    )


def _chunk(stream: AcpStream, update: Mapping[str, object], speaking: str) -> StreamStep:
    message_id = text_at(update, "messageId") or None
    text = block_text(value_at(update, "content"))
    output: tuple[OutputItem, ...] = ()
    is_other = speaking == _MESSAGE and message_id != stream.message_id
    if speaking != stream.speaking or is_other:
        output, stream = _other_message(stream, speaking, message_id)
    buffer = stream.buffer + text
    stream = replace(stream, buffer=buffer)
    if speaking == _MESSAGE:
        stream = replace(stream, message=(stream.message + text)[-MESSAGE_CHARS_MAX:])
    if len(buffer) > BUFFER_CHARS_MAX:
        at = buffer.rfind("\n") + 1 or len(buffer)
        step = flush(replace(stream, buffer=buffer[:at]))
        return StreamStep(
            stream=replace(step.stream, buffer=buffer[at:]), output=(*output, *step.output)
        )
    # Nothing to write down yet, and the detectors see that the agent is at it.
    kind = LineType.TEXT if speaking == _MESSAGE else LineType.THINKING
    return StreamStep(stream=stream, output=output or (OutputItem(type=kind),))


def _is_notice(update: Mapping[str, object]) -> bool:
    """What a program says itself, to a client that it takes to know no notices."""
    meta = value_at(value_at(update, "_meta"), "claudeCode")
    is_told = _NOTICES.match(block_text(value_at(update, "content"))) is not None
    return value_at(meta, "kind") == "informational" or is_told


def _notice(stream: AcpStream, text: str) -> StreamStep:
    """Words of the program and not of its model: they end no message and are no result."""
    if not text.strip():
        return StreamStep(stream=stream, output=(ALIVE,))
    if text == RESUMED:  # the last word of a turn that failed
        stream = replace(stream, message="", before=text)
    return StreamStep(stream=stream, output=(system_item(text),))


def _other_message(
    stream: AcpStream, speaking: str, message_id: str | None
) -> tuple[tuple[OutputItem, ...], AcpStream]:
    """A thought between two chunks does not end a message; another id does."""
    step = flush(stream)
    ends = speaking == _MESSAGE and message_id != stream.message_id
    stream = step.stream if not ends else _closed(step.stream)
    kept = message_id if speaking == _MESSAGE else stream.message_id
    return step.output, replace(stream, speaking=speaking, message_id=kept)


def _closed(stream: AcpStream) -> AcpStream:
    before = stream.message if stream.message.strip() else stream.before
    return replace(stream, message="", before=before)


def _with_request_usage(step: StreamStep, update: Mapping[str, object]) -> StreamStep:
    found = tokens_of(value_at(value_at(update, "_meta"), "usage"))
    if found is None:
        return step
    usage = add(step.stream.usage, found)
    return replace(
        step,
        stream=replace(step.stream, usage=usage),
        signals=(*step.signals, UsageSeen(key="", usage=usage)),
    )


def _call(
    stream: AcpStream, update: Mapping[str, object], *, now_ms: int | None, is_first: bool
) -> StreamStep:
    call_id = text_at(update, "toolCallId")
    step = flush(stream)
    stream = replace(_closed(step.stream), speaking="", message_id=None)
    known = stream.calls.get(call_id)
    call = updated_call(known or AcpCall(began_ms=now_ms), update, is_first=is_first)
    if text_at(update, "status") in _ENDED:
        return _ended(step, stream, call_id, call, update, now_ms=now_ms)
    output = step.output
    if not call.is_reported and has_input(call, update):
        call = replace(call, is_reported=True)
        began = tool_use(tool_name(call), given=tool_input(call), call_id=call_id, is_end=False)
        output = (*output, tool_item(began))
    calls = {**stream.calls, call_id: call}
    while len(calls) > CALLS_MAX:
        del calls[next(iter(calls))]
    return StreamStep(
        stream=replace(stream, calls=calls), output=output or (OutputItem(type=LineType.TOOL),)
    )


def _ended(
    step: StreamStep,
    stream: AcpStream,
    call_id: str,
    call: AcpCall,
    update: Mapping[str, object],
    *,
    now_ms: int | None,
) -> StreamStep:
    calls = {each: stream.calls[each] for each in stream.calls if each != call_id}
    timed = now_ms is not None and call.began_ms is not None and call_id in stream.calls
    tool = tool_use(
        tool_name(call),
        given=tool_input(call),
        returned=call.output,
        call_id=call_id,
        exit_code=call.exit_code,
        is_error=text_at(update, "status") == "failed",
        duration_ms=max(now_ms - call.began_ms, 0)
        if timed and now_ms is not None and call.began_ms is not None
        else None,
    )
    return StreamStep(
        stream=replace(stream, calls=calls),
        output=(*step.output, tool_item(tool)),
        signals=(ToolSeen(key="", name=tool.name),),
    )


def _codex(stream: AcpStream, codex: Mapping[str, object]) -> StreamStep:
    """What codex-acp reports of its thread: a provider that refuses, and the end it leads to."""
    if value_at(value_at(codex, "threadStatus"), "type") == "systemError":
        return StreamStep(stream=replace(stream, is_broken=True), output=(ALIVE,))
    error = value_at(codex, "error")
    message = text_at(error, "message")
    if not message:
        return StreamStep(stream=stream, output=(ALIVE,))
    details = text_at(error, "additionalDetails")
    text = f"{message}: {details}" if details else message
    info = value_at(error, "codexErrorInfo")
    kinds = info.values() if isinstance(info, dict) else ()
    found = (count_at(each, "httpStatusCode") for each in kinds)
    status = next((each for each in found if each), None)
    retry = re.search(r"\b(\d+/\d+)\b", message)
    api_error = ApiError(message=text, retry=retry[1] if retry else None, status=status)
    output = OutputItem(type=LineType.ERROR, text=shown(text), api_error=api_error)
    return StreamStep(stream=replace(stream, status=status or stream.status), output=(output,))


def _plan(update: Mapping[str, object]) -> tuple[OutputItem, ...]:
    tool = tool_use("plan", given={"plan": value_at(update, "entries")})
    return (tool_item(tool),)


def _usage(stream: AcpStream, update: Mapping[str, object]) -> StreamStep:
    used, size = count_at(update, "used"), count_at(update, "size")
    context = ContextUse(tokens=used or 0, window=size or None)
    output = (OutputItem(type=LineType.SYSTEM, context=context),) if used else ()
    cost = cost_of(update)
    if cost in {0, stream.cost_before}:
        return StreamStep(stream=stream, output=output)
    # One that is less than what was known before can only have begun again.
    known = stream.cost_before if cost > stream.cost_before else 0
    usage = replace(stream.usage, cost_usd=cost - known)
    signals = (UsageSeen(key="", usage=usage),)
    return StreamStep(stream=replace(stream, usage=usage), output=output, signals=signals)


def cost_of(update: Mapping[str, object]) -> float:
    """Dollars; 0 = unknown, as agents report of models without a price."""
    cost = value_at(value_at(update, "cost"), "amount")
    is_dollars = value_at(value_at(update, "cost"), "currency") in (None, "USD")
    if not isinstance(cost, (int, float)) or isinstance(cost, bool) or not is_dollars:
        return 0
    return float(cost) if 0 < cost < 1e12 else 0


# -- tool calls -----------------------------------------------------------------------------------
#
# Each update may know more than the one before, and each agent puts the name, the input and the
# output in places of its own; those that were seen are listed here.


def updated_call(call: AcpCall, update: Mapping[str, object], *, is_first: bool) -> AcpCall:
    """The call with what this update adds; what it leaves out, or leaves empty, stays."""
    given = value_at(update, "rawInput")
    # Some repeat the whole input with each update, some send it once, one sends a part first.
    given = given if given not in (None, {}, "", []) else call.given
    if (
        isinstance(given, dict)
        and isinstance(value_at(given, "arguments"), dict)
        and "tool" in given
    ):
        given = given["arguments"]  # of an MCP call, with its server next to it
    title = text_at(update, "title") or call.title
    returned = _returned(update)
    output = returned if returned is not None else call.output + _delta(update)
    found = _exit_code(update)
    return replace(
        call,
        name=_name(update, is_first=is_first) or call.name,
        kind=text_at(update, "kind") or call.kind,
        title=title,
        given=given,
        output=cut_middle(output, OUTPUT_CHARS_MAX),
        path=_path(update) or call.path,
        exit_code=call.exit_code if found is None else found,
    )


def _name(update: Mapping[str, object], *, is_first: bool) -> str:
    """What the agent's model calls the tool; each agent puts it in another place."""
    meta = value_at(update, "_meta")
    goose = value_at(value_at(meta, "goose"), "toolCall")
    places = (
        value_at(update, "name"),
        value_at(meta, "toolName"),
        value_at(value_at(meta, "claudeCode"), "toolName"),
        value_at(goose, "toolName"),
    )
    name = next((each for each in places if isinstance(each, str) and each.strip()), "")
    if not name and (match := _GEMINI_ID.match(text_at(update, "toolCallId"))):
        name = match[1]
    title = text_at(update, "title")
    if not name and is_first and _WORD.match(title):
        name = title
    if not name and text_at(update, "kind") == "other" and (match := _TITLED.match(title)):
        name = match[1]
    return name[:NAME_CHARS_MAX]


def tool_name(call: AcpCall) -> str:
    return call.name or call.kind or "tool"


def tool_input(call: AcpCall) -> object:
    """The input as ``tool_use`` reads it; where there is none, the title says what is done."""
    if call.given is not None:
        if isinstance(call.given, dict) and call.path and not _WORD.match(call.title):
            return {"path": call.path, **call.given}
        return call.given
    if call.kind == "execute" and call.title:
        return {"command": call.title}
    return {"path": call.path} if call.path else call.title


def has_input(call: AcpCall, update: Mapping[str, object]) -> bool:
    if text_at(update, "status") == "in_progress":
        return True
    given = call.given
    return bool(given) and (not isinstance(given, dict) or bool(set(given) - {"cwd"}))


def _returned(update: Mapping[str, object]) -> str | None:
    """The whole output, when the update holds it."""
    raw = value_at(update, "rawOutput")
    for found in (raw, value_at(raw, "output"), value_at(raw, "stdout"), value_at(raw, "text")):
        if isinstance(found, str) and found:
            return found
    served = value_at(value_at(raw, "result"), "content")  # of an MCP server, as it came
    if isinstance(served, list) and served:
        return "\n".join(block_text(each) for each in served)
    content = value_at(update, "content")
    if isinstance(content, list):
        texts = (_content_text(each) for each in content)
        joined = "\n".join(text for text in texts if text)
        if joined:
            return joined
    return None


def _content_text(content: object) -> str:
    match value_at(content, "type"):
        case "content":
            return block_text(value_at(content, "content"))
        case "diff":
            return f"edited {text_at(content, 'path')}"
        case _:
            return ""


def _delta(update: Mapping[str, object]) -> str:
    return text_at(value_at(value_at(update, "_meta"), "terminal_output_delta"), "data")


def _exit_code(update: Mapping[str, object]) -> object:
    raw, meta = value_at(update, "rawOutput"), value_at(update, "_meta")
    places = (
        value_at(raw, "exitCode"),
        value_at(raw, "exit_code"),
        value_at(value_at(raw, "metadata"), "exit"),
        value_at(value_at(meta, "terminal_exit"), "exit_code"),
    )
    return next((found for found in places if found is not None), None)


def _path(update: Mapping[str, object]) -> str | None:
    if text_at(update, "kind") == "execute":
        return None  # the working directory, with some
    found = value_at(update, "content")
    diffs = found if isinstance(found, list) else []
    places = value_at(update, "locations")
    listed = places if isinstance(places, list) else []
    paths = (value_at(each, "path") for each in (*diffs, *listed))
    return next((path for path in paths if isinstance(path, str) and path), None)


def block_text(block: object) -> str:
    """The text of a content block; of pictures and sounds what they are."""
    match value_at(block, "type"):
        case "text":
            return text_at(block, "text")
        case "resource":
            return text_at(value_at(block, "resource"), "text")
        case "resource_link":
            return text_at(block, "uri")
        case "image" | "audio" as kind:
            return f"[{kind}]"
        case _:
            return ""
