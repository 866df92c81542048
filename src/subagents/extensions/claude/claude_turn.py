"""One turn with Claude Code, folded from its events.

The program itself reports when it is over: each message it takes has a life of its own (``queued``,
``started``, ``completed``, …), and the session says ``idle`` when no further turn is owed, also
none for an agent that works on in the background. A version that says neither is done with its
first result.

Agents of its own harness speak in the same stream, under the tool call that started them. They are
shown with a mark, and are never taken for the worker.

Pure: the state depends on the lines alone.
"""

from collections.abc import Callable, Mapping
from typing import Final

from subagents.domain.rules.evidence import added
from subagents.domain.run.signals import SessionSeen, Signal, ToolSeen
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import ApiError, LineType, OutputItem, ToolUse
from subagents.extensions.claude import claude_tasks
from subagents.extensions.claude.claude_state import (
    CALLS_MAX,
    NAME_CHARS_MAX,
    OPEN,
    REFUSED,
    ClaudeCall,
    ClaudeState,
    ClaudeStep,
    as_json,
    note,
    result_of,
    unknown_event,
    usage_signal,
)
from subagents.extensions.claude.claude_stream import (
    ERROR_CHARS_MAX,
    SYNTHETIC,
    Event,
    at_ms,
    context_of,
    decode,
    error_of,
    is_limit,
    retry_of,
    spent,
    tool_result,
    total,
)
from subagents.extensions.conversation.dialect import (
    InputLine,
    Permissions,
    TurnStep,
    asked_for,
    noted,
)
from subagents.extensions.conversation.json_fields import (
    count_at,
    table_at,
    tables_at,
    text_at,
    texts_at,
)
from subagents.runtimes.output.output_items import ALIVE, shown, system_item, tool_item
from subagents.runtimes.output.terminal_text import plain
from subagents.runtimes.output.tool_lines import tool_use

OPTIONS: Final = "runtime_options"
LOGIN: Final = "run `claude` in a terminal once, or let ANTHROPIC_API_KEY reach the worker"
SUBAGENT: Final = "↳ "
"""What precedes the lines of agents of its own harness."""


def step_of(state: ClaudeState, line: bytes, *, now_ms: int | None) -> ClaudeStep:
    """Take one line; see ``Dialect.read_line``."""
    if not line.strip():
        return TurnStep(state)
    event = decode(line)
    if event is None:
        words = shown(line.decode("utf-8", "replace")).strip()
        return TurnStep(
            state, output=(OutputItem(type=LineType.TEXT, text=words),) if words else ()
        )
    kind = text_at(event, "type")
    read = _EVENTS.get(kind)
    step = _unknown(state, kind, event) if read is None else read(state, event, now_ms)
    return step._replace(state=_settled(step.state))


def finished(state: ClaudeState) -> ClaudeStep:
    """The program is gone: a turn without its result is an error."""
    is_open = state.is_working or state.is_awaiting or _is_waiting(state) or not state.has_result
    if state.is_over or not is_open:
        return TurnStep(state)
    error = "Claude Code ended in the middle of its turn"
    error += f" ({state.reason.replace('_', ' ')})" if state.reason else ""
    # It is not over as it should be: the exit counts as it was.
    return TurnStep(state, signals=(result_of(state, error=error),))


def _settled(state: ClaudeState) -> ClaudeState:
    """Over once, over for good: whoever reads it ends the program."""
    is_over = state.has_result and not state.is_working and not _is_waiting(state)
    if state.is_over or not is_over or state.is_idle is False:
        return state
    return replace(state, is_over=True)


def _is_waiting(state: ClaudeState) -> bool:
    """A message that it took is not answered yet."""
    return any(fate in OPEN for fate in state.commands.values())


# -- events: of the program ---------------------------------------------------------------------


