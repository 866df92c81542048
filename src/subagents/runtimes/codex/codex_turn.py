"""One turn of ``codex app-server`` as a fold: what each message does to the state; pure.

Source: 7-runtimes "codex".
"""

from collections.abc import Callable, Mapping
from typing import Final

from subagents.domain.redaction.redact import ending
from subagents.domain.rules.evidence import added
from subagents.domain.run.run import Usage
from subagents.domain.run.signals import (
    ResultSeen,
    SessionSeen,
    Signal,
    ToolSeen,
    UsageSeen,
)
from subagents.domain.run.values import Value, replace
from subagents.domain.run.worker_output import LineType, OutputItem
from subagents.errors import ConfigError
from subagents.runtimes.codex.codex_config import (
    Known,
    known_of,
    thread_params,
    turn_params,
)
from subagents.runtimes.codex.codex_options import Options, Prices, parse_options
from subagents.runtimes.codex.codex_scope import Scope
from subagents.runtimes.codex.codex_stream import (
    Fields,
    Problem,
    Tokens,
    context_of,
    fields,
    item_of,
    item_output,
    item_tool,
    notice_output,
    plan_output,
    problem_of,
    problem_output,
    system,
    text,
    tokens_of,
    unknown,
)
from subagents.runtimes.conversation import jsonrpc
from subagents.runtimes.conversation.dialect import InputLine, Opening, TurnStep
from subagents.runtimes.conversation.jsonrpc import Request, Response
from subagents.runtimes.output.output_reader import RESULT_BYTES_MAX

TELL: Final = "tell:"
NOT_LOGGED_IN: Final = (
    "Codex is not logged in for this user: run `codex login` (with a key: "
    "`printenv OPENAI_API_KEY | codex login --with-api-key`), or choose a model_provider of its "
    "own in runtime_options.config; CODEX_HOME is passed on"
)
INTERRUPTED: Final = "the turn was interrupted"


class State(Value, frozen=True):
    """All that the stream told so far."""

    opening: Opening
    asked: frozenset[str] = frozenset({"config", "account"})
    """What must be known before the thread begins, and is not yet."""
    known: Known | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    model: str | None = None
    tells: dict[str, bool] = {}
    """Messages by key, and whether they were taken."""
    tokens: dict[str, Tokens] = {}
    """By thread: our own, and those of Codex's sub-agents."""
    before: Tokens = Tokens()
    """What our thread had used before this turn."""
    last: str = ""
    """The last thing the model said."""
    problem: str | None = None
    """The last error it told of, for a turn that never ends."""
    is_limit: bool = False
    is_over: bool = False


# -- what it answers us --------------------------------------------------------------------------


def answered(state: State, answer: Response) -> TurnStep[State]:
    """Codex answered a request of ours, whose id says which; with that the next one is due."""
    failure = answer.failure
    name = str(answer.id)
    if name.startswith(TELL):
        tells = {**state.tells, name.removeprefix(TELL): failure is None}
        return TurnStep(replace(state, tells=tells))
    if state.is_over:
        return TurnStep(state)
    match name:
        case "initialize" if failure is None:
            return TurnStep(
                state,
                input_lines=(
                    InputLine("initialized", jsonrpc.notification("initialized", versioned=False)),
                    asking("config", "config/read", {"cwd": state.opening.cwd}),
                    asking("account", "account/read", {}),
                ),
            )
        case "config":
            known = known_of(answer.result) if failure is None else None
            return _learned(replace(state, known=known), name)
        case "account":
            return _learned(state, name, is_out=failure is None and _is_out(answer.result))
        case "thread" if failure is None:
            return _thread_begun(state, fields(answer.result))
        case "turn" if failure is None:
            turn = text(fields(fields(answer.result).get("turn")).get("id"))
            return TurnStep(replace(state, turn_id=turn or state.turn_id))
        case "initialize" | "thread" | "turn" if failure is not None:
            return ended(state, error=f"codex refused {name}: {failure.message}")
        case _:
            return TurnStep(state)


