"""One turn with Claude Code, folded from its events.

When it is over says the program itself: each message it takes has a life of its own (``queued``,
``started``, ``completed``, …), and the session says ``idle`` when no further turn is owed, also
none for an agent that works on in the background. A version that says neither is done with its
first result.

Pure: the state depends on the lines alone.
"""

from collections.abc import Callable, Mapping
from typing import Final

from subagents.domain.rules.evidence import added
from subagents.domain.run.signals import SessionSeen, Signal
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import ApiError, LineType, OutputItem
from subagents.runtimes.claude import claude_stream as stream
from subagents.runtimes.claude.claude_messages import assistant, user
from subagents.runtimes.claude.claude_state import (
    ALIVE,
    NAME_CHARS_MAX,
    OPEN,
    REFUSED,
    State,
    as_json,
    counted,
    named,
    note,
    result_of,
    shown,
    system_line,
)
from subagents.runtimes.conversation.dialect import InputLine, TurnStep
from subagents.runtimes.output.terminal_text import plain, shortened

OPTIONS: Final = "runtime_options"
LOGIN: Final = "run `claude` in a terminal once, or let ANTHROPIC_API_KEY reach the worker"


def heard(state: State, line: bytes, *, now_ms: int | None) -> TurnStep[State]:
    """Take one line; see ``Dialect.read_line``."""
    if not line.strip():
        return TurnStep(state)
    event = stream.decode(line)
    if event is None:
        words = shortened(plain(line.decode("utf-8", "replace")).strip())
        return TurnStep(
            state, output=(OutputItem(type=LineType.TEXT, text=words),) if words else ()
        )
    kind = stream.text(event, "type")
    read = _EVENTS.get(kind)
    step = _unknown(state, kind, event) if read is None else read(state, event, now_ms)
    return step._replace(state=_settled(step.state))


def finished(state: State) -> TurnStep[State]:
    """The program is gone: a turn without its result is an error."""
    if state.is_over or not (state.is_working or state.is_awaiting or _is_waiting(state)):
        return TurnStep(state)
    error = "Claude Code ended in the middle of its turn"
    error += f" ({state.reason.replace('_', ' ')})" if state.reason else ""
    # It is not over as it should be: the exit counts as it was.
    return TurnStep(state, signals=(result_of(state, error=error),))


def _settled(state: State) -> State:
    """Over once, over for good: whoever reads it ends the program."""
    is_over = state.has_result and not state.is_working and not _is_waiting(state)
    if state.is_over or not is_over or state.is_idle is False:
        return state
    return replace(state, is_over=True)


def _is_waiting(state: State) -> bool:
    """A message that it took is not answered yet."""
    return any(fate in OPEN for fate in state.commands.values())


# -- events: of the program ---------------------------------------------------------------------


def _system(state: State, event: stream.Table, now_ms: int | None) -> TurnStep[State]:
    del now_ms
    kind = stream.text(event, "subtype")
    match kind:
        case "init":
            return _init(state, event)
        case "session_state_changed":
            is_idle = stream.text(event, "state") == "idle"
            new = replace(state, is_idle=is_idle, is_working=not is_idle)
            return _never_begun(new) if is_idle and not state.has_result else TurnStep(new)
        case "api_retry":
            error = stream.retry_of(event)
            tries = "" if error.retry is None else f" (try {error.retry})"
            text = f"API error: {error.message}{tries}"
            told = OutputItem(type=LineType.ERROR, text=text, api_error=error)
            return TurnStep(state, output=(told,))
        case "permission_denied":
            return TurnStep(state, output=(_denied(event),))
        case "compact_boundary":
            facts = stream.table(event, "compact_metadata")
            before, after = (stream.whole(facts, key) for key in ("pre_tokens", "post_tokens"))
            sizes = "" if before is None else f": {before:,} tokens"
            sizes += "" if after is None else f" to {after:,}"
            return note(state, f"the conversation was compacted{sizes}")
        case "status":
            return _status(state, event)
        case "background_tasks_changed":
            kinds = {stream.text(each, "task_type") for each in stream.rows(event, "tasks")}
            return _alive(replace(state, is_awaiting=bool(kinds - {"local_bash"})))
        case "task_notification":
            return _task_over(state, event)
        case _ if kind in _NOTES:
            told_text = stream.text(event, "content") or stream.text(event, "message")
            return note(state, told_text or kind.replace("_", " "))
        case _ if kind in _QUIET:
            return _alive(state)
        case _:
            return _unknown(state, f"system/{kind}", event)


