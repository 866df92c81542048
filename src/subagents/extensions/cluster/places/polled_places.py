"""The plain way to a place: nodes look for offers while they have free slots."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from subagents.domain.run.values import AttemptId
from subagents.errors import StoreUnavailable
from subagents.extensions.cluster.node_ports import FreeSlots, Offer, Offers
from subagents.ports import Clock, OffLoop

log = logging.getLogger(__name__)

LOOK_S: Final = 0.1
"""The time between two looks, of who waits for takers, and of a node that took something lately."""
IDLE_S: Final = 0.5
"""The same of a node for which there was nothing lately."""
LATELY: Final = 50
"""How many looks in vain make a node idle."""
AGAIN_S: Final = 1.0
"""The wait before the store is asked again that could not be asked."""
LOOK_MAX: Final = 64
"""Offers in one look."""


class PolledPlaces:
    """See ``ports.Places``; one look for all attempts that wait here.

    Args:
        offers: Where they are kept.
        off_loop: For questions to it.
        clock: Only waits.
    """

    def __init__(self, offers: Offers, off_loop: OffLoop, clock: Clock) -> None:
        self._offers = offers
        self._off_loop = off_loop
        self._clock = clock
        self._waiting: dict[AttemptId, asyncio.Future[str]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def place(self, offer: Offer) -> str:
        """See ``ports.Places.place``."""
        taker = await self._off_loop(partial(self._offers.put, offer))
        if taker is not None:
            return taker
        waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[offer.attempt_id] = waiting
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            return await waiting
        finally:
            if self._waiting.get(offer.attempt_id) is waiting:
                del self._waiting[offer.attempt_id]

    async def settle(self, attempt_id: AttemptId) -> None:
        """See ``ports.Places.settle``."""
        await self._off_loop(partial(self._offers.drop, attempt_id))

    async def _look(self) -> None:
        """Look for takers until nobody waits for any."""
        while self._waiting:
            try:
                asked = tuple(self._waiting)
                for attempt, taker in (
                    await self._off_loop(partial(self._offers.takers, asked))
                ).items():
                    waiting = self._waiting.get(attempt)
                    if waiting is not None and not waiting.done():
                        waiting.set_result(taker)
                await self._clock.sleep(LOOK_S)
            except Exception as error:  # noqa: BLE001 - whoever waits hears of it, and asks again
                failure = StoreUnavailable(f"nobody can say who took the attempt: {error}")
                for waiting in self._waiting.values():
                    if not waiting.done():
                        waiting.set_exception(failure)
                return


class PolledTaking:
    """See ``ports.Taking``.

    Args:
        offers: Where they are kept.
        off_loop: For questions to it.
        clock: Only waits.
        node: Our name.
        labels: Of this node.
        slots: What is free here.
        may_take: Whether we take any now: one that drains, or whose right is over, does not.
    """

    def __init__(
        self,
        offers: Offers,
        off_loop: OffLoop,
        clock: Clock,
        *,
        node: str,
        labels: Collection[str],
        slots: FreeSlots,
        may_take: Callable[[], bool],
    ) -> None:
        self._offers = offers
        self._off_loop = off_loop
        self._clock = clock
        self._node = node
        self._labels = tuple(labels)
        self._slots = slots
        self._may_take = may_take
        self._in_vain = 0

    async def run(self) -> None:
        """Look and take until cancelled."""
        while True:
            pause_s = IDLE_S if self._in_vain >= LATELY else LOOK_S
            try:
                if self._may_take() and self._slots.free != 0:
                    self._in_vain = 0 if await self.take() else self._in_vain + 1
            except StoreUnavailable as error:
                log.warning("nothing is taken from other nodes now: %s", error)
                pause_s = AGAIN_S
            await self._clock.sleep(pause_s)

    async def take(self) -> int:
        """Take what fits now; how many.

        Raises:
            StoreUnavailable: The offers cannot be read now.
        """
        found = await self._off_loop(partial(self._offers.open, self._labels, LOOK_MAX))
        fitting = await self._off_loop(lambda: [each for each in found if fits(each)])
        # A slot is kept first: what is taken has to have one.
        kept = [each.attempt_id for each in fitting if self._slots.keep(each.attempt_id)]
        if not kept:
            return 0
        taken: Collection[AttemptId] = ()
        try:
            work = partial(self._offers.take, kept, self._node, len(kept))
            taken = await self._off_loop(work)
        except StoreUnavailable:
            # Some may be ours, and their owners will start them: their slots stay for a while.
            taken = kept
            raise
        finally:
            for attempt in set(kept) - set(taken):
                self._slots.give_up(attempt)
        return len(taken)


def fits(offer: Offer) -> bool:
    """Whether this node can take an offer with a label that it has. Blocking.

    What asked for no place runs where its directory is; what asked for one is refused there.
    """
    with contextlib.suppress(OSError, ValueError):
        return offer.label is not None or os.path.isdir(offer.cwd)  # noqa: PTH112
    return False
