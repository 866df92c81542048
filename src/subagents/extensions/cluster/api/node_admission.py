"""The listener for other nodes: who calls, by its certificate, at each call.

TLS lets nobody in whose certificate is not pinned. But a connection outlives that: the row of its
node may be over by now.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from subagents.api.calls.call import problem, status_of
from subagents.api.server.watched_protocol import WatchedProtocol
from subagents.errors import NodeOver
from subagents.extensions.cluster.api.node_headers import NODE

if TYPE_CHECKING:  # of an extra
    from subagents.extensions.cluster.trust.node_trust import NodeTrust

_TLS: Final = "node_tls"


class NodeProtocol(WatchedProtocol):
    """Keeps the TLS of its connection in the state of each request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        self.app_state = {**self.app_state, _TLS: transport.get_extra_info("ssl_object")}
        super().connection_made(transport)

    def shutdown(self) -> None:
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.transport.get_write_buffer_size() == 0:
            # To close it would take until the other node, which keeps it for later, says goodbye.
            self.transport.abort()
        else:
            super().shutdown()


class NodeAdmission:
    """ASGI middleware around what nodes ask each other: says in the state which node calls.

    Args:
        app: Gets the calls of nodes.
        trust: Knows them.
    """

    def __init__(self, app: ASGIApp, trust: "NodeTrust") -> None:
        self._app = app
        self._trust = trust

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope.get("state", {})
        node = self._trust.node_of(state.get(_TLS))
        if node is None:
            # Whoever asked that node is to ask again: it may not know yet that it is over.
            error = NodeOver("the node that calls is over, or none")
            status = status_of(error)
            await problem({**error.to_wire(), "status": status}, status)(scope, receive, send)
            return
        await self._app({**scope, "state": {**state, NODE: node}}, receive, send)