def _never_begun(state: State) -> TurnStep[State]:
    """It owes nothing and gave no result: its messages were taken back before they began."""
    fates = set(state.commands.values())
    if not fates or fates & OPEN:
        return TurnStep(state)
    error = "the turn was interrupted" if fates & REFUSED else "the turn ended without a result"
    result = result_of(state, error=error)
    return TurnStep(replace(state, has_result=True), signals=(result,))


def _status(state: State, event: stream.Table) -> TurnStep[State]:
    if stream.text(event, "status") == "compacting":
        return note(state, "compacting the conversation")
    failed = stream.text(event, "compact_error")
    return note(state, f"the conversation was not compacted: {failed}") if failed else _alive(state)


def _task_over(state: State, event: stream.Table) -> TurnStep[State]:
    """A background task ended; of one in the foreground its call tells."""
    if stream.text(event, "tool_use_id") in state.calls:
        return _alive(state)
    fate, summary = stream.text(event, "status") or "ended", stream.text(event, "summary")
    return note(state, f"background task {fate}: {summary}" if summary else f"task {fate}")


def _init(state: State, event: stream.Table) -> TurnStep[State]:
    """The session begins, or begins to answer another message."""
    session = stream.text(event, "session_id")
    model = stream.text(event, "model")
    output: list[OutputItem] = []
    if session != state.session_id or model != state.model:
        version = stream.text(event, "claude_code_version")
        output.append(
            system_line(f"Claude Code {version}, model {model or '?'}, session {session or '?'}")
        )
        broken = [
            f"{stream.text(each, 'name')} ({stream.text(each, 'status')})"
            for each in stream.rows(event, "mcp_servers")
            if stream.text(each, "status") not in {"connected", "pending", ""}
        ]
        if broken:
            names = ", ".join(broken)[:1_000]
            output.append(
                OutputItem(type=LineType.ERROR, text=f"MCP servers that do not work: {names}")
            )
    signals = (SessionSeen(key="", session_id=session),) if session else ()
    new = replace(
        state, session_id=session or state.session_id, model=model or None, is_working=True
    )
    return TurnStep(new, output=tuple(output), signals=signals)


def _denied(event: stream.Table) -> OutputItem:
    name = stream.text(event, "tool_name") or "a tool"
    reason = stream.text(event, "decision_reason_type")
    why = f" ({reason})" if reason else ""
    text = f"permission denied: {plain(name)[:NAME_CHARS_MAX]}{why}"
    return OutputItem(type=LineType.ERROR, text=text, api_error=ApiError(message=text))


def _lifecycle(state: State, event: stream.Table, now_ms: int | None) -> TurnStep[State]:
    del now_ms
    name, fate = stream.text(event, "command_uuid"), stream.text(event, "state")
    if not name or not fate:
        return TurnStep(state)
    is_working = state.is_working or fate == "started"
    return TurnStep(replace(state, commands={**state.commands, name: fate}, is_working=is_working))


def _limit(state: State, event: stream.Table, now_ms: int | None) -> TurnStep[State]:
    """The provider tells how much of a subscription is used."""
    del now_ms
    info = stream.table(event, "rate_limit_info")
    status, resets = stream.text(info, "status"), stream.whole(info, "resetsAt")
    if status in {"", "allowed"}:
        return _alive(state)
    name = stream.text(info, "rateLimitType").replace("_", " ")
    text = f"rate limit {'reached' if status == 'rejected' else 'near'}: {name or 'of the plan'}"
    if status != "rejected":
        return note(state, text)
    error = ApiError(message=text, status=429)
    new = replace(state, resets_ms=None if resets is None else resets * 1000)
    return TurnStep(new, output=(OutputItem(type=LineType.ERROR, text=text, api_error=error),))


def _asked(state: State, event: stream.Table, now_ms: int | None) -> TurnStep[State]:
    """The program asks its host something: nobody is there, and it must not wait."""
    del now_ms
    name = stream.text(event, "request_id")
    request = stream.table(event, "request")
    kind = stream.text(request, "subtype")
    answer: dict[str, object] = {
        "subtype": "error", "request_id": name, "error": "nobody is there to answer",
    }  # fmt: skip
    if kind == "can_use_tool":
        output = {"behavior": "deny", "message": "it is not allowed, and nobody is there to ask"}
        answer = {"subtype": "success", "request_id": name, "response": output}
    form = {"type": "control_response", "response": answer}
    told = system_line(f"it asked for {kind or 'something'}; nobody is there to answer")
    return TurnStep(
        state, output=(told,), input_lines=(InputLine(f"answer-{name}", as_json(form)),)
    )


