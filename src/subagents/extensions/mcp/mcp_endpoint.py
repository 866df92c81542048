"""``/mcp``: the daemon's endpoint for agents, streamable HTTP on the Unix socket and on TCP.

Every request stands for itself: no sessions, so a client never notices that the daemon was
restarted in between.

What an answer carries is consumed when its client has read it (docs/decisions/0015). A client that
says ``X-Subagents-Ack: explicit`` acknowledges by itself and keeps its connection open until it
has; whatever it has not acknowledged when it goes is released at once, also when it was killed.
"""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message as Sent
from starlette.types import Receive, Scope, Send

from subagents import extension
from subagents.api.answers.waking import Waker
from subagents.api.calls import hand_over
from subagents.api.calls.auth import MCP_PATH, Caller, note_if_refused
from subagents.api.calls.call import SPAWN_BODY_BYTES_MAX, body_of, disconnected, status_of
from subagents.api.calls.services import Services
from subagents.errors import Elsewhere, SubagentsError, Unavailable
from subagents.extensions.mcp import mcp_message
from subagents.extensions.mcp.mcp_exchange import Exchange
from subagents.extensions.mcp.mcp_message import INTERNAL_ERROR, Message, Refused
from subagents.extensions.mcp.mcp_server import McpRequest, McpServer, error_message, rpc_error

SERVER_ERROR: Final = -32000
"""JSON-RPC leaves this number to servers; ours say what is wrong in ``data``."""
CALL_ID_CHARS_MAX: Final = 200


def endpoints(services: Services) -> "Sequence[McpEndpoint]":
    """The hook ``endpoints``."""
    return (McpEndpoint(services),)


