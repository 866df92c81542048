"""One turn of ``codex app-server`` as a fold: what each message does to the state; pure."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from subagents.domain.rules.evidence import added
from subagents.domain.rules.tool_kinds import ToolScope
from subagents.domain.run.signals import (
    SessionSeen,
    Signal,
    ToolSeen,
    UsageSeen,
)
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import Value, replace
from subagents.domain.run.worker_output import LineType, OutputItem
from subagents.errors import ConfigError
from subagents.extensions.codex.codex_config import (
    UserConfig,
    asks,
    thread_params,
    turn_params,
    user_config,
)
from subagents.extensions.codex.codex_options import CodexOptions, Prices, parse_options
from subagents.extensions.codex.codex_stream import (
    CodexError,
    Fields,
    TokenCount,
    changes,
    context_of,
    item_of,
    item_output,
    item_tool,
    notice_output,
    problem_of,
    problem_output,
    tokens_of,
    unknown,
)
from subagents.extensions.conversation import jsonrpc
from subagents.extensions.conversation.dialect import (
    PERMISSIONS_MAX,
    Answers,
    InputLine,
    Opening,
    Permissions,
    TurnStep,
    asked_for,
    noted,
)
from subagents.extensions.conversation.json_fields import as_table, table_at, text_at, value_at
from subagents.extensions.conversation.jsonrpc import Request, Response
from subagents.runtimes.output.output_items import ALIVE, result_signal, system_item

STEER: Final = "tell:"
"""Begins the id of a message into the turn; also of messages that 0.1.0 sent."""
NOT_LOGGED_IN: Final = (
    "Codex is not logged in for this user: run `codex login` (with a key: "
    "`printenv OPENAI_API_KEY | codex login --with-api-key`), or choose a model_provider of its "
    "own in runtime_options.config; CODEX_HOME is passed on"
)
INTERRUPTED: Final = "the turn was interrupted"


class CodexState(Value, frozen=True):
    """What the stream came to so far; kept in the attempt's checkpoint."""

    opening: Opening
    asked: frozenset[str] = frozenset({"config", "account"})
    """What must be known before the thread begins, and is not yet."""
    known: UserConfig | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    model: str | None = None
    tells: dict[str, bool] = {}
    """Messages by key, and whether they were taken."""
    tokens: dict[str, TokenCount] = {}
    """Counts of tokens by thread: our own, and those of Codex's sub-agents."""
    before: TokenCount = TokenCount()
    """What our thread had used before this turn."""
    last: str = ""
    """The last text of the model."""
    problem: str | None = None
    """The last error it reported, for a turn that never ends."""
    is_limit: bool = False
    is_over: bool = False
    permissions: Answers = {}
    patches: dict[str, str] = {}
    """What the newest patches change, by their items: a question about one does not say it."""


CodexStep: TypeAlias = TurnStep[CodexState]


# -- what it answers us --------------------------------------------------------------------------


def answered(state: CodexState, answer: Response) -> CodexStep:
    """Codex answered a request of ours, whose id says which; with that the next one is due."""
    failure = answer.failure
    name = str(answer.id)
    if name.startswith(STEER):
        tells = {**state.tells, name.removeprefix(STEER): failure is None}
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
            known = user_config(answer.result) if failure is None else None
            return _learned(replace(state, known=known), name)
        case "account":
            return _learned(state, name, is_out=failure is None and _is_out(answer.result))
        case "thread" if failure is None:
            return _thread_begun(state, as_table(answer.result))
        case "turn" if failure is None:
            turn = text_at(value_at(answer.result, "turn"), "id")
            return TurnStep(replace(state, turn_id=turn or state.turn_id))
        case "initialize" | "thread" | "turn" if failure is not None:
            return ended(state, error=f"codex refused {name}: {failure.message}")
        case _:
            return TurnStep(state)


def _learned(state: CodexState, name: str, *, is_out: bool = False) -> CodexStep:
    """One thing more is known; with all of them the thread begins."""
    left = state.asked - {name}
    if is_out:
        return ended(state, error=noted(NOT_LOGGED_IN, state.opening.login_note))
    state = replace(state, asked=left)
    if left:
        return TurnStep(state)
    opening = state.opening
    options = _options(opening)
    if options is None:
        return ended(state, error="its options are not those of this version; spawn it again")
    is_open = ToolScope(opening.tools, opening.tools_deny).is_open
    if state.known is None and (opening.are_servers_named or not is_open):
        return ended(
            state, error="codex does not report its configuration, so no tool scope can be enforced"
        )
    method = "thread/start" if opening.session_id is None else "thread/resume"
    params = thread_params(opening, options, state.known or UserConfig())
    return TurnStep(state, input_lines=(asking("thread", method, params),))


