"""Indexes of the open runs: by requester, dependency, session and lane.

Derived from the runs alone, in memory, kept by ``put`` at every change; the lane part answers
who gets the next slot. One reservation rule for caps: the same pass that reduces a spawn counts
it here, so racing spawns cannot both see the last free place.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from subagents.domain.rules.admission import Children, QueueOrder, holds_slot, lane_key, queue_order
from subagents.domain.run.run import AT_WORK, SETTLED, Phase, Run
from subagents.domain.run.values import RunId, SessionKey
from subagents.ports import LaneKey

_IN_LANES: Final = AT_WORK | {Phase.QUEUED}
"""Where a run may have a slot, or one of its plan's places, or wait for them."""


class LaneDemand(NamedTuple):
    """How much of one lane is used, and how many runs wait."""

    used: int
    queued: int
    """Runs that could begin with one more slot each."""
    limit: int | None
    """Slots of the lane, as the next of them says; None = none waits."""


class LanePermits(Protocol):
    """What may be given out of each lane, where that is not for this daemon to say alone."""

    def may_begin(self, lane: LaneKey, used: int, limit: int) -> bool:
        """Whether one more run may have a slot.

        Args:
            lane: Whose.
            used: By runs of this daemon.
            limit: Slots of the lane, as the run says.
        """
        ...

    def given_of(self, lane: LaneKey) -> int:
        """Slots of it that this daemon may use now."""
        ...