def _result(state: State, event: stream.Table, now_ms: int | None) -> TurnStep[State]:
    """A turn of the program's own is over; it may owe another one."""
    error = stream.error_of(event, words=OPTIONS)
    told = stream.text(event, "result")
    if error is None and told:
        state = replace(state, last_text=told)
    answered = {stream.text(event, "user_message_uuid"), *stream.texts(event, "user_message_uuids")}
    commands = {
        name: "completed" if name in answered and fate in OPEN else fate
        for name, fate in state.commands.items()
    }
    state = replace(state, commands=commands, is_working=False, has_result=True)
    if error is not None and state.reason == "authentication_failed":
        error += f" ({LOGIN})"
    state, signals = _billed(state, event)
    limited = error is not None and stream.is_limit(event, reason=state.reason)
    wait_ms = None
    if limited and now_ms is not None and state.resets_ms is not None:
        wait_ms = max(0, state.resets_ms - now_ms)
    result = result_of(state, error=error, is_limit=limited, retry_after_ms=wait_ms)
    output: tuple[OutputItem, ...] = (ALIVE,)
    if error is not None and not state.reason:
        output = (OutputItem(type=LineType.ERROR, text=shown(error)),)
    state = replace(state, reason="")
    return TurnStep(state, output=output, signals=(*signals, result))


def _billed(state: State, event: stream.Table) -> tuple[State, tuple[Signal, ...]]:
    """What all of it used, by the program's own account.

    ``modelUsage`` is of the whole session, also of what was in it before this process.
    """
    own = stream.total(stream.table(event, "model_usage_since_last_result"))
    results = added(state.results, own)
    if own is None and state.is_new:
        results = stream.total(stream.table(event, "modelUsage"))
    state = replace(state, results=results)
    return state, () if results is None else (counted(state, results),)


# -- small parts ----------------------------------------------------------------------------------


def _alive(state: State, *_: object) -> TurnStep[State]:
    return TurnStep(state, output=(ALIVE,))


def _quiet(state: State, *_: object) -> TurnStep[State]:
    return TurnStep(state)


def _unknown(state: State, name: str, event: stream.Table) -> TurnStep[State]:
    """``name`` is the type, or ``system/SUBTYPE``."""
    subtype = "" if name.startswith("system/") else stream.text(event, "subtype")
    new, told = named(state, f"{name or 'no type'}/{subtype}" if subtype else name or "no type")
    return TurnStep(new, output=(told,))


_Read = Callable[[State, stream.Table, int | None], TurnStep[State]]
_EVENTS: Final[Mapping[str, _Read]] = {
    "system": _system,
    "assistant": assistant,
    "user": user,
    "result": _result,
    "command_lifecycle": _lifecycle,
    "rate_limit_event": _limit,
    "control_request": _asked,
    "control_response": _quiet,
    "control_cancel_request": _quiet,
    "keep_alive": _quiet,
    "stream_event": _alive,
    # Tells only that time passes: a tool that hangs must look like one.
    "tool_progress": _quiet,
    "tool_use_summary": _alive,
    "auth_status": _alive,
    "prompt_suggestion": _quiet,
}
_NOTES: Final = frozenset(
    {
        *("model_fallback", "model_refusal_fallback", "model_refusal_no_fallback"),
        *("model_consent_fallback", "informational", "notification", "api_error"),
        *("agents_killed", "session_writes_lost", "mirror_error", "worker_shutting_down"),
        *("stop_hook_summary",),
    }
)
"""Subtypes of ``system`` that say something to a reader, in ``content`` or by their name."""
_QUIET: Final = frozenset(
    {
        *("thinking_tokens", "task_started", "task_progress", "task_updated"),
        *("task_summary", "hook_started", "hook_progress"),
        *("hook_response", "turn_duration", "turn_starting", "shell_cwd"),
        *("session_metadata", "session_title_changed", "commands_changed"),
        *("post_turn_summary", "files_persisted", "local_command", "local_command_output"),
        *("memory_recall", "memory_saved", "plugin_install", "permission_check_status"),
        *("permission_retry", "file_snapshot", "per_turn_effort_changed"),
        *("instruction_size_warning", "vcs_state_changed", "control_request_progress"),
        *("elicitation_complete", "code_change_published", "turn_preempted"),
    }
)
"""Subtypes of ``system`` that only show that it works."""
