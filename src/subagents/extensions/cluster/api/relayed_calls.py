"""The calls that this node forwards, and whether their clients have read the answers.

What an answer hands over is consumed when its client has read it (docs/decisions/0015), and only
the node that the client is connected to can see that. So the owner, which consumes, asks that node.
"""

import asyncio
import contextlib
import uuid
from collections import OrderedDict
from typing import Final

from starlette.types import Message, Scope, Send

from subagents.api.calls.hand_over import UNREAD_S, WIRE, is_read

KEPT_S: Final = UNREAD_S
"""What became of a call is known so long after its end."""
KEPT_MAX: Final = 10_000


class RelayedCall:
    """One call whose answer comes from another node.

    Args:
        scope: Of the client's request.
        send: Of that request.
    """

    def __init__(self, scope: Scope, send: Send) -> None:
        self.id = uuid.uuid4().hex
        self._wire = scope.get("state", {}).get(WIRE)
        self._send = send
        self._sent = 0
        self._news = asyncio.Event()
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_begun = False
        """Something of an answer was sent."""
        self.ended_s: float | None = None

    async def send(self, message: Message) -> None:
        """Send more of the answer to the client."""
        self.is_begun = True
        await self._send(message)
        self._sent += len(message.get("body", b""))
        self._news.set()

    def left(self) -> None:
        """The client is gone. Idempotent."""
        if not self._gone.done():
            self._gone.set_result(None)
        self._news.set()

    async def is_read(self, count: int, stopping: asyncio.Event) -> bool:
        """Whether the client has read so many bytes of the body, or does so in time.

        Args:
            count: Since the beginning of the body.
            stopping: The daemon's: after that nobody can say.
        """
        ending = asyncio.ensure_future(stopping.wait())
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(UNREAD_S):
                    while self._sent < count and not self._gone.done() and not ending.done():
                        self._news.clear()
                        more = asyncio.ensure_future(self._news.wait())
                        await asyncio.wait({more, ending}, return_when=asyncio.FIRST_COMPLETED)
                        more.cancel()
            return self._sent >= count and await is_read(self._wire, self._gone, ending)
        finally:
            ending.cancel()


class RelayedCalls:
    """All of them, and for a while those that have ended.

    Args:
        stopping: The daemon's.
    """

    def __init__(self, stopping: asyncio.Event) -> None:
        self.stopping = stopping
        self._calls: OrderedDict[str, RelayedCall] = OrderedDict()
        """The calls by their id, in the order in which they began."""

    def begin(self, scope: Scope, send: Send) -> RelayedCall:
        """Remember a call until some time after ``end``."""
        now_s = asyncio.get_running_loop().time()
        over: list[str] = []
        for call_id, each in self._calls.items():
            if each.ended_s is None:
                continue
            if now_s - each.ended_s < KEPT_S and len(self._calls) - len(over) < KEPT_MAX:
                break
            over.append(call_id)
        for call_id in over:
            del self._calls[call_id]
        call = RelayedCall(scope, send)
        self._calls[call.id] = call
        return call

    def end(self, call: RelayedCall) -> None:
        """Its answer is complete, or never will be."""
        call.ended_s = asyncio.get_running_loop().time()

    async def is_read(self, call_id: str, count: int) -> bool:
        """See ``RelayedCall.is_read``; False = nobody knows of such a call."""
        call = self._calls.get(call_id)
        return call is not None and await call.is_read(count, self.stopping)