def _is_out(result: object) -> bool:
    """Nobody is logged in, and the configured provider wants it."""
    account = as_table(result)
    return value_at(account, "requiresOpenaiAuth") is True and value_at(account, "account") is None


def _thread_begun(state: CodexState, result: Fields) -> CodexStep:
    thread_id = text_at(value_at(result, "thread"), "id")
    if not thread_id:
        return ended(state, error="codex began a thread without an id")
    state = replace(state, thread_id=thread_id, model=text_at(result, "model") or None)
    return TurnStep(
        state,
        signals=(SessionSeen(key="", session_id=thread_id),),
        input_lines=(asking("turn", "turn/start", turn_params(state.opening, thread_id)),),
    )


# -- what it asks us -----------------------------------------------------------------------------


def asked(state: CodexState, request: Request) -> CodexStep:
    """Nobody is there to ask. What was allowed beforehand needs no approval; all else is declined.

    A tool of an MCP server is another matter: the user configured the server for Codex, or it is
    ours, and the scope took away what the worker must not use.
    """
    options = _options(state.opening)
    if request.method in _APPROVALS and options is not None and asks(state.opening, options):
        return _may_it(state, request)
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
    item = system_item(f"declined, for nobody is there to ask: {request.method}")
    return TurnStep(state, output=(item,), input_lines=(_reply(request, result),))


_APPROVALS: Final = {
    "item/commandExecution/requestApproval": ("accept", "acceptForSession", "decline"),
    "item/fileChange/requestApproval": ("accept", "acceptForSession", "decline"),
    "execCommandApproval": ("approved", "approved_for_session", "denied"),
    "applyPatchApproval": ("approved", "approved_for_session", "denied"),
}
"""What it asks permission by, and its words for yes, for yes from now on, and for no."""
_OF_PATCHES: Final = frozenset({"item/fileChange/requestApproval", "applyPatchApproval"})


def _may_it(state: CodexState, request: Request) -> CodexStep:
    once, lasting, deny = (
        jsonrpc.response(request.id, {"decision": word}, versioned=False).decode()
        for word in _APPROVALS[request.method]
    )
    given: object = text_at(request.params, "reason")
    if patch := state.patches.get(text_at(request.params, "itemId")):
        given = {"path": patch}
    elif command := value_at(request.params, "command"):
        given = {"command": command}
    known, signal = asked_for(
        state.permissions,
        Permissions(once=once, lasting=lasting, deny=deny),
        call_id=f"reply:{request.id}",
        tool="apply_patch" if request.method in _OF_PATCHES else "shell",
        given=given,
    )
    return TurnStep(replace(state, permissions=known), signals=(signal,))


def _is_tool_approval(params: Fields) -> bool:
    return "codex_approval_kind" in table_at(params, "_meta")


# -- what it reports -----------------------------------------------------------------------------


def noticed(state: CodexState, method: str, params: Fields) -> CodexStep:
    """Codex reports what happens; of other threads than ours only the tokens count."""
    thread = text_at(params, "threadId")
    if method == "thread/tokenUsage/updated":
        return _counted(state, thread, params)
    if thread and state.thread_id is not None and thread != state.thread_id:
        return TurnStep(state)  # one of Codex's own sub-agents
    handler = _HANDLERS.get(method)
    if handler is not None:
        return handler(state, params)
    return TurnStep(state, output=(notice_output(method, params),))


def _turn_started(state: CodexState, params: Fields) -> CodexStep:
    turn = text_at(value_at(params, "turn"), "id")
    return TurnStep(replace(state, turn_id=state.turn_id or turn or None))


def _item_started(state: CodexState, params: Fields) -> CodexStep:
    item = item_of(params)
    piece = item_output(item, is_end=False)
    if changed := changes(item):
        patches = {**state.patches, text_at(item, "id"): ", ".join(changed)}
        state = replace(state, patches=dict([*patches.items()][-PERMISSIONS_MAX:]))
    return TurnStep(state, output=() if piece is None else (piece,))


