"""One turn of an ACP agent as a fold over what it writes; pure.

Requests of ours have ids that say what they are (``initialize``, ``prompt``), so an answer needs
no table to be understood, and the fold over ``out`` is all there is.

A message into a turn that is under way needs care: what was sent is not in ``out``, and the answer
to the first prompt may come before the agent has read the second. So the message goes out in the
id of a request that no agent knows (``MARK``). Its refusal comes back through ``out`` and carries
the message: when the turn is still open there, the prompt is sent and the turn is not over before
it is answered; else it was not taken, and stays for the next turn.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from subagents.domain.rules.tool_kinds import ToolScope
from subagents.domain.run.signals import (
    ResultSeen,
    SessionSeen,
    Signal,
    UsageSeen,
)
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import Value, replace
from subagents.domain.run.worker_output import ApiError, LineType, OutputItem
from subagents.extensions.acp import acp_failures, acp_session, acp_stream
from subagents.extensions.acp.acp_agents import (
    PULL,
    AcpOptions,
    AgentFacts,
    SecondPrompt,
    TokenSource,
)
from subagents.extensions.acp.acp_scope import may_use
from subagents.extensions.acp.acp_session import SessionAbilities
from subagents.extensions.acp.acp_stream import AcpCall, AcpStream
from subagents.extensions.conversation import jsonrpc
from subagents.extensions.conversation.dialect import (
    SERVER,
    Answers,
    InputLine,
    Opening,
    Permissions,
    TurnStep,
    asked_for,
)
from subagents.extensions.conversation.json_fields import table_at, text_at, value_at
from subagents.runtimes.output.output_items import result_signal, system_item

MARK: Final = "_subagents/mark"
"""A request no agent knows; see the head of this file."""
KEPT_MAX: Final = 1_000
STEER: Final = "steer:"
"""Beginning of the id that a message goes out in."""

FIRST: Final = "initialize"
_PROMPT: Final = "prompt"
_MARKED: Final = msgspec.json.Decoder(tuple[str, str])


class AcpPhase(StrEnum):
    """How far the turn is."""

    SETUP = "setup"
    SETTINGS = "settings"
    TURN = "turn"
    OVER = "over"


class AcpState(Value, frozen=True):
    """A fold over what the agent wrote."""

    opening: Opening
    facts: AgentFacts
    options: AcpOptions
    phase: AcpPhase = AcpPhase.SETUP
    asked: str = FIRST
    """The request of the setup that was not answered yet."""
    session: SessionAbilities = SessionAbilities()
    session_id: str = ""
    auth_methods: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    """Ids of settings that were not answered yet."""
    open: tuple[str, ...] = ()
    """Ids of prompts that were not answered yet."""
    taken: dict[str, bool] = {}
    """Whether a message into the turn was taken, by its key."""
    waiting: tuple[tuple[str, str], ...] = ()
    """Key and text of messages that the agent has yet to ask for."""
    stream: AcpStream = AcpStream()
    permissions: Answers = {}

    @property
    def scope(self) -> ToolScope:
        return ToolScope(tools=self.opening.tools, deny=self.opening.tools_deny)


AcpStep: TypeAlias = TurnStep[AcpState]


# -- answers to our requests ----------------------------------------------------------------------


def answered(state: AcpState, answer: jsonrpc.Response) -> AcpStep:
    """What follows from an answer to one of our requests."""
    id = answer.id if isinstance(answer.id, str) else ""  # noqa: A001 - the member's name
    if id.startswith(STEER):
        return _marked(state, id)
    if id in state.open:
        return _prompted(state, id, answer)
    if state.phase is AcpPhase.SETTINGS and id in state.settings:
        return _set(state, id, answer)
    if id.startswith(acp_session.TRIED):
        refused = (
            None if answer.failure is None else acp_failures.setup(id, answer, (), state.opening)
        )
        return TurnStep(state, output=() if refused is None else (system_item(refused.error),))
    if state.phase is not AcpPhase.SETUP:
        return _unknown(state, f"answer {answer.id}")
    match id:
        case "initialize":
            return _initialized(state, answer)
        case "authenticate" if answer.failure is None:
            return _open_session(state)
        case "session" if answer.failure is not None and state.opening.session_id is not None:
            return _open_session(state, again=True)
        case "session" | "session:load" if answer.failure is None:
            return _opened(state, answer.result)
        case "authenticate" | "session" | "session:load":
            return _failed(state, acp_failures.setup(id, answer, state.auth_methods, state.opening))
        case _:
            return _unknown(state, f"answer {answer.id}")


def _initialized(state: AcpState, answer: jsonrpc.Response) -> AcpStep:
    if answer.failure is not None:
        return _failed(state, acp_failures.setup("initialize", answer, (), state.opening))
    version = value_at(answer.result, "protocolVersion")
    if version != acp_session.PROTOCOL_VERSION:
        error = f"the agent speaks version {version!r} of the protocol, and this is version 1"
        return _failed(state, acp_failures.AcpFailure(error))
    methods = tuple(acp_session.auth_methods(answer.result))
    session = acp_session.sessions_of(answer.result)
    state = replace(state, session=session, auth_methods=methods)
    if state.facts.auth:
        asked = acp_session.ask("authenticate", "authenticate", {"methodId": state.facts.auth})
        return TurnStep(replace(state, asked="authenticate"), input_lines=(asked,))
    return _open_session(state)


def _open_session(state: AcpState, *, again: bool = False) -> AcpStep:
    input_line = acp_session.open_session(state.opening, state.facts, state.session, again=again)
    if input_line is None:
        error = f"the agent cannot resume its session {state.opening.session_id}"
        return _failed(state, acp_failures.AcpFailure(error))
    state = replace(state, asked="session/load" if again else "session/new")
    return TurnStep(state, input_lines=(input_line,))


def _opened(state: AcpState, opened: object) -> AcpStep:
    session_id = state.opening.session_id or text_at(opened, "sessionId")
    if not session_id:
        return _failed(state, acp_failures.AcpFailure("the agent opened a session without an id"))
    found = acp_session.settings_of(
        state.opening,
        state.facts,
        state.options,
        opened,
        session_id,
        with_title=state.session.can_title,
    )
    if found.missing is not None:
        return _failed(state, acp_failures.AcpFailure(found.missing))
    state = replace(state, session_id=session_id, phase=AcpPhase.SETTINGS, asked=FIRST)
    seen: tuple[Signal, ...] = (SessionSeen(key="", session_id=session_id),)
    beside, input_lines = (
        tuple(acp_session.ask(each.id, each.method, each.params) for each in listed)
        for listed in (found.beside, found.settings)
    )
    if not found.settings:
        step = _begin_turn(state, seen)
        return step._replace(input_lines=(*beside, *step.input_lines))
    state = replace(state, settings=tuple(each.id for each in found.settings))
    return TurnStep(state, signals=seen, input_lines=(*beside, *input_lines))


def _set(state: AcpState, id: str, answer: jsonrpc.Response) -> AcpStep:  # noqa: A002
    output: tuple[OutputItem, ...] = ()
    if answer.failure is not None:
        failure = acp_failures.setup(id, answer, (), state.opening)
        if not id.startswith(acp_session.TRIED):
            return _failed(state, failure)
        output = (OutputItem(type=LineType.SYSTEM, text=failure.error),)
    state = replace(state, settings=tuple(each for each in state.settings if each != id))
    step = TurnStep(state) if state.settings else _begin_turn(state, ())
    return step._replace(output=output)


def _begin_turn(state: AcpState, signals: tuple[Signal, ...]) -> AcpStep:
    text = acp_session.first_prompt(state.opening, state.facts)
    line = acp_session.prompt(_PROMPT, state.session_id, text)
    # What came before is the history of a resumed session: no news.
    stream = AcpStream(cost_before=state.stream.cost_before)
    state = replace(state, phase=AcpPhase.TURN, open=(_PROMPT,), stream=stream)
    return TurnStep(state, signals=signals, input_lines=(InputLine(_PROMPT, line),))


def _marked(state: AcpState, id: str) -> AcpStep:  # noqa: A002
    """The agent read the mark: the message is sent now, or it comes too late."""
    try:
        key, message = _MARKED.decode(id.removeprefix(STEER).encode())
    except (msgspec.DecodeError, UnicodeError):
        return _unknown(state, "answer to a mark")
    if key in state.taken or len(state.taken) >= KEPT_MAX:
        return TurnStep(state)
    if state.open and state.facts.second_prompt is SecondPrompt.PULLED:
        known = (key, message) in state.waiting
        return TurnStep(
            state if known else replace(state, waiting=(*state.waiting, (key, message)))
        )
    is_open = bool(state.open)
    state = replace(state, taken={**state.taken, key: is_open})
    if not is_open:
        return TurnStep(state)
    prompt_id = f"{_PROMPT}:{key}"
    line = acp_session.prompt(prompt_id, state.session_id, message)
    state = replace(state, open=(*state.open, prompt_id))
    return TurnStep(state, input_lines=(InputLine(prompt_id, line),))


def _prompted(state: AcpState, id: str, answer: jsonrpc.Response) -> AcpStep:  # noqa: A002
    """A prompt is answered; the turn is over when it was the last one."""
    step = acp_stream.flush(state.stream)
    stream, signals = step.stream, []
    usage = _turn_usage(state.facts, answer.result)
    if usage is not None:
        stream = replace(stream, usage=acp_stream.add(stream.usage, usage))
        signals.append(UsageSeen(key="", usage=stream.usage))
    state = replace(state, stream=stream, open=tuple(each for each in state.open if each != id))
    if state.open:
        return TurnStep(state, output=step.output, signals=tuple(signals))
    state = _given(state, is_taken=False)  # what it never asked for waits for the next turn
    failure = acp_failures.ending(answer) or acp_failures.reported(stream, state.facts)
    output = step.output if failure is None else (*step.output, failure.item())
    result = result_of(stream) if failure is None else result_of(stream, failure.error, failure)
    return TurnStep(replace(state, phase=AcpPhase.OVER), output=output, signals=(*signals, result))


def _turn_usage(facts: AgentFacts, result: object) -> Usage | None:
    match facts.tokens:
        case TokenSource.TURN:
            return acp_stream.tokens_of(value_at(result, "usage"))
        case TokenSource.QUOTA:
            return acp_stream.tokens_of(
                value_at(value_at(value_at(result, "_meta"), "quota"), "token_count")
            )
        case TokenSource.REQUESTS | TokenSource.UNKNOWN:
            return None


# -- what the agent reports and asks --------------------------------------------------------------


def updated(state: AcpState, update: Mapping[str, object], *, now_ms: int | None) -> AcpStep:
    if state.phase is not AcpPhase.TURN:
        # The history of a resumed session, or what it offers: no news to anybody.
        before = acp_stream.cost_of(update) or state.stream.cost_before
        return TurnStep(replace(state, stream=replace(state.stream, cost_before=before)))
    step = acp_stream.stream_step(
        state.stream,
        update,
        now_ms=now_ms,
        sums_requests=state.facts.tokens is TokenSource.REQUESTS,
    )
    return TurnStep(replace(state, stream=step.stream), output=step.output, signals=step.signals)


def notified(state: AcpState, method: str) -> AcpStep:
    return TurnStep(state) if _is_extension(method) else _unknown(state, method)


def asked(state: AcpState, request: jsonrpc.Request, *, now_ms: int | None) -> AcpStep:
    key = f"answer:{type(request.id).__name__}:{request.id}"
    if request.method == "session/request_permission":
        return _permit(state, request, key, now_ms=now_ms)
    if request.method == PULL and state.facts.second_prompt is SecondPrompt.PULLED:
        messages = [text for _, text in state.waiting]
        pulled = {"messages": messages, "hasQueuedPrompt": False}
        line = jsonrpc.response(request.id, pulled, versioned=True)
        return TurnStep(_given(state, is_taken=True), input_lines=(InputLine(key, line),))
    if request.method == "elicitation/create":
        line = jsonrpc.response(request.id, {"action": "decline"}, versioned=True)
        return TurnStep(state, input_lines=(InputLine(key, line),))
    text = f"{request.method}: this client does not do that"
    line = jsonrpc.failure(request.id, jsonrpc.METHOD_NOT_FOUND, text, versioned=True)
    step = TurnStep(state) if _is_extension(request.method) else _unknown(state, request.method)
    return step._replace(input_lines=(InputLine(key, line),))


def _given(state: AcpState, *, is_taken: bool) -> AcpState:
    taken = {**state.taken, **{key: is_taken for key, _ in state.waiting}}
    return replace(state, waiting=(), taken=taken)


def _is_extension(method: str) -> bool:
    """What is not the protocol's own need not be known; some leave out the underscore it wants."""
    return method.startswith("_") or method.partition("/")[0] not in {"session", "fs", "terminal"}


