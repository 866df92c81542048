"""What the model and its tools say in a turn with Claude Code; pure.

Agents of its own harness speak in the same stream, under the tool call that started them. They are
shown with a mark, and are never taken for the worker.
"""

from typing import Final

from subagents.domain.run.run import Usage
from subagents.domain.run.signals import Signal, ToolSeen
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import (
    ApiError,
    LineType,
    OutputItem,
    ToolUse,
)
from subagents.runtimes.claude import claude_stream as stream
from subagents.runtimes.claude.claude_state import (
    ALIVE,
    CALLS_MAX,
    NAME_CHARS_MAX,
    Call,
    State,
    counted,
    named,
    note,
    shown,
    system_line,
)
from subagents.runtimes.conversation.dialect import TurnStep
from subagents.runtimes.output.terminal_text import plain
from subagents.runtimes.output.tool_lines import tool_line, tool_use

SUBAGENT: Final = "↳ "
"""Before what agents of its own harness say and do."""


def assistant(state: State, event: stream.Table, now_ms: int | None) -> TurnStep[State]:
    message = stream.table(event, "message")
    agent, source = _agent(event), stream.text(event, "parent_tool_use_id")
    is_own = not source
    if stream.text(message, "model") == stream.SYNTHETIC:
        return _of_program(state, event, message)
    output: list[OutputItem] = []
    signals: list[Signal] = []
    before = state.spending
    state = replace(state, spending=stream.spent(before, source, message))
    is_first = state.spending.open[source][0] != before.open.get(source, ("", 0, 0))[0]
    if is_first and is_own:
        context = stream.context_of(message)
        output += [] if context is None else [OutputItem(type=LineType.SYSTEM, context=context)]
    if state.spending != before:
        usage = Usage(tokens_in=state.spending.tokens_in, tokens_out=state.spending.tokens_out)
        signals.append(counted(state, usage))
    begun_ms = stream.at_ms(event) or now_ms
    for block in stream.rows(message, "content"):
        state, piece = _block(state, block, agent=agent, begun_ms=begun_ms)
        output += [] if piece is None else [piece]
    if is_own:
        state = replace(state, is_working=True)
    return TurnStep(state, output=tuple(output), signals=tuple(signals))


def _of_program(state: State, event: stream.Table, answer: stream.Table) -> TurnStep[State]:
    """What the program itself puts into the model's mouth: API errors, above all."""
    told = "\n".join(stream.text(each, "text") for each in stream.rows(answer, "content"))
    reason = stream.text(event, "error")
    if not told.strip():
        return TurnStep(state)
    if not reason:
        return note(state, told)
    text = shown(told)
    message = text.removeprefix("API Error: ")[: stream.ERROR_CHARS_MAX]
    error = ApiError(message=message, status=_status(told, reason))
    new = state if _agent(event) else replace(state, reason=reason)
    return TurnStep(new, output=(OutputItem(type=LineType.ERROR, text=text, api_error=error),))


def _block(
    state: State, block: stream.Table, *, agent: str, begun_ms: int | None
) -> tuple[State, OutputItem | None]:
    """One block of an answer; ``agent`` is "" for the worker's own."""
    match stream.text(block, "type"):
        case "text":
            told = stream.text(block, "text")
            if not told.strip():
                return state, None
            if agent:
                return state, system_line(f"{SUBAGENT}{agent}: {told}")
            return replace(state, last_text=told), OutputItem(type=LineType.TEXT, text=shown(told))
        case "thinking":
            told = stream.text(block, "thinking")
            if agent or not told.strip():
                return state, ALIVE
            return state, OutputItem(type=LineType.THINKING, text=shown(told))
        case "redacted_thinking":
            return state, ALIVE
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            return _begins(state, block, agent=agent, begun_ms=begun_ms)
        case kind if kind.endswith("tool_result"):
            return state, ALIVE
        case kind:
            return named(state, f"assistant/{kind}")


def _begins(
    state: State, block: stream.Table, *, agent: str, begun_ms: int | None
) -> tuple[State, OutputItem]:
    name, call_id = stream.text(block, "name") or "tool", stream.text(block, "id")
    use = tool_use(name, given=block.get("input"), call_id=call_id, is_end=False)
    calls = dict(state.calls)
    if call_id:
        calls[call_id] = Call(use=use, begun_ms=begun_ms, is_own=not agent)
        while len(calls) > CALLS_MAX:
            del calls[next(iter(calls))]
    mark = SUBAGENT if agent else ""
    told = OutputItem(type=LineType.TOOL, text=mark + tool_line(use), tool=use)
    return replace(state, calls=calls), told


def user(state: State, event: stream.Table, now_ms: int | None) -> TurnStep[State]:
    """Results of tools come as messages of the user; other ones only repeat what was sent."""
    output: list[OutputItem] = []
    signals: list[Signal] = []
    end_ms = stream.at_ms(event) or now_ms
    calls = dict(state.calls)
    for block in stream.rows(stream.table(event, "message"), "content"):
        if stream.text(block, "type") != "tool_result":
            continue
        call_id = stream.text(block, "tool_use_id")
        unseen = ToolUse(name="tool", call_id=call_id or None)
        call = calls.pop(call_id, None) or Call(use=unseen, is_own=not _agent(event))
        use = _over(call, block, event, end_ms)
        mark = "" if call.is_own else SUBAGENT
        output.append(OutputItem(type=LineType.TOOL, text=mark + tool_line(use), tool=use))
        if call.is_own:
            signals.append(ToolSeen(key="", name=use.name))
    return TurnStep(
        replace(state, calls=calls), output=tuple(output) or (ALIVE,), signals=tuple(signals)
    )


def _over(call: Call, block: stream.Table, event: stream.Table, end_ms: int | None) -> ToolUse:
    """The call with its end."""
    end = stream.ended(block, event, is_shell=call.use.command is not None)
    took_ms = None
    if end_ms is not None and call.begun_ms is not None:
        took_ms = max(0, end_ms - call.begun_ms)
    # What it was asked was worked out when it began.
    told = tool_use(call.use.name, returned=end.output)
    return replace(
        call.use,
        is_end=True,
        exit_code=end.exit_code,
        is_error=end.is_error,
        output=told.output,
        duration_ms=took_ms,
    )


def _agent(event: stream.Table) -> str:
    """Which agent of its own harness speaks; "" = the worker itself."""
    if not stream.text(event, "parent_tool_use_id"):
        return ""
    kind = stream.text(event, "subagent_type") or "agent"
    name = stream.text(event, "task_description")
    return plain(f"{kind} ({name})" if name else kind)[:NAME_CHARS_MAX]


def _status(told: str, reason: str) -> int | None:
    """The HTTP status in ``API Error: 400 …``."""
    words = told.split()
    found = next((word for word in words[:6] if word.isdigit() and len(word) == 3), None)
    if found is not None:
        return int(found)
    return {"rate_limit": 429, "overloaded": 529, "authentication_failed": 401}.get(reason)
