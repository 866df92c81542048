"""How long what this process holds in memory is what anybody else would be told.

A store that is a file belongs to the process that holds its lock, as long as it lives. Elsewhere
the right ends by itself when it is not renewed (``ports.Store.renew``): whoever was frozen or cut
off must know, by its own clock, that others may act by now. What such an owner writes, the
store refuses; what it would answer from memory, it has to refuse itself.

A separate loop renews, since the one that answers may be busy for as long as the right holds; one
that hangs for longer loses it, too.

In a cluster the workers of a node end with its right, by a process next to them. Where the store
cannot be asked, each node asks the others: when none of them can ask it either, and each promises
to take nothing over before it held its own right for a whole length again, the workers may go on.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from subagents.domain.cluster.partitioning import OUTAGE_LEASES, TRIES
from subagents.errors import Fenced, StoreUnavailable
from subagents.ports import EngineClock, OffLoop, OwnLoop, Store

log = logging.getLogger(__name__)

THREADS: Final = 2
"""What ``off_loop`` needs: one hangs with a question to a server that stands still, while the other
moves the workers' deadline on."""
HASTE: Final = 12
"""How often, while the right holds, a store that does not answer and the other nodes are asked: the
others learn of it at their own next renewal, and workers are to live until all of them know."""
HANG_LEASES: Final = 2
"""How many lengths of the right it is renewed for while the loop that answers does not turn."""


async def in_line(work: Callable[[], Coroutine[Any, Any, None]], /) -> None:
    """An ``OwnLoop`` that is the caller's loop."""
    await work()