_ALLOW: Final = ("allow_once", "allow_always")
_REJECT: Final = ("reject_once", "reject_always")


def _permit(state: AcpState, request: jsonrpc.Request, key: str, *, now_ms: int | None) -> AcpStep:
    asked = table_at(request.params, "toolCall")
    step = acp_stream.learn(state.stream, asked, now_ms=now_ms)
    call = acp_stream.call_of(step.stream, asked)
    is_allowed = may_use(
        state.facts, state.scope, name=call.name, kind=call.kind, is_ours=_is_ours(call, asked)
    )
    once, lasting, deny = (
        jsonrpc.response(
            request.id, {"outcome": _outcome(request.params.get("options"), kinds)}, versioned=True
        )
        for kinds in (_ALLOW, _ALLOW[::-1], _REJECT)
    )
    state = replace(state, stream=step.stream)
    if is_allowed and state.options.ask and not _is_ours(call, asked):
        answers = Permissions(once=once.decode(), lasting=lasting.decode(), deny=deny.decode())
        known, signal = asked_for(
            state.permissions,
            answers,
            call_id=key,
            tool=call.name or call.title or call.kind,
            given=value_at(asked, "rawInput") or call.title,
        )
        state = replace(state, permissions=known)
        return TurnStep(state, output=step.output, signals=(*step.signals, signal))
    line, output = once if is_allowed else deny, step.output
    if not is_allowed:
        text = f"not permitted: {call.name or call.title or call.kind}"
        refusal = OutputItem(type=LineType.ERROR, text=text, api_error=ApiError(message=text))
        output = (*output, refusal)
    return TurnStep(state, output=output, signals=step.signals, input_lines=(InputLine(key, line),))


