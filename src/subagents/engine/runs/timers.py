"""Wakes runs at their stored due times.

A wake-up is a hint: what is due is read from the stored run, and the reducer decides from the time
inside ``TimerFired``. The sweep has every run looked at (``redrive``), so a lost or early wake-up
costs time, never a run.

Deadlines count the time in which the machine was awake, and no setting of its clock changes that
while the daemon lives: when the clock stepped, all that is due moves along before anything fires.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from subagents.domain.rules.deadlines import UNTIMED, next_due_ms, timer_event
from subagents.domain.run.events import ClockStepped, TimerCause
from subagents.domain.run.run import OVER, Run
from subagents.domain.run.values import RunId, replace
from subagents.engine.kernel.due_heap import DueHeap
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.tasks import wait_at_most
from subagents.ports import Batch

log = logging.getLogger(__name__)

LOOK_MS_MAX: Final = 5_000
"""The wall clock can be set, and the machine suspended: look for that at least this often."""
STEP_MS_MIN: Final = 1_000
"""A step of less moves no deadline: that is what a minute's drift or a network's delay makes."""


class _Step(NamedTuple):
    by_ms: int
    run_ids: Mapping[RunId, None]
    """The runs that it moves, in their order: a set would have another one in each process."""


class Timers:
    """When each committed run is due.

    Args:
        kernel: Has the runs.
        backs_off: Whether a live run's program waits for its model's provider.
    """

    def __init__(self, kernel: Kernel, *, backs_off: Callable[[Run], bool]) -> None:
        self._ledger, self._clock = kernel.ledger, kernel.clock
        self._backs_off = backs_off
        self._on_step: list[Callable[[int], None]] = []
        self._due: DueHeap[RunId] = DueHeap()
        self._changed = asyncio.Event()
        self._untold: dict[str, _Step] = {}
        """Steps of the clock that may be on no disk yet, by the key of their events."""

    def on_step(self, *listeners: Callable[[int], None]) -> None:
        """Call these with the milliseconds of every step of the clock, when it is taken."""
        self._on_step += listeners

    def on_commit(self, batch: Batch) -> None:
        for entry in batch.journal if self._untold else ():
            self._untold.pop(entry.key or "", None)
        for run in batch.runs.values():
            if run.phase in UNTIMED:
                if run.id in self._due.due_ms:
                    self._due.drop(run.id)
            else:
                self.arm(run)

    def arm(self, run: Run) -> None:
        """Take over the run's newest due time."""
        due = next_due_ms(run)
        if due is None:
            if run.id in self._due.due_ms:
                self._due.drop(run.id)
        elif self._due.put(run.id, due):
            self._changed.set()

    def disarm(self, run_id: RunId) -> None:
        """Forget when the run is due: another node knows it now."""
        self._due.drop(run_id)

    async def run(self) -> None:
        """Fire due timers until cancelled."""
        while True:
            self.take_step()
            self.fire_due()
            self._changed.clear()
            wait_ms, next_ms = LOOK_MS_MAX, self._due.next_ms
            if next_ms is not None:
                wait_ms = min(max(next_ms - self._clock.now_ms(), 1), LOOK_MS_MAX)
            await wait_at_most(self._clock, wait_ms / 1000, self._changed)

    def take_step(self) -> int:
        """Follow the machine's clock, and move along what is due; returns by how many ms."""
        by_ms = self._clock.take_step_ms()
        if abs(by_ms) < STEP_MS_MIN:
            return by_ms
        log.warning("the clock was set, or the machine slept: deadlines move by %s s", by_ms / 1000)
        for listener in self._on_step:
            listener(by_ms)
        # After a failed commit only what was published is on the disk, and will be loaded again.
        failed = self._ledger.failure is not None
        runs = tuple((self._ledger.published if failed else self._ledger.live).values())
        # Once it had an attempt something is measured from then, or will be due again: a deadline
        # while its children work, a budget while it is verified.
        moved = [e.id for e in runs if e.phase not in OVER and (e.attempts or next_due_ms(e))]
        if moved:
            key = f"clock:{self._clock.steady_ms()}"
            self._untold[key] = _Step(by_ms, dict.fromkeys(moved))
            if not failed:
                self._move(key)
        return by_ms

    def tell_again(self) -> None:
        """Apply again the steps that were in no commit, after memory was lost and loaded again."""
        for key in tuple(self._untold):
            before = dict(self._ledger.live)
            self._move(key)
            if self._ledger.live == before:
                del self._untold[key]  # the commit was made: only its answer was lost

    def now_for(self, run: Run) -> int:
        """The time by which a run as it is stored is to be judged, in milliseconds since 1970."""
        return self._clock.now_ms() - sum(
            step.by_ms for step in self._untold.values() if run.id in step.run_ids
        )

    def _move(self, key: str) -> None:
        step, now = self._untold[key], self._clock.now_ms()
        for run_id in filter(self._ledger.live.__contains__, step.run_ids):
            self._ledger.apply_now(run_id, ClockStepped(at_ms=now, by_ms=step.by_ms), key=key)

    def fire_due(self) -> int:
        """Apply the passed deadlines of every due run; returns how many runs that were."""
        now, fired = self._clock.now_ms(), 0
        for run_id in self._due.take(now):
            run = self._ledger.live.get(run_id)
            # A run that changed since is armed again by its commit.
            fired += run is not None and self._fire(run, now)
        return fired

    def redrive(self) -> int:
        """Tell every live run whose due time passed; returns how many the heap had missed."""
        now = self._clock.now_ms()
        return sum(self._fire(run, now) for run in tuple(self._ledger.live.values()))

    def _fire(self, run: Run, now_ms: int) -> bool:
        event = timer_event(run, now_ms)
        if event is None:
            return False
        if event.cause is TimerCause.DEADLINE and self._backs_off(run):
            event = replace(event, backs_off=True)
        self._ledger.apply_now(run.id, event)
        return True