class Ownership:
    """The right that ``Store.open`` gave, and what is left of it.

    Args:
        store: It gives and renews it.
        off_loop: For the renewals: they must not wait for commits.
        clock: Its ``elapsed_ms`` says what is left.
        on_fenced: Called, on the loop that answers, when a renewal learns that the store is
            another's.
        extend: Lets workers live until then, by ``elapsed_ms``. Blocking.
        all_promise: Whether every other node says, now, that it cannot ask the store either
            (``promise``). Asked on the loop that answers.
        own_loop: For the renewals.
    """

    def __init__(
        self,
        store: Store,
        off_loop: OffLoop,
        clock: EngineClock,
        on_fenced: Callable[[Fenced], None],
        *,
        extend: Callable[[int], None],
        all_promise: Callable[[], Coroutine[Any, Any, bool]],
        own_loop: OwnLoop,
    ) -> None:
        self._store = store
        self._off_loop = off_loop
        self._clock = clock
        self._on_fenced = on_fenced
        self._extend = extend
        self._all_promise = all_promise
        self._own_loop = own_loop
        self._answering: asyncio.AbstractEventLoop | None = None
        """The loop that answers, once ``run`` was called on it."""
        self._turned_ms = 0
        """When that was last seen to turn, by ``elapsed_ms``."""
        self._is_asked_in_vain = False
        """The store could not be asked when it was last tried."""
        self.is_taking = False
        """Something is being taken over, by a right that was proven then."""
        self._held_s: float | None = None
        """How long it was given for last; None = as long as this process lives."""
        self._until_ms = 0
        """Its end, by ``elapsed_ms``."""
        self._since_ms = 0
        """When it was given after the last break, by ``elapsed_ms``."""
        self._work_ms = 0
        """Until when workers may live; an answer that comes late brings no end forward."""

    @property
    def is_limited(self) -> bool:
        """Whether it ends by itself, so that ``run`` has to renew it."""
        return self._held_s is not None

    @property
    def lapse(self) -> StoreUnavailable | None:
        """Why nothing is to be answered from memory now; None = the right holds."""
        if self._held_s is None or self._clock.elapsed_ms() < self._until_ms:
            return None
        return StoreUnavailable(
            f"for {self._held_s:g} s the store could not be asked whether its runs are still ours",
            hint="call again: what happened meanwhile is known once it answers",
        )

    @property
    def is_proven(self) -> bool:
        """Whether it was held for its whole length without a break.

        After an outage the rights of all others are over, too: they have as long to renew them.
        """
        return self._held_s is None or (
            self.lapse is None
            and self._clock.elapsed_ms() - self._since_ms >= int(self._held_s * 1000)
        )

    def given(self, held_s: float | None, *, asked_ms: int) -> None:
        """The store gave the right, or more of it.

        Args:
            held_s: As ``Store.renew`` returned it.
            asked_ms: ``elapsed_ms`` before that: nobody knows when within the call it was given.
        """
        if self._held_s is None or self.lapse is not None:
            # From the answer: a question that lay on the line proves nothing about that time.
            self._since_ms = self._clock.elapsed_ms()
        self._held_s = held_s
        if held_s is not None:
            self._until_ms = asked_ms + int(held_s * 1000)

    async def run(self) -> None:
        """Renew it until it is lost, or cancelled; returns at once where it needs no renewing."""
        self._answering = asyncio.get_running_loop()
        self._turned()
        try:
            await self._own_loop(self._renewed)
        except Fenced as error:
            self._on_fenced(error)

    def _other_loop(self) -> asyncio.AbstractEventLoop | None:
        """The one that answers; None = this one does."""
        return None if self._answering is asyncio.get_running_loop() else self._answering

    def _turned(self) -> None:
        self._turned_ms = self._clock.elapsed_ms()

    def _hangs(self, held_s: float) -> bool:
        """Whether the loop that answers has not turned for too long; it is asked to, each time."""
        answering = self._other_loop()
        if answering is None:
            return False
        answering.call_soon_threadsafe(self._turned)
        return self._clock.elapsed_ms() - self._turned_ms > HANG_LEASES * held_s * 1000

    async def _renewed(self) -> None:
        asked: asyncio.Future[float | None] | None = None
        asked_ms = 0
        try:
            while self._held_s is not None:
                is_well = asked is None and not self._is_asked_in_vain
                wait_s = self._held_s / (TRIES if is_well else HASTE)
                if asked is None:
                    await self._clock.sleep(wait_s)
                    if self._hangs(self._held_s):
                        continue
                    asked_ms = self._clock.elapsed_ms()
                    asked = asyncio.ensure_future(self._off_loop(self._store.renew))
                    continue
                # A server that stands still may not answer for as long as it does.
                pause = asyncio.ensure_future(self._clock.sleep(wait_s))
                waited_for: set[asyncio.Future[Any]] = {asked, pause}
                await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
                pause.cancel()
                if not asked.done():
                    await self._asked_in_vain("it has not answered yet")
                    continue
                answered, asked = asked, None
                try:
                    held_s = answered.result()
                except StoreUnavailable as error:
                    await self._asked_in_vain(error)
                else:
                    if self._is_asked_in_vain:
                        log.info("the store can be asked again")
                    self._is_asked_in_vain = False
                    # First: what begins once the right is back would be ended by an old deadline.
                    await self.prolong_work(asked_ms)
                    self.given(held_s, asked_ms=asked_ms)
        finally:
            if asked is not None:
                asked.cancel()

    async def _asked_in_vain(self, why: object) -> None:
        if not self._is_asked_in_vain:
            log.warning("the store cannot be asked whether its runs are ours: %s", why)
        self._is_asked_in_vain = True
        asked_ms = self._clock.elapsed_ms()
        # A node that we do not know asks no other, and waits for longer than this.
        outage_ms = int((self._held_s or 0) * (OUTAGE_LEASES - 2) * 1000)
        if asked_ms < self._until_ms + outage_ms and await self._promised():
            await self.prolong_work(asked_ms)

    async def _promised(self) -> bool:
        answering, asking = self._other_loop(), self._all_promise()
        if answering is None:
            return await asking
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asking, answering))

    async def prolong_work(self, asked_ms: int) -> None:
        """Let our workers live on: no one may start over what they do for a length from then."""
        if self._held_s is None:
            return
        self._work_ms = until_ms = max(self._work_ms, asked_ms + int(self._held_s * 1000))
        try:
            await self._off_loop(lambda: self._extend(until_ms))
        except OSError as error:
            log.warning("the workers' deadline cannot be moved on: %s", error)

    def promise(self) -> bool:
        """Whether we cannot ask the store either; then we take nothing over for a whole length.

        Asked by another node, whose workers live on for as long if all others say so.
        """
        if self.is_taking:
            return False
        if self._is_asked_in_vain:
            self._since_ms = self._clock.elapsed_ms()
        return self._is_asked_in_vain