def _system(state: ClaudeState, event: Event, now_ms: int | None) -> ClaudeStep:
    del now_ms
    kind = text_at(event, "subtype")
    match kind:
        case "init":
            return _init(state, event)
        case "session_state_changed":
            is_idle = text_at(event, "state") == "idle"
            new = replace(state, is_idle=is_idle, is_working=not is_idle)
            return _never_begun(new) if is_idle and not state.has_result else TurnStep(new)
        case "api_retry":
            error = retry_of(event)
            tries = "" if error.retry is None else f" (try {error.retry})"
            text = f"API error: {error.message}{tries}"
            item = OutputItem(type=LineType.ERROR, text=text, api_error=error)
            return TurnStep(state, output=(item,))
        case "permission_denied":
            return TurnStep(state, output=(_denied(event),))
        case "compact_boundary":
            facts = table_at(event, "compact_metadata")
            before, after = (count_at(facts, key) for key in ("pre_tokens", "post_tokens"))
            sizes = "" if before is None else f": {before:,} tokens"
            sizes += "" if after is None else f" to {after:,}"
            return note(state, f"the conversation was compacted{sizes}")
        case "status":
            return _status(state, event)
        case "background_tasks_changed":
            kinds = {text_at(each, "task_type") for each in tables_at(event, "tasks")}
            return _alive(replace(state, is_awaiting=bool(kinds - {"local_bash"})))
        case "task_notification":
            return _task_over(state, event)
        case _ if kind in _NOTES:
            text = text_at(event, "content") or text_at(event, "message")
            return note(state, text or kind.replace("_", " "))
        case _ if kind in _QUIET:
            return _alive(state)
        case _:
            return _unknown(state, f"system/{kind}", event)


def _never_begun(state: ClaudeState) -> ClaudeStep:
    """It owes nothing and gave no result: its messages were taken back before they began."""
    fates = set(state.commands.values())
    if not fates or fates & OPEN:
        return TurnStep(state)
    error = "the turn was interrupted" if fates & REFUSED else "the turn ended without a result"
    result = result_of(state, error=error)
    return TurnStep(replace(state, has_result=True), signals=(result,))


def _status(state: ClaudeState, event: Event) -> ClaudeStep:
    if text_at(event, "status") == "compacting":
        return note(state, "compacting the conversation")
    failed = text_at(event, "compact_error")
    return note(state, f"the conversation was not compacted: {failed}") if failed else _alive(state)


def _task_over(state: ClaudeState, event: Event) -> ClaudeStep:
    """A background task ended; one in the foreground ends with its call."""
    if text_at(event, "tool_use_id") in state.calls:
        return _alive(state)
    fate, summary = text_at(event, "status") or "ended", text_at(event, "summary")
    return note(state, f"background task {fate}: {summary}" if summary else f"task {fate}")