def _is_ours(call: AcpCall, asked: Mapping[str, object]) -> bool:
    """A tool of our MCP server, by the names that agents give such tools."""
    meta = value_at(asked, "_meta")
    server = value_at(value_at(value_at(meta, "claudeCode"), "mcpServer"), "name")
    goose = value_at(value_at(value_at(meta, "goose"), "toolCall"), "extensionName")
    places = (f"mcp__{SERVER}__", f"mcp_{SERVER}_", f"mcp.{SERVER}.", f"{SERVER}_", f"{SERVER}-")
    return SERVER in {server, goose} or call.name.startswith(places)


def _outcome(options: object, kinds: tuple[str, ...]) -> dict[str, object]:
    """The first option of the first of these kinds; none is offered = the call is cancelled."""
    offered = options if isinstance(options, list) else []
    for kind in kinds:
        for option in offered:
            if value_at(option, "kind") == kind and value_at(option, "optionId") is not None:
                return {"outcome": "selected", "optionId": value_at(option, "optionId")}
    return {"outcome": "cancelled"}


def _unknown(state: AcpState, name: str) -> AcpStep:
    step = acp_stream.unknown(state.stream, name)
    return TurnStep(replace(state, stream=step.stream), output=step.output)


# -- ends -----------------------------------------------------------------------------------------


def _failed(state: AcpState, failure: acp_failures.AcpFailure) -> AcpStep:
    """The turn could not begin."""
    result = result_of(state.stream, failure.error, failure)
    return TurnStep(
        replace(state, phase=AcpPhase.OVER, open=()), output=(failure.item(),), signals=(result,)
    )


def result_of(
    stream: AcpStream, error: str | None = None, failure: acp_failures.AcpFailure | None = None
) -> ResultSeen:
    """The turn's result: the last message of the agent."""
    return result_signal(
        stream.last_words,
        error=error,
        is_limit=failure is not None and failure.is_limit,
        retry_after_ms=None if failure is None else failure.retry_after_ms,
    )