class Lanes:
    """Secondary views of the ledger's ``live`` runs.

    Args:
        permits: What may be given out of each lane; None = as many slots as it has.
    """

    def __init__(self, permits: LanePermits | None = None) -> None:
        self._permits = permits
        self._active: defaultdict[SessionKey, dict[RunId, None]] = defaultdict(dict)
        self._waits_for_runs: defaultdict[SessionKey, set[RunId]] = defaultdict(set)
        """The runs among these that wait for other runs."""
        self._dependants: defaultdict[RunId, list[RunId]] = defaultdict(list)
        self._session: dict[SessionKey, RunId] = {}
        self._held: defaultdict[LaneKey, set[RunId]] = defaultdict(set)
        self._queued: defaultdict[LaneKey, list[tuple[QueueOrder, RunId]]] = defaultdict(list)
        self._waiting: dict[RunId, tuple[QueueOrder, LaneKey]] = {}
        self._slots: dict[RunId, int] = {}
        self._at_work: defaultdict[str, set[RunId]] = defaultdict(set)
        """Runs at work or being checked, of each plan that bounds how many may be."""
        self.touched: dict[LaneKey, None] = {}
        """Lanes in which ``grants`` may have something to give since it was asked last, in the
        order in which they were touched: what happens must not hang on the hashes of strings.
        """
        self._parked: list[tuple[LaneKey, tuple[QueueOrder, RunId]]] = []
        """Runs that were passed over; asked again after ``unpark``."""

    def put(self, before: Run | None, after: Run) -> None:
        """Take over one change of one run."""
        if before is None:
            for dependency in after.waiting.dependencies:
                if dependency.outcome is None:
                    self._dependants[dependency.run_id].append(after.id)
            self._session[after.session.first_key] = after.id
            self._place_requester(after)
            self._place_lane(before, after)
            return
        # Most events leave these parts of a run as they are: the same objects.
        if before.attempts is not after.attempts and len(before.attempts) != len(after.attempts):
            self._session[after.session_key] = after.id
        if before.phase is not after.phase:
            if (before.phase in SETTLED) is not (after.phase in SETTLED) or (
                before.phase is Phase.WAITING
            ):
                self._place_requester(after)
            if before.phase in _IN_LANES or after.phase in _IN_LANES:
                self._place_lane(before, after)
            return
        if after.phase is Phase.WAITING:
            self._place_requester(after)
        elif after.phase is Phase.QUEUED:
            self._place_lane(before, after)

    def drop(self, run: Run) -> None:
        """The run left memory."""
        self._active[run.requester].pop(run.id, None)
        self._waits_for_runs[run.requester].discard(run.id)
        for index in (self._active, self._waits_for_runs):
            if not index[run.requester]:
                del index[run.requester]
        if run.id in self._dependants:
            del self._dependants[run.id]
        for key in run.session_keys:
            if key in self._session:
                del self._session[key]

    def remove(self, run: Run) -> None:
        """The run left memory though it is open: another node has it."""
        self.drop(run)
        lane = lane_key(run)
        self._held[lane].discard(run.id)
        self.touched[lane] = None
        self._place_step(run, is_at_work=False)
        if self._waiting.pop(run.id, None) is not None:
            del self._slots[run.id]
        self._parked = [entry for entry in self._parked if entry[1][1] != run.id]

    def _place_requester(self, run: Run) -> None:
        if run.phase in SETTLED:
            self._active[run.requester].pop(run.id, None)
        else:
            self._active[run.requester][run.id] = None
        if run.phase is Phase.WAITING and run.waiting.dependencies.active:
            self._waits_for_runs[run.requester].add(run.id)
        elif (waiting := self._waits_for_runs.get(run.requester)) is not None:
            waiting.discard(run.id)

    def _place_lane(self, before: Run | None, after: Run) -> None:
        held = before is not None and holds_slot(before)
        if held is not holds_slot(after):
            lane = lane_key(before if before is not None and held else after)
            if held:
                self._held[lane].discard(after.id)
                self.touched[lane] = None
            else:
                self._held[lane].add(after.id)
        if after.resolved.step is not None:
            # What is expanded from a run's list are runs of its plan, and it waits for them.
            is_at_work = after.phase in AT_WORK and after.spec.for_each is None
            self._place_step(after, is_at_work=is_at_work)
        known = self._waiting.get(after.id)
        if after.phase is Phase.QUEUED and not after.control.paused:
            order, lane = queue_order(after), lane_key(after)
            if known != (order, lane):
                # The entry with the old order stays in the heap: ``grants`` skips it.
                self._waiting[after.id] = (order, lane)
                self._slots[after.id] = after.resolved.lane_slots
                heapq.heappush(self._queued[lane], (order, after.id))
                self.touched[lane] = None
        elif known is not None:
            # Its entry stays in the heap, where it is expensive to find: ``grants`` skips it.
            del self._waiting[after.id]
            del self._slots[after.id]

    def _place_step(self, run: Run, *, is_at_work: bool) -> None:
        step = run.resolved.step
        if step is None or step.jobs is None:
            return
        at_work = self._at_work[step.plan]
        if is_at_work:
            at_work.add(run.id)
        elif run.id in at_work:
            at_work.discard(run.id)
            self.unpark()
        if not at_work:
            del self._at_work[step.plan]

    # -- questions -------------------------------------------------------------------------

    def has_room_for_step(self, run: Run) -> bool:
        """Whether fewer runs of its plan are at work, or being checked, than may be at once."""
        step = run.resolved.step
        at_work = self._at_work.get(step.plan, ()) if step is not None else ()
        return step is None or step.jobs is None or len(at_work) < step.jobs

    def active(self, requester: SessionKey) -> tuple[RunId, ...]:
        """The requester's runs that have no outcome yet, in the order in which they came here."""
        return tuple(self._active.get(requester, ()))

    def children(self, requester: SessionKey) -> Children:
        """How many open runs the requester has, as its cap counts them."""
        waiting = len(self._waits_for_runs.get(requester, ()))
        return Children(len(self._active.get(requester, ())) - waiting, waiting)

    def take_dependants(self, run_id: RunId) -> list[RunId]:
        """Runs that wait for this one; asked once, when it settles."""
        return self._dependants.pop(run_id, [])

    def dependants(self, run_id: RunId) -> tuple[RunId, ...]:
        """Runs that wait for this one."""
        return tuple(self._dependants.get(run_id, ()))

    def line(self, lane: LaneKey) -> list[RunId]:
        """The runs that wait for a slot of the lane, the next one first; visits all that wait."""
        waiting = ((order, run_id) for run_id, (order, at) in self._waiting.items() if at == lane)
        return [run_id for _, run_id in sorted(waiting)]

    def ahead(self, lane: LaneKey, order: QueueOrder) -> int:
        """How many wait for a slot of the lane before a place in its order; visits all that do."""
        return sum(at == lane and before < order for before, at in self._waiting.values())

    def run_of(self, session: SessionKey) -> RunId | None:
        """The open run whose agent speaks under this session key."""
        return self._session.get(session)

    def held(self, lane: LaneKey) -> int:
        """Slots in use."""
        return len(self._held.get(lane, ()))

    def held_by_lane(self) -> dict[LaneKey, int]:
        """Slots in use, per lane and depth."""
        return {lane: len(runs) for lane, runs in self._held.items() if runs}

    def queued_by_lane(self) -> Counter[LaneKey]:
        """How many wait for a slot, per lane and depth; visits all that wait."""
        return Counter(lane for _, lane in self._waiting.values())

    def demands(self) -> dict[LaneKey, LaneDemand]:
        """Every lane that is used or waited for; visits all that wait."""
        queued = self.queued_by_lane()
        for lane, (order, run_id) in self._parked:
            if self._waiting.get(run_id) == (order, lane):
                queued[lane] -= 1
        used = self.held_by_lane()
        return {
            lane: LaneDemand(used.get(lane, 0), queued[lane], self._next_limit(lane))
            for lane in {**used, **queued}
        }

    def _next_limit(self, lane: LaneKey) -> int | None:
        queue = self._queued[lane]
        while queue:
            order, run_id = queue[0]
            if self._waiting.get(run_id) == (order, lane):
                return self._slots[run_id]
            heapq.heappop(queue)
        return None

    def unpark(self) -> bool:
        """Ask again for those that were passed over; False = there are none."""
        parked, self._parked = self._parked, []
        for lane, entry in parked:
            heapq.heappush(self._queued[lane], entry)
            self.touched[lane] = None
        return bool(parked)

    def grants(self, may_start: Callable[[RunId], bool]) -> Iterator[RunId]:
        """Runs that get a slot now, best first; each must be granted before the next is asked.

        A run counts its own configuration's slots: two projects with different limits share the
        lane without overriding each other. The head of the queue is never overtaken, but when
        ``may_start`` says no: it is passed over until ``unpark``, or until a run of its plan ends.
        """
        while self.touched:
            lane, _ = self.touched.popitem()
            queue = self._queued[lane]
            while queue:
                order, run_id = queue[0]
                if self._waiting.get(run_id) != (order, lane):
                    heapq.heappop(queue)  # granted, paused or settled meanwhile
                    continue
                used = len(self._held[lane])
                if used >= self._slots[run_id]:
                    break
                permits = self._permits
                if permits is not None and not permits.may_begin(lane, used, self._slots[run_id]):
                    break
                heapq.heappop(queue)
                if may_start(run_id):
                    yield run_id
                else:
                    self._parked.append((lane, (order, run_id)))
