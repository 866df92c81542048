"""Asks the cluster how many slots, and how much of shared caps, this node may use.

One call each half second while lanes are in use or runs wait, and one at once when a run begins to
wait for more than was given; none while nothing goes on. What is begun between two calls is within
what the last one gave, so that no run costs a call of its own. See docs/decisions/0079.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Final

from subagents.domain.rules.budgets.request_holds import Counted, Need
from subagents.domain.run.run import Run
from subagents.domain.run.values import AttemptId
from subagents.engine.attempts.provider_gate import ProviderGates
from subagents.engine.attempts.shared_spending import SharedSpending
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.tasks import wait_at_most
from subagents.errors import Fenced, StoreUnavailable
from subagents.extensions.cluster.engine.shared_partitions import SharedPartitions
from subagents.extensions.cluster.node_permits import Demand, LaneWanted, Permits, Settlement
from subagents.ports import LaneKey

log = logging.getLogger(__name__)

EVERY_S: Final = 0.5


class GivenSlots:
    """What the cluster gave this node of each lane, for all of whose nodes there is one limit.

    Args:
        partitions: What is ours: nothing begins before the cluster was told of it.
        on_short: Called when one begins to wait for more than was given.
    """

    def __init__(self, partitions: SharedPartitions, on_short: Callable[[], None]) -> None:
        self._partitions = partitions
        self._on_short = on_short
        self.told: frozenset[int] | None = None
        """Our partitions, as the cluster knows them; the same object as ``owned`` of those."""
        self.given: dict[LaneKey, tuple[int, int]] = {}
        """Slots, and under which limit they were asked for."""
        self.peaks: dict[LaneKey, int] = {}
        """The most that were used at once since that was asked last."""
        self.waits: dict[LaneKey, int] = {}
        """Lanes of which it is known that one waits, and the slots that it counts."""
        self.handed: dict[int, Counter[LaneKey]] = {}
        """Slots of runs that we gave back with their workers, by partition: we count them until
        their new owner says that it does."""

    def given_of(self, lane: LaneKey) -> int:
        """See ``lanes.LanePermits``."""
        return self.given.get(lane, (0, 0))[0]

    def may_begin(self, lane: LaneKey, used: int, limit: int) -> bool:
        """Whether one more run may have a slot.

        Args:
            lane: Whose.
            used: By runs of this node.
            limit: Slots of the lane, as the run says.
        """
        if self._partitions.is_leaving:
            return False
        slots, asked_for = self.given.get(lane, (0, 0))
        is_told = self.told is self._partitions.owned
        used += self.handed_of(lane)
        if is_told and used < slots and asked_for <= limit:
            self.peaks[lane] = max(self.peaks.get(lane, 0), used + 1)
            return True
        if not is_told or self.waits.get(lane) != limit:
            self.waits[lane] = limit
            self._on_short()
        return False

    def handed_of(self, lane: LaneKey) -> int:
        """Slots of runs that we count for others."""
        return sum(each[lane] for each in self.handed.values())


class PermitDesk:
    """See the module.

    Args:
        permits: Of the cluster.
        kernel: Has the runs.
        partitions: What is ours.
        provider_gates: Learn from the other nodes, and tell them.
        shared_spending: Does the same with caps.
        on_answer: Called when more may be kept of caps than before.
    """

    def __init__(
        self,
        permits: Permits,
        kernel: Kernel,
        partitions: SharedPartitions,
        provider_gates: ProviderGates,
        shared_spending: SharedSpending,
        *,
        on_answer: Callable[[], None],
    ) -> None:
        self._permits = permits
        self._ledger, _, self._off_loop, self._clock = kernel
        self._partitions = partitions
        self._gates, self._spending = provider_gates, shared_spending
        self._wake = asyncio.Event()
        self._lanes = GivenSlots(partitions, self._wake.set)
        self._under_way: asyncio.Future[Settlement] | None = None
        kernel.ledger.permits = self._lanes
        provider_gates.share(self._wake.set)
        shared_spending.share(self._wake.set)
        self._asking: list[asyncio.Event] = []
        """Events that are set with the answer to the next demand, or when there is none."""
        self._on_answer = on_answer

    async def reserve(self, run: Run, need: Need, counted: Counted) -> None:
        """See ``request_desk.Reserves``."""
        answered = asyncio.Event()
        self._asking.append(answered)
        self._spending.reserve(run, need, counted)
        await answered.wait()

    def unreserve(self, attempt: AttemptId) -> None:
        """See ``request_desk.Reserves``."""
        self._spending.unreserve(attempt)

    def hand_over(self, held: Mapping[int, Counter[LaneKey]]) -> None:
        """Runs of these partitions leave with the slots that they hold."""
        self._lanes.handed |= held

    async def run(self) -> None:
        """Settle as long as there is something to settle, until cancelled or fenced."""
        # What was given to what is no more in memory is known by the next answer only.
        self._lanes.told, self._lanes.given = None, {}
        while True:
            self._wake.clear()
            if self._is_needed():
                try:
                    await self._settle()
                except StoreUnavailable as error:
                    log.warning("nobody can say how many slots are free: %s", error)
                except Fenced as error:
                    self._ledger.fail(error)
                    return
            await wait_at_most(self._clock, EVERY_S, self._wake)

    async def close(self) -> None:
        """Release the connection, after ``run`` ended."""
        await self._answered()
        await self._off_loop(self._permits.close)

    def _is_needed(self) -> bool:
        if self._ledger.failure is not None:
            return False
        lanes = self._lanes
        return (
            lanes.told is not self._partitions.owned
            or bool(lanes.given)
            or bool(self._ledger.lanes.demands())
            or bool(lanes.handed)
            or self._gates.has_news
            or self._spending.has_news
            or bool(self._asking)
        )

    async def _settle(self) -> None:
        await self._answered()
        asking, self._asking = self._asking, []
        try:
            await self._exchange()
        finally:
            for each in asking:
                each.set()

    async def _exchange(self) -> None:
        loads, told, handed = self._ledger.loads, self._partitions.owned, self._lanes.handed
        for part in handed.keys() & told:
            del handed[part]  # it came back, and is counted with what is ours
        wanted = self._wanted()
        for lane, want in wanted.items():
            # What is not in the demand may be another's before its answer is here.
            slots, limit = self._lanes.given.get(lane, (0, 0))
            self._lanes.given[lane] = (min(slots, want.used), limit)
        closed, opened = self._gates.take_news()
        demand = Demand(told, wanted, self._spending.wanted(), closed, opened, tuple(handed))
        self._under_way = asyncio.ensure_future(
            self._off_loop(lambda: self._permits.settle(demand))
        )
        try:
            found = await asyncio.shield(self._under_way)
        except StoreUnavailable:
            self._gates.take_back(closed, opened)
            raise
        for part in {*demand.handed} - found.handed:
            handed.pop(part, None)
        if self._ledger.loads != loads or self._ledger.failure is not None:
            return
        self._gates.learn(found.gates)
        self._spending.learn(found.caps)
        self._on_answer()
        self._give(wanted, found)
        self._lanes.told = told
        self._ledger.lanes.touched.update(dict.fromkeys(wanted))
        self._ledger.fill_lanes()

    async def _answered(self) -> None:
        """An older demand must not arrive after a newer one: wait for one that nobody waits for."""
        if self._under_way is not None and not self._under_way.done():
            await asyncio.wait((self._under_way,))

    def _wanted(self) -> dict[LaneKey, LaneWanted]:
        demands, lanes = self._ledger.lanes.demands(), self._lanes
        peaks, lanes.peaks = lanes.peaks, {}
        wanted = {}
        for lane in demands.keys() | lanes.given.keys() | {*chain(*lanes.handed.values())}:
            found = demands.get(lane)
            used, queued = (0, 0) if found is None else (found.used, found.queued)
            used += lanes.handed_of(lane)
            limit = None if found is None else found.limit
            if limit is None:
                limit = lanes.given.get(lane, (0, used))[1]
            most = max(used + queued, peaks.get(lane, 0))
            wanted[lane] = LaneWanted(limit, used, most)
            if not queued:
                lanes.waits.pop(lane, None)
        return wanted

    def _give(self, wanted: dict[LaneKey, LaneWanted], found: Settlement) -> None:
        self._lanes.given = {
            lane: (found.lanes[lane], want.limit)
            for lane, want in wanted.items()
            if want.most or found.lanes[lane]
        }
