"""The listener for other nodes: who calls, by its certificate, and how a machine becomes a node.

TLS lets nobody in without a certificate of the cluster. Holders of a join token have one, too; what
it is good for is here.
"""

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from subagents.api.calls.call import answer, body_of, problem, status_of
from subagents.api.server.watched_protocol import WatchedProtocol
from subagents.api.wire import requests as wire
from subagents.api.wire.wire_struct import WireStruct
from subagents.errors import Forbidden, SubagentsError
from subagents.extensions.cluster.api.node_headers import NODE
from subagents.extensions.cluster.trust.cluster_trust import JOIN_PATH, ClusterTrust, peer_node
from subagents.ports import OffLoop

BODY_BYTES_MAX: Final = 1024


class JoinBody(wire.Body, frozen=True):
    """What a machine that wants to become a node brings."""

    secret: str
    """The token's."""


class Joined(WireStruct, frozen=True, kw_only=True):
    """What makes a home one of the cluster's."""

    secret: str = ""


class NodeProtocol(WatchedProtocol):
    """Says in the state of each request which node calls."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        self.app_state = {**self.app_state, NODE: peer_node(transport.get_extra_info("peercert"))}
        super().connection_made(transport)

    def shutdown(self) -> None:
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.transport.get_write_buffer_size() == 0:
            # To close it would take until the other node, which keeps it for later, says goodbye.
            self.transport.abort()
        else:
            super().shutdown()


class NodeAdmission:
    """ASGI middleware around what nodes ask each other; it answers ``JOIN_PATH`` itself.

    Args:
        app: Gets the calls of nodes.
        trust: Knows the tokens.
        off_loop: They are asked for in the database.
    """

    def __init__(self, app: ASGIApp, trust: ClusterTrust, off_loop: OffLoop) -> None:
        self._app = app
        self._trust = trust
        self._off_loop = off_loop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_join = scope["type"] == "http" and scope["path"] == JOIN_PATH
        if is_join or scope.get("state", {}).get(NODE) is None:
            try:
                answered = await self._join(Request(scope, receive), is_join=is_join)
            except SubagentsError as error:
                status = status_of(error)
                answered = problem({**error.to_wire(), "status": status}, status)
            await answered(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _join(self, request: Request, *, is_join: bool) -> Response:
        """POST /node/v1/join: a token for the cluster's secret, once."""
        if not is_join or request.method != "POST":
            raise Forbidden(
                "a join token is good for joining, and for nothing else", guardrail="join_token"
            )
        body = wire.parse_body(await body_of(request, bytes_max=BODY_BYTES_MAX), JoinBody)
        secret = await self._off_loop(lambda: self._trust.admit(body.secret))
        return answer(Joined(secret=secret))
