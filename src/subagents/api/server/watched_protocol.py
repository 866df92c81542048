"""HTTP on one connection, of which a call can ask whether its client has read the answer, and a
server when it ends.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from subagents.api.calls.hand_over import WIRE, Wire


class WatchedProtocol(HttpToolsProtocol):
    """Puts the ``Wire`` of its connection into each request's state."""

    lost: "asyncio.Future[None]"
    """Done when the connection has ended."""
    _wire: Wire | None = None
    _has_left = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        self.lost = self.loop.create_future()
        self._wire = Wire(transport)
        self.app_state = {**self.app_state, WIRE: self._wire}
        super().connection_made(transport)

    def eof_received(self) -> None:
        self._has_left = True

    def connection_lost(self, exc: Exception | None) -> None:
        if self._wire is not None:
            # A client that goes closes its end first. Otherwise it was we who ended it, after a
            # request that is none, for example, and what it had not read by then it never will.
            self._wire.was_reset = exc is not None or not self._has_left
        super().connection_lost(exc)
        self.lost.set_result(None)
