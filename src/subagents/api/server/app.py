"""The daemon's HTTP application: the routes, and one error document for everything that fails.

On the Unix socket there is no Host or Origin to check: no browser can reach it.
"""

import contextlib
import logging
from collections.abc import Sequence
from types import ModuleType
from typing import Final, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, ExceptionHandler, Message, Receive, Scope, Send

from subagents import extension
from subagents.api.calls.auth import note_if_refused
from subagents.api.calls.call import problem, status_of
from subagents.api.calls.services import Services
from subagents.api.server import openapi
from subagents.errors import Elsewhere, Forbidden, NotFound, SubagentsError, Unavailable, UsageError

log = logging.getLogger(__name__)

CLIENT_GONE: Final = 499
"""The client is gone; the number is nginx's."""
_OF_THIS_PROCESS: Final = frozenset({"/healthz", "/readyz", "/metrics", "/version", "/v1/shutdown"})
"""What these answer is about this process, whoever owns the runs."""
_SPAWNS: Final = frozenset({"/v1/runs", "/v1/plans"})


class Endpoint(Protocol):
    """A path that speaks a protocol of its own, and says in it what went wrong."""

    path: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call, as ASGI has it."""
        ...

    def refusal(self, request: Request, error: SubagentsError, body: bytes) -> Response:
        """The answer to a call that no node of the cluster could serve."""
        ...

    async def stop(self) -> None:
        """End what is left of the calls under way. Idempotent."""
        ...


def parts() -> Sequence[ModuleType]:
    """The modules of all routes: the core's and those of extensions."""
    return (*openapi.CORE, openapi, *extension.route_modules())


def create_app(services: Services) -> Starlette:
    """The application that answers for ``services``; nothing is started by it."""
    handlers: dict[object, ExceptionHandler] = {
        SubagentsError: refused,
        HTTPException: unroutable,
        ClientDisconnect: abandoned,
        Exception: broken,
    }
    found = extension.made("endpoints", services)
    endpoints: list[Endpoint] = [each for _, some in found for each in some]
    # Another node's answer has been checked there: so what forwards stands outside our own check.
    made = extension.made("middleware", services, unserved)
    more = [each for _, found in made for each in found]
    around = [Middleware(RawPaths), *more, Middleware(CurrentAnswers, services=services)]
    app = Starlette(
        # They are tried in turn, and agents call more often than all other clients.
        routes=[
            *(Route(each.path, each) for each in endpoints),
            *(route for part in parts() for route in part.ROUTES),
        ],
        exception_handlers=handlers,
        middleware=around,
    )
    app.router.redirect_slashes = False
    app.state.services = services
    app.state.endpoints = endpoints
    return app


class RawPaths:
    """Routes by the path as it was sent: a label in it may contain an escaped slash."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
        await self._app(scope, receive, send)


class CurrentAnswers:
    """Lets an answer leave only while no other node can have changed what it says."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._engine = services.engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_looked_at = scope["type"] == "http" and scope["path"] not in _OF_THIS_PROCESS
        if not is_looked_at or not self._engine.may_be_over:
            await self._app(scope, receive, send)
            return
        if await self._is_refused(scope, receive, send):
            return  # before anything is begun, which might wait for the store for ever
        is_refused = False

        async def checked(message: Message) -> None:
            nonlocal is_refused
            if message["type"] == "http.response.start":
                is_refused = await self._is_refused(scope, receive, send)
            if is_refused:
                raise _NotSentError
            await send(message)

        with contextlib.suppress(_NotSentError):
            await self._app(scope, receive, checked)

    async def _is_refused(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Whether others may know better by now; then that is the answer."""
        try:
            self._engine.require_ownership()
        except Unavailable as error:
            status = status_of(error)
            await problem({**error.to_wire(), "status": status}, status)(scope, receive, send)
            return True
        return False


class _NotSentError(Exception):
    """The answer stays here, and so does what it would have handed over."""


async def refused(request: Request, error: Exception) -> Response:
    """One document for every ``SubagentsError``; refused spawns also say so in ``status``."""
    if not isinstance(error, SubagentsError):
        raise error
    if isinstance(error, Elsewhere) and request.app.state.services.node is not None:
        raise error  # to whoever forwards it there
    return _refusal(request, error)


def unserved(request: Request, error: SubagentsError, body: bytes) -> Response:
    """The same for a call that no node of the cluster could answer."""
    endpoints: list[Endpoint] = request.app.state.endpoints
    for each in endpoints:
        if request.scope["path"] == each.path:
            return each.refusal(request, error, body)
    return _refusal(request, error)


def _refusal(request: Request, error: SubagentsError) -> Response:
    status = status_of(error)
    # Only a broken promise has no status of its own: the log needs the traceback.
    if status == 500:
        log.error("%s %s failed", request.method, request.scope["path"], exc_info=error)
    note_if_refused(request, error)
    request.app.state.services.failures[error.code] += 1
    document: dict[str, object] = {**error.to_wire(), "status": status}
    if request.method == "POST" and request.scope["path"] in _SPAWNS:
        is_forbidden = isinstance(error, Forbidden)
        document["status"] = "forbidden" if is_forbidden else "error"
        document["error"] = error.message
    return problem(document, status)


async def unroutable(request: Request, error: Exception) -> Response:
    """Unknown paths and methods, in the same form."""
    if not isinstance(error, HTTPException):
        raise error
    # Not of ``url``: that is made of the Host, which may be anything, or missing.
    path = request.scope["path"]
    known = {
        404: NotFound(f"no such path: {path}"),
        405: UsageError(f"{request.method} is not possible at {path}"),
    }
    shown = known.get(error.status_code, SubagentsError(str(error.detail)))
    document = {**shown.to_wire(), "status": error.status_code}
    return problem(document, error.status_code, error.headers)


async def abandoned(_request: Request, _error: Exception) -> Response:
    """The client went away; no answer would be read."""
    return Response(status_code=CLIENT_GONE)


async def broken(request: Request, _error: Exception) -> Response:
    """A mistake of ours; the server logs the traceback, the answer says where."""
    request.app.state.services.failures["internal"] += 1
    file = request.app.state.services.paths.log_file
    text = "the daemon failed to answer this call; its log says why"
    shown = SubagentsError(text, hint=f"see {file}", details={"log": str(file)})
    return problem({**shown.to_wire(), "code": "internal", "status": 500}, 500)