class McpEndpoint:
    """The ASGI application at ``/mcp``."""

    path: Final = MCP_PATH

    def __init__(self, services: Services) -> None:
        self._services = services
        self._under_way: set[asyncio.Task[Any]] = set()
        """What ends when the daemon stops."""
        self._served: dict[Exchange, Message] = {}
        self._stopping: asyncio.Task[None] | None = None
        if any(each.mcp and each.name not in extension.OWN for each in extension.found().used):
            self._server  # noqa: B018 - what is broken in another's is said at the start

    @cached_property
    def _server(self) -> McpServer:
        # Only agents need the tools, which are a tenth of a daemon's start.
        from subagents.extensions.mcp.mcp_methods import create_server  # noqa: PLC0415

        return create_server(self._services)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method != "POST":
            # Without sessions there is no stream to listen to and nothing to delete.
            allow = {"Allow": "POST"}
            await Response(status_code=405, headers=allow)(scope, receive, send)
            return
        try:
            exchange = self._exchange(request)
            body = await body_of(request, bytes_max=SPAWN_BODY_BYTES_MAX)
            message = mcp_message.read(scope["headers"], body)
        except SubagentsError as error:
            note_if_refused(request, error)
            await _refused(error)(scope, receive, send)
            return
        except Refused as refused:
            await answer(send, refused.status, error_message(refused.id, refused.error))
            return
        if message is None:
            self._note_unwanted(exchange.caller, mcp_message.cancelled(body))
            await answer(send, 202)
            return
        await self._serve(message, exchange, _Line(exchange, receive, send), scope)

    def _exchange(self, request: Request) -> Exchange:
        caller = Caller.of(request)
        if "x-subagents-reader" not in request.headers:
            # Else two calls of one session at once would both be handed the same result.
            caller = replace(caller, reader=f"mcp-{uuid.uuid4().hex}")
        call_id = request.headers.get("x-subagents-call-id")
        # A header of ours, which a client that knows nothing of it cannot be refused for.
        if call_id is not None and not 1 <= len(call_id) <= CALL_ID_CHARS_MAX:
            call_id = None
        return Exchange(
            services=self._services,
            caller=caller,
            call_id=call_id,
            waker=Waker.HOOK if request.headers.get("x-subagents-wake") == Waker.HOOK else None,
            client_acknowledges=request.headers.get("x-subagents-ack") == "explicit",
        )

    async def _serve(
        self, message: Message, exchange: Exchange, line: "_Line", scope: Scope
    ) -> None:
        """One request, and after it the fate of what its answer carried.

        Raises:
            Elsewhere: It is for another node; nothing was answered.
        """
        reply = Reply(message, line.send)
        request = McpRequest(message=message, exchange=exchange, tell=reply.tell)
        leaving = None
        self._served[exchange] = message
        try:
            if self._server.lasts(message):
                leaving = asyncio.create_task(disconnected(line.receive))
                answered = await self._while_connected(request, reply, leaving)
            else:
                answered = await self._server.answer(request)
            if answered is None:
                return
            await reply.finish(*answered)
            # What a call that outlives its answer still offers is given back at once.
            exchange.is_over = True
            if line.is_answered and exchange.offered:
                await self._settle(exchange, line, leaving, scope)
        except Elsewhere as error:
            if not reply.is_begun:
                raise
            # It was ours when the call began.
            await reply.finish(*failed(message.id, error))
        finally:
            exchange.is_over = True
            exchange.release()
            del self._served[exchange]
            if leaving is not None:
                leaving.cancel()
            await line.end()

    async def _while_connected(
        self, request: McpRequest, reply: "Reply", leaving: "asyncio.Task[None]"
    ) -> tuple[int, bytes] | None:
        """The answer; None = the client went away first, and the call was cancelled."""
        working = asyncio.create_task(self._server.answer(request))
        self._end_with_daemon(working)
        try:
            while not working.done() and not leaving.done():
                either = (working, leaving)
                done, _ = await asyncio.wait(
                    either, timeout=PING_S, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    await reply.ping()
            if leaving.done():
                return None
            if not working.cancelled():
                return working.result()
            hint = "call again: the next one continues"
            return failed(request.message.id, Unavailable("the daemon is stopping", hint=hint))
        finally:
            # Not awaited: what it offers once it has ended goes back (``Exchange.hand_over``).
            working.cancel()

    async def _settle(
        self,
        exchange: Exchange,
        line: "_Line",
        leaving: "asyncio.Task[None] | None",
        scope: Scope,
    ) -> None:
        if leaving is None:
            leaving = asyncio.create_task(disconnected(line.receive))
        if exchange.client_acknowledges:
            # Until the client has left, its lease is over, or the daemon stops.
            self._end_with_daemon(leaving)
            await asyncio.wait((leaving,), timeout=hand_over.UNREAD_S)
            leaving.cancel()
            return
        leaving.cancel()
        if not await line.is_taken(scope, exchange.services) or exchange.is_unwanted:
            return
        offered = list(exchange.offered)
        await exchange.services.engine.mailbox.acknowledge(offered, reader=exchange.caller.reader)
        exchange.offered.clear()

    def _note_unwanted(self, caller: Caller, id_: object) -> None:
        """Let what the answer to a request of this caller carries come again.

        The call goes on: it may be another client's, which counts its own requests from 0, too.
        """
        for exchange, message in self._served.items():
            if (exchange.caller.session, message.id) == (caller.session, id_):
                exchange.is_unwanted = True

    def _end_with_daemon(self, task: "asyncio.Task[Any]") -> None:
        """Cancel it when the daemon stops."""
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        if self._services.stopping.is_set():
            task.cancel()
        # One task waits for the stop, however many calls are under way.
        elif self._stopping is None:
            self._stopping = asyncio.create_task(self._end_calls(), name="mcp")

    async def _end_calls(self) -> None:
        await self._services.stopping.wait()
        for task in tuple(self._under_way):
            task.cancel()

    def refusal(self, request: Request, error: SubagentsError, body: bytes) -> Response:
        """The answer to a request to this endpoint that no node could serve."""
        try:
            message = mcp_message.read(request.scope["headers"], body)
        except Refused:
            message = None
        if message is None or status_of(error) < 500:
            return _refused(error)
        status, content = failed(message.id, error)
        return Response(content, status_code=status, media_type="application/json")

    async def stop(self) -> None:
        """End what is left of the calls under way. Idempotent."""
        left = [*self._under_way, *([self._stopping] if self._stopping is not None else ())]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


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

    async def receive(self) -> Sent:
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self.is_answered:
            self._is_gone = True
        return message

    async def send(self, message: Sent) -> None:
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

    async def end(self) -> None:
        """Complete an answer whose end was held back. Idempotent."""
        if self._is_held:
            self._is_held = False
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def failed(id_: str | int | None, error: SubagentsError) -> tuple[int, bytes]:
    """The HTTP status and the message that answers a request which could not be served."""
    return 200, error_message(id_, rpc_error(INTERNAL_ERROR, error))


def _refused(error: SubagentsError) -> Response:
    """An error of the endpoint itself, before any JSON-RPC message was read."""
    status = status_of(error)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    content = error_message(None, rpc_error(SERVER_ERROR, error))
    return Response(content, status_code=status, headers=headers, media_type="application/json")


PING_S: Final = 15.0
"""Silence after which the client is shown a sign of life; bridges give up after 60."""
_STREAM: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_PING: Final = b": ping\r\n\r\n"


class Reply:
    """The answer to one request: one document, or a stream when it takes long.

    A stream begins with the first thing that there is to say before the answer, or after
    ``PING_S``: whoever stands between, and the client itself, would take a silent line for a dead
    one.
    """

    def __init__(self, message: Message, send: Send) -> None:
        self._token = message.progress_token
        self._send = send
        self._told = 0
        self.is_begun = False
        """A stream was begun: what follows goes there."""
        self._turn = asyncio.Lock()
        """Keeps events whole: the call reports its progress while we send signs of life."""

    async def tell(self, text: str) -> None:
        """Report how the call is doing, to a client that asked for it."""
        if self._token is None:
            return
        self._told += 1  # the numbers must only grow
        params = {"progressToken": self._token, "progress": self._told, "message": text}
        note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        await self._stream(_event(msgspec.json.encode(note)))

    async def ping(self) -> None:
        """Show that it still lives."""
        await self._stream(_PING)

    async def finish(self, status: int, document: bytes) -> None:
        """Answer.

        Args:
            status: Of HTTP, unless a stream has begun.
            document: JSON.
        """
        if self.is_begun:
            async with self._turn:
                await self._send({"type": "http.response.body", "body": _event(document)})
        else:
            await answer(self._send, status, document)

    async def _stream(self, event: bytes) -> None:
        async with self._turn:
            if not self.is_begun:
                self.is_begun = True
                start = {"type": "http.response.start", "status": 200, "headers": _STREAM}
                await self._send(start)
            await self._send({"type": "http.response.body", "body": event, "more_body": True})


async def answer(send: Send, status: int, document: bytes = b"") -> None:
    """One document, or none."""
    kind = [(b"content-type", b"application/json")] if document else []
    headers = [(b"content-length", str(len(document)).encode()), *kind]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": document})


def _event(document: bytes) -> bytes:
    """JSON has no line ends in it."""
    return b"event: message\r\ndata: " + document + b"\r\n\r\n"
