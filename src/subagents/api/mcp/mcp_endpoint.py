"""``/mcp``: the daemon's endpoint for agents, streamable HTTP on the Unix socket and on TCP.

Every request stands for itself: no sessions, so a client never notices that the daemon was
restarted in between. The protocol is spoken by the ``mcp`` package, which takes half a second and
35 MB to load. So it is loaded when somebody will speak it: with the first request, which a bridge
sends while its client still begins (docs/decisions/0042), and in the background when an agent
program is started, which asks a second later.

What an answer carries is consumed when its client has read it (docs/decisions/0015). A client that
says ``X-Subagents-Ack: explicit`` acknowledges by itself and keeps its connection open until it
has; whatever it has not acknowledged when it goes is released at once, also when it was killed.
"""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import replace
from importlib import import_module
from typing import Final, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from subagents.api.answers.waking import Waker
from subagents.api.calls import hand_over
from subagents.api.calls.auth import Caller, note_if_refused
from subagents.api.calls.call import SPAWN_BODY_BYTES_MAX, disconnected, status_of
from subagents.api.calls.services import Services
from subagents.api.mcp.mcp_exchange import Exchange
from subagents.domain.run.run import HOLDS_SLOT, Run
from subagents.errors import SubagentsError, Unavailable
from subagents.ports import Batch

log = logging.getLogger(__name__)

BODY_BYTES_MAX: Final = SPAWN_BODY_BYTES_MAX
SERVER_ERROR: Final = -32000
"""JSON-RPC leaves this number to servers; ours say what is wrong in ``data``."""
CALL_ID_CHARS_MAX: Final = 200
LOAD_AFTER_S: Final = 0.2
"""Whoever made it likely that the protocol is spoken waits for something else first."""
_SILENT: Final = frozenset({"command", "llm", "scripted"})
"""Runtimes whose workers do not speak the protocol."""
_IMPLEMENTATION: Final = "subagents.api.mcp.mcp_server"

App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Sessions(Protocol):
    """The part of the package's session manager that is used here."""

    def run(self) -> contextlib.AbstractAsyncContextManager[None]: ...

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class McpEndpoint:
    """The ASGI application at ``/mcp``."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._closing = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Sessions] | None = None
        self.is_due = False
        """It was or will be loaded without a request."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method != "POST":
            # Without sessions there is no stream to listen to and nothing to delete.
            allow = {"Allow": "POST"}
            await Response(status_code=405, headers=allow)(scope, receive, send)
            return
        try:
            exchange = self._exchange(request)
            sessions = await self._sessions()
        except SubagentsError as error:
            note_if_refused(request, error)
            await _refused(error)(scope, receive, send)
            return
        await _serve(sessions.handle_request, exchange, scope, receive, send)

    def _exchange(self, request: Request) -> Exchange:
        caller = Caller.of(request)
        if "x-subagents-reader" not in request.headers:
            # Two calls of one session at once must not both be told of the same result.
            caller = replace(caller, reader=f"mcp-{uuid.uuid4().hex}")
        call_id = request.headers.get("x-subagents-call-id")
        if call_id is not None and not 1 <= len(call_id) <= CALL_ID_CHARS_MAX:
            call_id = None
        return Exchange(
            services=self._services,
            caller=replace(caller, is_operator=False),
            call_id=call_id,
            waker=Waker.HOOK if request.headers.get("x-subagents-wake") == Waker.HOOK else None,
            client_acknowledges=request.headers.get("x-subagents-ack") == "explicit",
        )

    def start_soon(self) -> None:
        """Load the protocol's package in the background, a moment from now; needs a running loop.

        Idempotent.
        """
        if not self.is_due:
            self.is_due = True
            asyncio.get_running_loop().call_later(LOAD_AFTER_S, self._load)

    def expect(self, runs: Iterable[Run]) -> None:
        """Load it soon if a worker of these runs will speak it, or may."""
        if not self.is_due and any(
            run.phase in HOLDS_SLOT and run.resolved.runtime not in _SILENT for run in runs
        ):
            self.start_soon()

    def on_commit(self, batch: Batch) -> None:
        """Called with everything that becomes durable."""
        if not self.is_due:
            self.expect(batch.runs.values())

    def _load(self) -> None:
        if not self._closing.is_set():
            self._started()

    async def _sessions(self) -> Sessions:
        """The running session manager.

        Raises:
            Unavailable: The daemon is stopping.
        """
        if self._closing.is_set():
            raise _stopping()
        return await asyncio.shield(self._started())

    def _started(self) -> "asyncio.Future[Sessions]":
        if self._ready is None or (self._ready.done() and self._ready.exception() is not None):
            self._ready = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._run(self._ready), name="mcp")
        return self._ready

    async def _run(self, ready: "asyncio.Future[Sessions]") -> None:
        """Own the session manager, whose tasks must begin and end in one task."""
        try:
            implementation = await self._services.off_loop(lambda: import_module(_IMPLEMENTATION))
            made: Sessions = implementation.session_manager(
                self._services, body_bytes_max=BODY_BYTES_MAX
            )
            async with made.run():
                ready.set_result(made)
                await self._closing.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(
                    _stopping()
                    if self._closing.is_set()
                    else Unavailable(f"MCP cannot be served: {error}", hint="see: subagents doctor")
                )
                # Somebody may have stopped waiting for it.
                ready.exception()
            raise

    async def stop(self) -> None:
        """End what is left of the calls under way. Idempotent."""
        self._closing.set()
        if self._serving is not None:
            if self._ready is not None and not self._ready.done():
                # It is still being imported; nobody waits for that any more.
                self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)


