"""The plain way to a place: its owner asks the nodes that it sees, one after the other.

What none of them takes becomes a row, for which nodes look that have a slot again
(docs/decisions/0113).
"""

import asyncio
import contextlib
import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Final

from subagents.domain.run.values import AttemptId
from subagents.errors import StoreUnavailable
from subagents.extensions.cluster.node_ports import Offer
from subagents.extensions.cluster.remote.slots import Slots
from subagents.extensions.cluster.shared_store import Survey
from subagents.ports import Clock, OffLoop

if TYPE_CHECKING:  # of an extra
    from subagents.extensions.cluster.offers.postgres_offers import PostgresOffers

log = logging.getLogger(__name__)

LOOK_S: Final = 0.1
"""The time between two looks, of who waits for takers, and of a node that rows may wait for."""
IDLE_S: Final = 0.5
"""The same where there was nothing lately; such a node looks at its newest survey only."""
LATELY: Final = 50
"""How many looks in vain are lately."""
AGAIN_S: Final = 1.0
"""The wait before the store is asked again that could not be asked."""
LOOK_MAX: Final = 64
"""Offers in one look, if one of them fits."""


class PolledPlaces:
    """See ``ports.Places``; one look for all attempts that wait here.

    Args:
        offers: Where they are kept that nobody took at once.
        off_loop: For questions to it.
        clock: Only waits.
        ask: Gives a node that keeps a slot for it, if any does now.
    """

    def __init__(
        self,
        offers: "PostgresOffers",
        off_loop: OffLoop,
        clock: Clock,
        ask: Callable[[Offer], Awaitable[str | None]],
    ) -> None:
        self._offers, self._off_loop, self._clock, self._ask = offers, off_loop, clock, ask
        self._waiting: dict[AttemptId, asyncio.Future[str]] = {}
        self._labels: Counter[str | None] = Counter()
        """How many wait with a label: what comes after them asks nobody, and waits behind them."""
        self._in_vain = 0
        self._looking: asyncio.Task[None] | None = None

    async def place(self, offer: Offer) -> str:
        """See ``ports.Places.place``."""
        taker = None if self._labels[offer.label] else await self._ask(offer)
        taker = taker or await self._off_loop(partial(self._offers.put, offer))
        if taker is not None:
            return taker
        waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[offer.attempt_id] = waiting
        self._labels[offer.label] += 1
        self._in_vain = 0
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            return await waiting
        finally:
            self._labels[offer.label] -= 1
            if self._waiting.get(offer.attempt_id) is waiting:
                del self._waiting[offer.attempt_id]

    async def settle(self, attempt_id: AttemptId) -> None:
        """See ``ports.Places.settle``."""
        await self._off_loop(partial(self._offers.drop, attempt_id))

    async def _look(self) -> None:
        """Look for takers until nobody waits for any."""
        while self._waiting:
            try:
                takers = partial(self._offers.takers, tuple(self._waiting))
                found = await self._off_loop(takers)
                self._in_vain = 0 if found else self._in_vain + 1
                for attempt, taker in found.items():
                    waiting = self._waiting.get(attempt)
                    if waiting is not None and not waiting.done():
                        waiting.set_result(taker)
                await self._clock.sleep(LOOK_S if self._in_vain < LATELY else IDLE_S)
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
        survey: The newest look at the cluster, in which it says whether there are rows.
    """

    def __init__(
        self,
        offers: "PostgresOffers",
        off_loop: OffLoop,
        clock: Clock,
        *,
        node: str,
        labels: Collection[str],
        slots: Slots,
        may_take: Callable[[], bool],
        survey: Callable[[], Survey],
    ) -> None:
        self._offers, self._off_loop, self._clock = offers, off_loop, clock
        self._node, self._labels = node, tuple(labels)
        self._slots, self._may_take = slots, may_take
        self._survey = survey
        self._seen: Survey | None = None
        self._in_vain = 0
        self._is_owed = False
        """Rows may wait for a slot of ours, before what comes now."""

    async def asked(self, offer: Offer) -> bool:
        """Whether a slot is kept here for an attempt whose owner asks for one.

        Which of the nodes that keep one starts it is what its owner writes down; the others have
        theirs back after a while.
        """
        is_ours = offer.label is None or offer.label in self._labels
        if not is_ours or not self._may_take() or not await self._off_loop(lambda: fits(offer)):
            return False
        if not self._is_owed and self._slots.keep(offer.attempt_id):
            return True
        self._is_owed, self._in_vain = True, 0  # it becomes a row
        return False

    async def run(self) -> None:
        """Look and take until cancelled."""
        while True:
            pause_s, survey = IDLE_S if self._in_vain >= LATELY else LOOK_S, self._survey()
            is_due = self._in_vain < LATELY or (survey.has_offers and survey is not self._seen)
            try:
                if is_due and self._may_take() and self._slots.free != 0:
                    self._seen = survey
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
        fitting = await self._off_loop(self._fitting)
        # A slot is kept first: what is taken has to have one.
        kept = [each.attempt_id for each in fitting if self._slots.keep(each.attempt_id)]
        self._is_owed = len(kept) < len(fitting)
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

    def _fitting(self) -> list[Offer]:
        """The next offers that fit, however many wait before them whose directory is not here."""
        most = LOOK_MAX
        while True:
            found = self._offers.open(self._labels, most)
            fitting = [each for each in found if fits(each)]
            if fitting or len(found) < most:
                return fitting
            most *= 8


def fits(offer: Offer) -> bool:
    """Whether this node can take an offer with a label that it has. Blocking.

    What asked for no place runs where its directory is; what asked for one is refused there.
    """
    with contextlib.suppress(OSError, ValueError):
        return offer.label is not None or os.path.isdir(offer.cwd)  # noqa: PTH112
    return False