def _learned(state: State, name: str, *, is_out: bool = False) -> TurnStep[State]:
    """One thing more is known; with all of them the thread begins."""
    left = state.asked - {name}
    if is_out:
        return ended(state, error=NOT_LOGGED_IN)
    state = replace(state, asked=left)
    if left:
        return TurnStep(state)
    opening = state.opening
    options = _options(opening)
    if options is None:
        return ended(state, error="its options are not those of this version; spawn it again")
    if state.known is None and not Scope(opening.tools, opening.tools_deny).is_open:
        return ended(
            state, error="codex does not tell its configuration, so no tool scope can be enforced"
        )
    method = "thread/start" if opening.session_id is None else "thread/resume"
    params = thread_params(opening, options, state.known or Known())
    return TurnStep(state, input_lines=(asking("thread", method, params),))


def _is_out(result: object) -> bool:
    """Nobody is logged in, and the configured provider wants it."""
    account = fields(result)
    return account.get("requiresOpenaiAuth") is True and account.get("account") is None


def _thread_begun(state: State, result: Fields) -> TurnStep[State]:
    thread_id = text(fields(result.get("thread")).get("id"))
    if not thread_id:
        return ended(state, error="codex began a thread without an id")
    state = replace(state, thread_id=thread_id, model=text(result.get("model")) or None)
    return TurnStep(
        state,
        signals=(SessionSeen(key="", session_id=thread_id),),
        input_lines=(asking("turn", "turn/start", turn_params(state.opening, thread_id)),),
    )


# -- what it asks us -----------------------------------------------------------------------------


def asked(state: State, request: Request) -> TurnStep[State]:
    """Nobody is there to ask. What was allowed beforehand needs no approval; all else is declined.

    A tool of an MCP server is another matter: the user configured the server for Codex, or it is
    ours, and the scope took away what the worker must not use.
    """
    match request.method:
        case "item/commandExecution/requestApproval" | "item/fileChange/requestApproval":
            result: object = {"decision": "decline"}
        case "execCommandApproval" | "applyPatchApproval":
            result = {"decision": "denied"}
        case "mcpServer/elicitation/request" if _is_tool_approval(request.params):
            answer = {"action": "accept", "content": {}}
            return TurnStep(state, input_lines=(_reply(request, answer),))
        case "mcpServer/elicitation/request":
            result = {"action": "decline"}
        case "item/tool/requestUserInput":
            result = {"answers": {}}
        case "item/permissions/requestApproval":
            result = {"permissions": {}}
        case "item/tool/call":
            result = {"success": False, "contentItems": []}
        case method:
            line = jsonrpc.failure(
                request.id, jsonrpc.METHOD_NOT_FOUND, f"no {method} here", versioned=False
            )
            input_line = InputLine(f"reply:{request.id}", line)
            return TurnStep(state, output=(unknown(method),), input_lines=(input_line,))
    told = system(f"declined, for nobody is there to ask: {request.method}")
    return TurnStep(state, output=(told,), input_lines=(_reply(request, result),))


def _is_tool_approval(params: Fields) -> bool:
    return "codex_approval_kind" in fields(params.get("_meta"))


# -- what it tells us ----------------------------------------------------------------------------


def noticed(state: State, method: str, params: Fields) -> TurnStep[State]:
    """Codex tells what happens; of other threads than ours only the tokens count."""
    thread = text(params.get("threadId"))
    if method == "thread/tokenUsage/updated":
        return _counted(state, thread, params)
    if thread and state.thread_id is not None and thread != state.thread_id:
        return TurnStep(state)  # one of Codex's own sub-agents
    handler = _HANDLERS.get(method)
    if handler is not None:
        return handler(state, params)
    return TurnStep(state, output=(notice_output(method, params),))


def _turn_started(state: State, params: Fields) -> TurnStep[State]:
    turn = text(fields(params.get("turn")).get("id"))
    return TurnStep(replace(state, turn_id=state.turn_id or turn or None))


def _item_started(state: State, params: Fields) -> TurnStep[State]:
    piece = item_output(item_of(params), is_end=False)
    return TurnStep(state, output=() if piece is None else (piece,))


def _item_completed(state: State, params: Fields) -> TurnStep[State]:
    item = item_of(params)
    piece = item_output(item, is_end=True)
    tool = item_tool(item, is_end=True)
    if item.get("type") == "agentMessage" and text(item.get("text")).strip():
        state = replace(state, last=text(item.get("text")))
    signals: tuple[Signal, ...] = () if tool is None else (ToolSeen(key="", name=tool.name),)
    return TurnStep(state, output=() if piece is None else (piece,), signals=signals)