def _item_completed(state: CodexState, params: Fields) -> CodexStep:
    item = item_of(params)
    piece = item_output(item, is_end=True)
    tool = item_tool(item, is_end=True)
    if value_at(item, "type") == "agentMessage" and text_at(item, "text").strip():
        state = replace(state, last=text_at(item, "text"))
    signals: tuple[Signal, ...] = () if tool is None else (ToolSeen(key="", name=tool.name),)
    return TurnStep(state, output=() if piece is None else (piece,), signals=signals)


def _error(state: CodexState, params: Fields) -> CodexStep:
    will_retry = value_at(params, "willRetry") is True
    problem = problem_of(table_at(params, "error"), will_retry=will_retry)
    state = replace(state, problem=problem.api_error.message, is_limit=problem.is_limit)
    # A last error comes again with the turn that it ends, and is shown there.
    return TurnStep(state, output=(problem_output(problem),) if will_retry else ())


def _counted(state: CodexState, thread: str, params: Fields) -> CodexStep:
    """TokenCount of a thread; those of ours from before this turn are counted already, or not ours.

    A resumed thread reports its old count first, under the turn that it was of.
    """
    found = tokens_of(params)
    is_ours = thread == state.thread_id
    if is_ours and text_at(params, "turnId") != state.turn_id:
        return TurnStep(replace(state, before=found))
    state = replace(state, tokens={**state.tokens, thread: found})
    usage = added(state.opening.used, _usage(state)) or Usage()
    context = context_of(params, model=state.model) if is_ours else None
    output = () if context is None else (replace(ALIVE, context=context),)
    return TurnStep(state, output=output, signals=(UsageSeen(key="", usage=usage),))


def _usage(state: CodexState) -> Usage:
    used = TokenCount()
    for thread, tokens in state.tokens.items():
        own = tokens.since(state.before) if thread == state.thread_id else tokens
        used = used.plus(own)
    options = _options(state.opening)
    prices = None if options is None else options.prices
    return Usage(
        tokens_in=used.sent,
        tokens_out=used.received,
        tokens_cache_read=used.cached,
        cost_usd=None if prices is None else _cost_usd(used, prices),
    )


def _cost_usd(used: TokenCount, prices: Prices) -> float:
    cached = prices.input if prices.cached is None else prices.cached
    fresh = max(used.sent - used.cached, 0)
    return (fresh * prices.input + used.cached * cached + used.received * prices.output) / 1e6


def _turn_completed(state: CodexState, params: Fields) -> CodexStep:
    if state.is_over:
        return TurnStep(state)
    turn = table_at(params, "turn")
    match value_at(turn, "status"):
        case "completed":
            return ended(state)
        case "interrupted":
            return ended(state, error=INTERRUPTED)
        case _:
            problem = problem_of(table_at(turn, "error"))
            return _failed(state, problem)


def _failed(state: CodexState, problem: CodexError) -> CodexStep:
    step = ended(state, error=problem.api_error.message, is_limit=problem.is_limit)
    return step._replace(output=(problem_output(problem),))


_HANDLERS: Final[Mapping[str, Callable[[CodexState, Fields], CodexStep]]] = {
    "turn/started": _turn_started,
    "turn/completed": _turn_completed,
    "item/started": _item_started,
    "item/completed": _item_completed,
    "error": _error,
}


# -- parts ---------------------------------------------------------------------------------------


def ended(state: CodexState, *, error: str | None = None, is_limit: bool = False) -> CodexStep:
    """The turn is over; its result is the last text of the model."""
    output: tuple[OutputItem, ...] = ()
    if error is not None:
        kind = LineType.SYSTEM if error == INTERRUPTED else LineType.ERROR
        output = (replace(system_item(error), type=kind),)
    result = result_signal(state.last, error=error, is_limit=is_limit)
    return TurnStep(replace(state, is_over=True), output=output, signals=(result,))


def _options(opening: Opening) -> CodexOptions | None:
    try:
        return parse_options(opening.options)
    except ConfigError:
        return None


def asking(name: str, method: str, params: object, *, key: str | None = None) -> InputLine:
    """A request whose id says what its answer is about."""
    return InputLine(key or name, jsonrpc.request(name, method, params, versioned=False))


def _reply(request: Request, result: object) -> InputLine:
    return InputLine(f"reply:{request.id}", jsonrpc.response(request.id, result, versioned=False))