def _init(state: ClaudeState, event: Event) -> ClaudeStep:
    """The session begins, or begins to answer another message."""
    session = text_at(event, "session_id")
    model = text_at(event, "model")
    output: list[OutputItem] = []
    if session != state.session_id or model != state.model:
        version = text_at(event, "claude_code_version")
        output.append(
            system_item(f"Claude Code {version}, model {model or '?'}, session {session or '?'}")
        )
        broken = [
            f"{text_at(each, 'name')} ({text_at(each, 'status')})"
            for each in tables_at(event, "mcp_servers")
            if text_at(each, "status") not in {"connected", "pending", ""}
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


def _denied(event: Event) -> OutputItem:
    name = text_at(event, "tool_name") or "a tool"
    reason = text_at(event, "decision_reason_type")
    why = f" ({reason})" if reason else ""
    text = f"permission denied: {plain(name)[:NAME_CHARS_MAX]}{why}"
    return OutputItem(type=LineType.ERROR, text=text, api_error=ApiError(message=text))


def _lifecycle(state: ClaudeState, event: Event, now_ms: int | None) -> ClaudeStep:
    del now_ms
    name, fate = text_at(event, "command_uuid"), text_at(event, "state")
    if not name or not fate:
        return TurnStep(state)
    is_working = state.is_working or fate == "started"
    return TurnStep(replace(state, commands={**state.commands, name: fate}, is_working=is_working))


def _limit(state: ClaudeState, event: Event, now_ms: int | None) -> ClaudeStep:
    """The provider reports how much of a subscription is used."""
    del now_ms
    info = table_at(event, "rate_limit_info")
    status, resets = text_at(info, "status"), count_at(info, "resetsAt")
    if status in {"", "allowed"}:
        return _alive(state)
    name = text_at(info, "rateLimitType").replace("_", " ")
    text = f"rate limit {'reached' if status == 'rejected' else 'near'}: {name or 'of the plan'}"
    if status != "rejected":
        return note(state, text)
    error = ApiError(message=text, status=429)
    new = replace(state, resets_ms=None if resets is None else resets * 1000)
    return TurnStep(new, output=(OutputItem(type=LineType.ERROR, text=text, api_error=error),))


def _asked(state: ClaudeState, event: Event, now_ms: int | None) -> ClaudeStep:
    """The program asks its host something: nobody is there, and it must not wait."""
    del now_ms
    name = text_at(event, "request_id")
    request = table_at(event, "request")
    kind = text_at(request, "subtype")
    if kind == "can_use_tool" and state.asks:
        return _may_it(state, name, request)
    answer: dict[str, object] = {
        "subtype": "error", "request_id": name, "error": "nobody is there to answer",
    }  # fmt: skip
    if kind == "can_use_tool":
        output = {"behavior": "deny", "message": "it is not allowed, and nobody is there to ask"}
        answer = {"subtype": "success", "request_id": name, "response": output}
    form = {"type": "control_response", "response": answer}
    item = system_item(f"it asked for {kind or 'something'}; nobody is there to answer")
    return TurnStep(
        state, output=(item,), input_lines=(InputLine(f"answer-{name}", as_json(form)),)
    )


def _may_it(state: ClaudeState, name: str, request: Event) -> ClaudeStep:
    given = table_at(request, "input")
    # What it suggests to remember, for this session alone.
    rules = [
        {**each, "destination": "session"}
        for each in tables_at(request, "permission_suggestions")
        if text_at(each, "type") == "addRules"
    ]
    allowed = {"behavior": "allow", "updatedInput": given}

    def line(output: Mapping[str, object]) -> str:
        answer = {"subtype": "success", "request_id": name, "response": output}
        return as_json({"type": "control_response", "response": answer}).decode()

    answers = Permissions(
        once=line(allowed),
        lasting=line({**allowed, "updatedPermissions": rules}),
        deny=line({"behavior": "deny", "message": "it was denied"}),
    )
    known, asked = asked_for(
        state.permissions, answers, call_id=name, tool=text_at(request, "tool_name"), given=given
    )
    return TurnStep(replace(state, permissions=known), signals=(asked,))


def _result(state: ClaudeState, event: Event, now_ms: int | None) -> ClaudeStep:
    """A turn of the program's own is over; it may owe another one."""
    error = error_of(event, section=OPTIONS)
    text = text_at(event, "result")
    if error is None and text:
        state = replace(state, last_text=text)
    answered = {text_at(event, "user_message_uuid"), *texts_at(event, "user_message_uuids")}
    commands = {
        name: "completed" if name in answered and fate in OPEN else fate
        for name, fate in state.commands.items()
    }
    state = replace(state, commands=commands, is_working=False, has_result=True)
    if error is not None and state.reason == "authentication_failed":
        error += f" ({noted(LOGIN, state.login_note)})"
    state, signals = _billed(state, event)
    limited = error is not None and is_limit(event, reason=state.reason)
    wait_ms = None
    if limited and now_ms is not None and state.resets_ms is not None:
        wait_ms = max(0, state.resets_ms - now_ms)
    result = result_of(state, error=error, is_limit=limited, retry_after_ms=wait_ms)
    output: tuple[OutputItem, ...] = (ALIVE,)
    if error is not None and not state.reason:
        output = (OutputItem(type=LineType.ERROR, text=shown(error)),)
    state = replace(state, reason="")
    return TurnStep(state, output=output, signals=(*signals, result))


def _billed(state: ClaudeState, event: Event) -> tuple[ClaudeState, tuple[Signal, ...]]:
    """What all of it used, by the program's own account.

    ``modelUsage`` is of the whole session, also of what was in it before this process.
    """
    own = total(table_at(event, "model_usage_since_last_result"))
    results = added(state.results, own)
    if own is None and state.is_new:
        results = total(table_at(event, "modelUsage"))
    state = replace(state, results=results)
    return state, () if results is None else (usage_signal(state, results),)


# -- events: of the model and its tools ------------------------------------------------------------


def _assistant(state: ClaudeState, event: Event, now_ms: int | None) -> ClaudeStep:
    message = table_at(event, "message")
    agent, source = _agent(event), text_at(event, "parent_tool_use_id")
    is_own = not source
    if text_at(message, "model") == SYNTHETIC:
        return _of_program(state, event, message)
    output: list[OutputItem] = []
    signals: list[Signal] = []
    before = state.spending
    state = replace(state, spending=spent(before, source, message))
    is_first = state.spending.open[source][0] != before.open.get(source, ("", 0, 0))[0]
    if is_first and is_own:
        context = context_of(message)
        output += [] if context is None else [OutputItem(type=LineType.SYSTEM, context=context)]
    if state.spending != before:
        signals.append(usage_signal(state, state.spending.usage))
    begun_ms = at_ms(event) or now_ms
    for block in tables_at(message, "content"):
        state, piece = _block(state, block, agent=agent, begun_ms=begun_ms)
        output += [] if piece is None else [piece]
    if is_own:
        state = replace(state, is_working=True)
    return TurnStep(state, output=tuple(output), signals=tuple(signals))


def _of_program(state: ClaudeState, event: Event, answer: Event) -> ClaudeStep:
    """What the program itself puts into the model's mouth: API errors, above all."""
    message = "\n".join(text_at(each, "text") for each in tables_at(answer, "content"))
    reason = text_at(event, "error")
    if not message.strip():
        return TurnStep(state)
    if not reason:
        return note(state, message)
    text = shown(message)
    error = ApiError(
        message=text.removeprefix("API Error: ")[:ERROR_CHARS_MAX],
        status=_http_status(message, reason),
    )
    new = state if _agent(event) else replace(state, reason=reason)
    return TurnStep(new, output=(OutputItem(type=LineType.ERROR, text=text, api_error=error),))


def _block(
    state: ClaudeState, block: Event, *, agent: str, begun_ms: int | None
) -> tuple[ClaudeState, OutputItem | None]:
    """One block of an answer; ``agent`` is "" for the worker's own."""
    match text_at(block, "type"):
        case "text":
            text = text_at(block, "text")
            if not text.strip():
                return state, None
            if agent:
                return state, system_item(f"{SUBAGENT}{agent}: {text}")
            return replace(state, last_text=text), OutputItem(type=LineType.TEXT, text=shown(text))
        case "thinking":
            text = text_at(block, "thinking")
            if agent or not text.strip():
                return state, ALIVE
            return state, OutputItem(type=LineType.THINKING, text=shown(text))
        case "redacted_thinking":
            return state, ALIVE
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            return _begins(state, block, agent=agent, begun_ms=begun_ms)
        case kind if kind.endswith("tool_result"):
            return state, ALIVE
        case kind:
            return unknown_event(state, f"assistant/{kind}")


def _begins(
    state: ClaudeState, block: Event, *, agent: str, begun_ms: int | None
) -> tuple[ClaudeState, OutputItem]:
    name, call_id = text_at(block, "name") or "tool", text_at(block, "id")
    use = tool_use(name, given=block.get("input"), call_id=call_id, is_end=False)
    calls = dict(state.calls)
    if call_id:
        task = _texts(table_at(block, "input")) if name in claude_tasks.PLAN_TOOLS else {}
        calls[call_id] = ClaudeCall(use=use, begun_ms=begun_ms, is_own=not agent, task=task)
        while len(calls) > CALLS_MAX:
            del calls[next(iter(calls))]
    mark = SUBAGENT if agent else ""
    # A plan that is refused is none: it counts when its call has ended well.
    return replace(state, calls=calls), tool_item(replace(use, plan=None), mark=mark)


def _texts(given: Event) -> dict[str, str]:
    return {key: value for key, value in given.items() if isinstance(value, str)}


def _user(state: ClaudeState, event: Event, now_ms: int | None) -> ClaudeStep:
    """Results of tools come as messages of the user; other ones only repeat what was sent."""
    output: list[OutputItem] = []
    signals: list[Signal] = []
    end_ms = at_ms(event) or now_ms
    calls = dict(state.calls)
    for block in tables_at(table_at(event, "message"), "content"):
        if text_at(block, "type") != "tool_result":
            continue
        call_id = text_at(block, "tool_use_id")
        unseen = ToolUse(name="tool", call_id=call_id or None)
        call = calls.pop(call_id, None) or ClaudeCall(use=unseen, is_own=not _agent(event))
        use = _over(call, block, event, end_ms)
        if call.is_own and not use.is_error:
            tasks = claude_tasks.changed(
                state.tasks, use.name, call.task, table_at(event, "tool_use_result")
            )
            if tasks != state.tasks:
                use = replace(use, plan=tuple(each.item for each in tasks))
                state = replace(state, tasks=tasks)
        mark = "" if call.is_own else SUBAGENT
        output.append(tool_item(use, mark=mark))
        if call.is_own:
            signals.append(ToolSeen(key="", name=use.name))
    return TurnStep(
        replace(state, calls=calls), output=tuple(output) or (ALIVE,), signals=tuple(signals)
    )


def _over(call: ClaudeCall, block: Event, event: Event, end_ms: int | None) -> ToolUse:
    """The call with its end."""
    end = tool_result(block, event, is_shell=call.use.command is not None)
    took_ms = None
    if end_ms is not None and call.begun_ms is not None:
        took_ms = max(0, end_ms - call.begun_ms)
    # What it was asked was worked out when it began.
    ended = tool_use(call.use.name, returned=end.output)
    return replace(
        call.use,
        is_end=True,
        exit_code=end.exit_code,
        is_error=end.is_error,
        plan=None if end.is_error else call.use.plan,
        output=ended.output,
        duration_ms=took_ms,
    )


def _agent(event: Event) -> str:
    """Which agent of its own harness speaks; "" = the worker itself."""
    if not text_at(event, "parent_tool_use_id"):
        return ""
    kind = text_at(event, "subagent_type") or "agent"
    name = text_at(event, "task_description")
    return plain(f"{kind} ({name})" if name else kind)[:NAME_CHARS_MAX]


def _http_status(text: str, reason: str) -> int | None:
    """The HTTP status in ``API Error: 400 …``."""
    words = text.split()
    found = next((word for word in words[:6] if word.isdigit() and len(word) == 3), None)
    if found is not None:
        return int(found)
    return {"rate_limit": 429, "overloaded": 529, "authentication_failed": 401}.get(reason)


# -- small parts ----------------------------------------------------------------------------------


def _alive(state: ClaudeState, *_: object) -> ClaudeStep:
    return TurnStep(state, output=(ALIVE,))


def _quiet(state: ClaudeState, *_: object) -> ClaudeStep:
    return TurnStep(state)


def _unknown(state: ClaudeState, name: str, event: Event) -> ClaudeStep:
    """``name`` is the type, or ``system/SUBTYPE``."""
    subtype = "" if name.startswith("system/") else text_at(event, "subtype")
    full_name = f"{name or 'no type'}/{subtype}" if subtype else name or "no type"
    new, item = unknown_event(state, full_name)
    return TurnStep(new, output=(item,))


_Read = Callable[[ClaudeState, Event, int | None], ClaudeStep]
_EVENTS: Final[Mapping[str, _Read]] = {
    "system": _system,
    "assistant": _assistant,
    "user": _user,
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
