"""Whether the client of a call has taken its answer, for messages that are consumed with it.

An answer that was written is not yet handed over: it lies in a socket, and a client that is killed
takes it along. The daemon waits until the client has read it, and a client that goes without having
read all of it resets the connection.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.types import Receive, Scope

from subagents.api.calls.call import disconnected
from subagents.unread import Socket, is_heard, unread_at

WIRE: Final = "wire"
"""The name under which a request's state holds its ``Wire``."""
UNREAD_S: Final = 60.0
"""How long a client may take to read; the lease of what is offered to it is over then, too."""
_PAUSE_S: Final = 0.001
_PAUSE_S_MAX: Final = 0.05


class Wire:
    """One connection, as far as it is known what its client has read."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._socket: Socket | None = transport.get_extra_info("socket")
        self.was_reset = False
        """The client went with bytes unread, the connection broke, or we ended it."""

    @property
    def is_sent(self) -> bool:
        """Nothing waits in our own memory."""
        return self._transport.get_write_buffer_size() == 0

    @property
    def unread(self) -> int:
        """Bytes that the client has not read; 0 = it has read all, or that is not known."""
        return 0 if self._socket is None or self._socket.fileno() < 0 else unread_at(self._socket)

    @property
    def is_there(self) -> bool:
        """Whether the client's end is open; what lay unread in a closed one counts no more."""
        return self._socket is None or self._socket.fileno() < 0 or is_heard(self._socket.fileno())

    def abort(self) -> None:
        """Break it: its client sees that what it got is not all."""
        self._transport.abort()


class DistantWire:
    """The connection of a client that called another node, which forwarded the call to us.

    Args:
        ask: That node: whether its client has read so many bytes of the answer's body; at most
            ``UNREAD_S`` long.
    """

    def __init__(self, ask: Callable[[int], Awaitable[bool]]) -> None:
        self._ask = ask
        self.sent = 0
        """Bytes of the body so far."""

    async def is_read(self) -> bool:
        """Whether the client read what was sent, or reads it in time."""
        return await self._ask(self.sent)


async def is_taken(scope: Scope, receive: Receive, stopping: asyncio.Event) -> bool:
    """Wait until the client has read what was sent; False = it went before, or did not in time.

    ``scope`` and ``receive`` are those of a request whose answer was sent but not completed; what
    can be received is used up by this.
    """
    wire = scope.get("state", {}).get(WIRE)
    ending = asyncio.ensure_future(stopping.wait())
    # That the other node has hung up says nothing of its client: it is asked.
    leaving = asyncio.ensure_future(
        wire.is_read() if isinstance(wire, DistantWire) else disconnected(receive)
    )
    try:
        if not isinstance(wire, DistantWire):
            return await is_read(wire, leaving, ending)
        await asyncio.wait({leaving, ending}, return_when=asyncio.FIRST_COMPLETED)
        return leaving.done() and bool(leaving.result())
    finally:
        for task in (leaving, ending):
            task.cancel()
        await asyncio.gather(leaving, ending, return_exceptions=True)


async def is_read(
    wire: object, leaving: "asyncio.Future[Any]", ending: "asyncio.Future[Any]"
) -> bool:
    """Wait until what was sent on a connection is read; False = it never will, or not in time.

    Args:
        wire: Its ``Wire``; anything else = bytes cannot be counted: a client that is there read it.
        leaving: Done when the client is gone.
        ending: Done when waiting is over.
    """
    due, pause_s = asyncio.get_running_loop().time() + UNREAD_S, _PAUSE_S
    # Lets ``leaving`` run: only then is it known whether the client went meanwhile.
    await asyncio.sleep(0)
    if not isinstance(wire, Wire):
        return not leaving.done()
    while not leaving.done():
        if wire.is_sent and not wire.unread and wire.is_there:
            break
        if ending.done() or asyncio.get_running_loop().time() >= due:
            return False
        # The system counts unread bytes but does not report a change: they are looked at again.
        await asyncio.wait({leaving, ending}, timeout=pause_s, return_when=asyncio.FIRST_COMPLETED)
        pause_s = min(2 * pause_s, _PAUSE_S_MAX)
    return wire.is_sent and not wire.was_reset
