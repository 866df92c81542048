"""The door for the other nodes of the cluster: the same calls, on behalf of their clients.

Only nodes get in, by their certificates (``node_admission``). So what a node says
of its client holds, and what only nodes ask is below ``/node/v1/``.
"""

from collections.abc import Mapping
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from subagents.api.calls.auth import CONNECTION, Connection
from subagents.api.calls.call import problem, query_of, status_of
from subagents.api.calls.hand_over import UNREAD_S, WIRE, DistantWire
from subagents.api.wire.parameters import number
from subagents.errors import Forbidden, SubagentsError, UsageError
from subagents.extensions.cluster.api.cluster_member import ClusterMember
from subagents.extensions.cluster.api.node_headers import (
    BEHALF,
    CALL,
    FORWARDED,
    LENGTH,
    NODE,
    OF_CLUSTER,
    PEER,
    STATE,
    URL,
    Behalf,
    ForwardedBy,
)
from subagents.extensions.cluster.api.peers import LostError, NotSentError
from subagents.extensions.cluster.api.relayed_calls import RelayedCalls

PREFIX: Final = "/node/v1/"
READ_PATH: Final = "/node/v1/relayed/{id}/read"
READS: Final = frozenset({"GET", "HEAD"})
COUNT: Final = (number("bytes", "So much of the answer.", high=10**15, default=0),)
MARGIN_S: Final = 5.0


class NodeEndpoint:
    """The ASGI application that other nodes call.

    Args:
        app: The daemon's application, for what they forward.
        member: Who we are.
        calls: Those that we forward.
    """

    def __init__(self, app: ASGIApp, *, member: ClusterMember, calls: RelayedCalls) -> None:
        self._app = app
        self._peers = member.peers
        self._calls = calls
        self._own = Starlette(
            routes=[Route(READ_PATH, self._is_read, methods=["GET"]), *member.routes],
            exception_handlers={SubagentsError: _refused},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(PREFIX):
            await self._own(scope, receive, send)
            return
        given = dict(scope["headers"])
        try:
            forwarded, wire = self._admit(scope, given)
        except SubagentsError as error:
            await _answer(error)(scope, receive, send)
            return
        peer = given.get(PEER, b"").decode("latin-1")
        connection = Connection(f"node {forwarded.node}: {peer}")
        # What it proves by is not for us, but for a worker's token.
        connection.is_operator = forwarded.behalf is not Behalf.WORKER
        state = {
            **scope.get("state", {}),
            STATE: forwarded,
            CONNECTION: connection,
            **({} if wire is None else {WIRE: wire}),
        }
        headers = [each for each in scope["headers"] if each[0] not in OF_CLUSTER]
        await self._app(
            {**scope, "state": state, "headers": headers}, receive, _counted(send, wire)
        )

    def _admit(
        self, scope: Scope, given: Mapping[bytes, bytes]
    ) -> tuple[ForwardedBy, DistantWire | None]:
        """Who calls.

        Raises:
            Forbidden: A viewer's call that changes something.
            UsageError: It is no forwarded call.
        """
        node, behalf = scope.get("state", {}).get(NODE), given.get(BEHALF, b"").decode("latin-1")
        if node is None or given.get(FORWARDED) != node.encode():
            raise UsageError("a node forwards calls under the name in its certificate")
        if behalf not in {*Behalf}:
            raise UsageError("a node says for whom it forwards a call")
        if behalf == Behalf.WORKER and b"authorization" not in given:
            raise UsageError("a worker's call is forwarded with its token")
        if behalf == Behalf.VIEWER and scope["method"] not in READS:
            raise Forbidden("a viewer may look, and change nothing", guardrail="role")
        call, url = given.get(CALL), given.get(URL)
        wire = None if call is None or url is None else self._wire(url.decode(), call.decode())
        return ForwardedBy(node, Behalf(behalf)), wire

    def _wire(self, url: str, call_id: str) -> DistantWire:
        async def is_read(count: int) -> bool:
            target = f"{READ_PATH.format(id=call_id)}?bytes={count}".encode()
            asking = self._peers.call(url, "GET", target, (), read_s=UNREAD_S + MARGIN_S)
            try:
                async with asking as found:
                    return found.status == 200 and await found.body() == b"true"
            except (NotSentError, LostError):
                return False  # and its client with it

        return DistantWire(is_read)

    async def _is_read(self, request: Request) -> Response:
        """GET /node/v1/relayed/{id}/read: whether our client has read so much of the answer."""
        count = query_of(request, COUNT).number("bytes")
        return JSONResponse(await self._calls.is_read(request.path_params["id"], count))


def _counted(send: Send, wire: DistantWire | None) -> Send:
    """Sends chunks instead of a body of a known length, and counts what is in them."""

    async def counted(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [
                (LENGTH if name.lower() == b"content-length" else name, value)
                for name, value in message.get("headers", [])
            ]
            message = {**message, "headers": headers}
        elif wire is not None:
            wire.sent += len(message.get("body", b""))
        await send(message)

    return counted


async def _refused(_request: Request, error: Exception) -> Response:
    if not isinstance(error, SubagentsError):
        raise error
    return _answer(error)


def _answer(error: SubagentsError) -> Response:
    status = status_of(error)
    return problem({**error.to_wire(), "status": status}, status)