def _plan_updated(state: State, params: Fields) -> TurnStep[State]:
    return TurnStep(state, output=(plan_output(params),))


def _error(state: State, params: Fields) -> TurnStep[State]:
    will_retry = params.get("willRetry") is True
    problem = problem_of(fields(params.get("error")), will_retry=will_retry)
    state = replace(state, problem=problem.api_error.message, is_limit=problem.is_limit)
    # A last error comes again with the turn that it ends, and is said there.
    return TurnStep(state, output=(problem_output(problem),) if will_retry else ())


def _counted(state: State, thread: str, params: Fields) -> TurnStep[State]:
    """Tokens of a thread; those of ours from before this turn are counted already, or not ours.

    A thread that is gone on with tells its old count first, with the turn that it was of.
    """
    found = tokens_of(params)
    is_ours = thread == state.thread_id
    if is_ours and text(params.get("turnId")) != state.turn_id:
        return TurnStep(replace(state, before=found))
    state = replace(state, tokens={**state.tokens, thread: found})
    usage = added(state.opening.used, _usage(state)) or Usage()
    context = context_of(params, model=state.model) if is_ours else None
    heard = () if context is None else (replace(system(""), context=context),)
    return TurnStep(state, output=heard, signals=(UsageSeen(key="", usage=usage),))


def _usage(state: State) -> Usage:
    used = Tokens()
    for thread, tokens in state.tokens.items():
        own = tokens.since(state.before) if thread == state.thread_id else tokens
        used = used.plus(own)
    options = _options(state.opening)
    prices = None if options is None else options.prices
    return Usage(
        tokens_in=used.sent,
        tokens_out=used.received,
        cost_usd=None if prices is None else _cost_usd(used, prices),
    )


def _cost_usd(used: Tokens, prices: Prices) -> float:
    cached = prices.input if prices.cached is None else prices.cached
    fresh = max(used.sent - used.cached, 0)
    return (fresh * prices.input + used.cached * cached + used.received * prices.output) / 1e6


def _turn_completed(state: State, params: Fields) -> TurnStep[State]:
    if state.is_over:
        return TurnStep(state)
    turn = fields(params.get("turn"))
    match turn.get("status"):
        case "completed":
            return ended(state)
        case "interrupted":
            return ended(state, error=INTERRUPTED)
        case _:
            problem = problem_of(fields(turn.get("error")))
            return _failed(state, problem)


def _failed(state: State, problem: Problem) -> TurnStep[State]:
    step = ended(state, error=problem.api_error.message, is_limit=problem.is_limit)
    return step._replace(output=(problem_output(problem),))


_HANDLERS: Final[Mapping[str, Callable[[State, Fields], TurnStep[State]]]] = {
    "turn/started": _turn_started,
    "turn/completed": _turn_completed,
    "turn/plan/updated": _plan_updated,
    "item/started": _item_started,
    "item/completed": _item_completed,
    "error": _error,
}


# -- parts ---------------------------------------------------------------------------------------


def ended(state: State, *, error: str | None = None, is_limit: bool = False) -> TurnStep[State]:
    """The turn is over; its result is the last thing that the model said."""
    data = state.last.encode("utf-8", "replace")
    result = ResultSeen(
        key="",
        text=ending(data, RESULT_BYTES_MAX),
        bytes_total=len(data) if len(data) > RESULT_BYTES_MAX else 0,
        is_error=error is not None,
        error=error,
        is_limit=is_limit,
    )
    told: tuple[OutputItem, ...] = ()
    if error is not None:
        kind = LineType.SYSTEM if error == INTERRUPTED else LineType.ERROR
        told = (replace(system(error), type=kind),)
    return TurnStep(replace(state, is_over=True), output=told, signals=(result,))


def _options(opening: Opening) -> Options | None:
    try:
        return parse_options(opening.options)
    except ConfigError:
        return None


def asking(name: str, method: str, params: object, *, key: str | None = None) -> InputLine:
    """A request whose id says what its answer is about."""
    return InputLine(key or name, jsonrpc.request(name, method, params, versioned=False))


def _reply(request: Request, result: object) -> InputLine:
    return InputLine(f"reply:{request.id}", jsonrpc.response(request.id, result, versioned=False))