def _stopping() -> Unavailable:
    return Unavailable("the daemon is stopping", hint="call again: the next one continues")


async def _serve(app: App, exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
    """One request, and after it the fate of what its answer carried."""
    # Space around a value is no part of it (RFC 9110, 5.5), and the package compares values.
    headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
    scope = {**scope, "headers": headers}
    exchange.attach(scope)
    line = _Line(exchange, receive, send)
    try:
        await app(scope, line.receive, line.send)
        exchange.is_over = True
        if line.is_answered and exchange.offered:
            await _settle(exchange, line, scope)
    finally:
        exchange.is_over = True
        exchange.release()
        await line.end()


async def _settle(exchange: Exchange, line: "_Line", scope: Scope) -> None:
    if exchange.client_acknowledges:
        await line.until_gone(exchange.services)
        return
    if not await line.is_taken(scope, exchange.services):
        return
    offered = list(exchange.offered)
    await exchange.services.engine.acknowledge(offered, reader=exchange.caller.reader)
    exchange.offered.clear()


class _Line:
    """The transport of one request: knows whether the answer left before the client did."""

    def __init__(self, exchange: Exchange, receive: Receive, send: Send) -> None:
        self._exchange = exchange
        self._receive = receive
        self._send = send
        self._is_held = False
        self._is_gone = False
        self.is_answered = False
        """The last byte was handed to the transport of a client that was still there."""

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self.is_answered:
            self._is_gone = True
        return message

    async def send(self, message: Message) -> None:
        await self._exchange.leave()
        is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
        if not is_last or not self._exchange.offered:
            await self._send(message)
            return
        # In pieces: the transport takes the second when it has room again after the first. Only
        # whoever listens learns that the client went, so let it run before it is asked.
        await self._send({**message, "more_body": True})
        await self._send({"type": "http.response.body", "body": b"", "more_body": True})
        await asyncio.sleep(0)
        self._is_held = True
        self.is_answered = not self._is_gone

    async def is_taken(self, scope: Scope, services: Services) -> bool:
        """Whether the client read the answer before it left."""
        return await hand_over.is_taken(scope, self._receive, services.stopping)

    async def until_gone(self, services: Services) -> None:
        """Return when the client has left, its lease is over, or the daemon stops."""
        leaving = asyncio.create_task(disconnected(self._receive))
        stopping = asyncio.create_task(services.stopping.wait())
        try:
            await asyncio.wait(
                (leaving, stopping), timeout=hand_over.UNREAD_S, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in (leaving, stopping):
                task.cancel()
            await asyncio.gather(leaving, stopping, return_exceptions=True)

    async def end(self) -> None:
        """Complete an answer whose end was held back. Idempotent."""
        if self._is_held:
            self._is_held = False
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _refused(error: SubagentsError) -> Response:
    """An error of the endpoint itself, before any JSON-RPC message was read."""
    status = status_of(error)
    document: MutableMapping[str, object] = {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": SERVER_ERROR, "message": error.message, "data": error.to_wire()},
    }
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    content = msgspec.json.encode(document)
    return Response(content, status_code=status, headers=headers, media_type="application/json")
