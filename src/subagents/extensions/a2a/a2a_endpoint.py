"""``/a2a/{agent}``: agents of ours for clients of the Agent2Agent protocol (docs/decisions/0048).

The protocol is spoken by ``a2a-sdk``, an extra that takes half a second to load: it is loaded with
the first request.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Final, Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive

from subagents.api.calls import extras
from subagents.api.calls.auth import A2A_PATH, Caller
from subagents.api.calls.call import SPAWN_BODY_BYTES_MAX, body_of, path_part
from subagents.api.calls.services import Services, services_of
from subagents.api.wire.decoding import parse_json
from subagents.config.settings import Agent
from subagents.errors import NotFound, UsageError
from subagents.extensions.a2a.a2a_settings import A2aSettings
from subagents.extensions.a2a.run_pushes import PACKAGE, pushes_in

CARD_PATH: Final = "/.well-known/agent-card.json"
DEPTH_MAX: Final = 64
"""How deep objects and lists may stand in one another; a call of the protocol needs a dozen."""
NO_JSON: Final = -32700
NO_CALL: Final = -32600
"""JSON-RPC 2.0, section 5.1."""
_HANDLER: Final = "subagents.extensions.a2a.a2a_handler"
_CARDS: Final = "subagents.extensions.a2a.a2a_card"


class Dispatcher(Protocol):
    """The part of the package's dispatcher that is used here."""

    async def handle_requests(self, request: Request) -> Response: ...


async def call(request: Request) -> Response:
    """POST /a2a/{agent}: one call of JSON-RPC, answered at once or as a stream."""
    services = services_of(request)
    _offered(services, path_part(request, "agent"))
    caller = Caller.of(request)
    # All of it is under the caller's session; later the package would answer for us.
    await services.engine.partitions.require_session(caller.session)
    body = await body_of(request, bytes_max=SPAWN_BODY_BYTES_MAX)
    try:
        # The package takes what it cannot read for a fault of its own, and logs a traceback.
        is_too_deep = _is_deeper(parse_json(body), DEPTH_MAX)
    except UsageError as error:
        return _unread(NO_JSON, error.message)
    if is_too_deep:
        return _unread(NO_CALL, f"the call is nested more than {DEPTH_MAX} levels deep")
    state = request.app.state
    if not hasattr(state, "a2a"):
        state.a2a = _dispatcher()
    dispatcher: Dispatcher = state.a2a
    return await dispatcher.handle_requests(Request(request.scope, _again(body, request.receive)))


def _is_deeper(value: object, levels: int) -> bool:
    """Whether objects and lists are more than so many levels deep; looks no further."""
    if not isinstance(value, dict | list):
        return False
    inner: Iterable[object] = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inner)


def _unread(code: int, why: str) -> Response:
    error = {"code": code, "message": why}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error})


async def card(request: Request) -> Response:
    """GET /a2a/{agent}/.well-known/agent-card.json: what the agent is, and how it is called."""
    return _card(request, path_part(request, "agent"))


async def first_card(request: Request) -> Response:
    """GET /.well-known/agent-card.json: the first agent's, where clients look that know a host."""
    offered = services_of(request).config_known().settings.table(A2aSettings).agents
    if not offered:
        raise _not_offered("agent")
    return _card(request, offered[0])


def _card(request: Request, agent_id: str) -> Response:
    services = services_of(request)
    agent = _offered(services, agent_id)
    Caller.of(request)
    url = f"{str(request.base_url).rstrip('/')}{A2A_PATH}/{agent_id}"
    document: dict[str, object] = extras.loaded(_CARDS, extra=PACKAGE).card(
        agent_id,
        agent,
        url=url,
        version=services.info.version,
        pushes=pushes_in(services) is not None,
    )
    return JSONResponse(document)


def _offered(services: Services, agent_id: str) -> Agent:
    """The agent, where the user offers it.

    Raises:
        NotFound: It is not among ``a2a.agents`` of the user's configuration.
    """
    settings = services.config_known().settings
    if agent_id not in settings.table(A2aSettings).agents:
        raise _not_offered(f"agent {agent_id!r}")
    return settings.agent(agent_id)


def _not_offered(what: str) -> NotFound:
    return NotFound(
        f"no {what} is offered over A2A",
        hint="name it in your own configuration: [a2a] agents = [...]",
    )


def _dispatcher() -> Dispatcher:
    handler = extras.loaded(_HANDLER, extra=PACKAGE)
    routes = import_module(f"{PACKAGE}.server.routes.jsonrpc_dispatcher")
    found: Dispatcher = routes.JsonRpcDispatcher(
        handler.RunHandler(),
        context_builder=handler.ExchangeBuilder(),
        enable_v0_3_compat=True,
    )
    return found


def _again(body: bytes, receive: Receive) -> Receive:
    """The body that was read already, then whatever comes (that the client went away)."""
    left = [body]

    async def next_message() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return next_message


ROUTES: Final = (
    Route(A2A_PATH + "/{agent}", call, methods=["POST"]),
    Route(A2A_PATH + "/{agent}" + CARD_PATH, card, methods=["GET"]),
    Route(CARD_PATH, first_card, methods=["GET"]),
)
