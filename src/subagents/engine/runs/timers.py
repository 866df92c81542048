"""Wakes runs at their stored due times.

A wake-up is a hint: what is due is read from the stored run, and the reducer decides from the time
inside ``TimerFired``. The sweep has every run looked at (``redrive``), so a lost or early wake-up
costs time, never a run.
"""

import asyncio
import heapq
from collections.abc import Callable
from typing import Final

from subagents.domain.rules.deadlines import next_due_ms, timer_event
from subagents.domain.run.events import TimerCause, TimerFired
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, replace
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.tasks import wait_at_most
from subagents.ports import Batch

LOOK_MS_MAX: Final = 5_000
"""The wall clock can jump forward (suspend, NTP): look at it at least this often."""


class Timers:
    """A heap of ``(due, run)`` over the committed runs.

    Args:
        kernel: Has the runs.
        backs_off: Whether a live run's program waits for its model's provider.
    """

    def __init__(self, kernel: Kernel, *, backs_off: Callable[[Run], bool]) -> None:
        self._ledger, self._clock = kernel.ledger, kernel.clock
        self._backs_off = backs_off
        self._heap: list[tuple[int, RunId]] = []
        self._due: dict[RunId, int] = {}
        self._changed = asyncio.Event()

    def on_commit(self, batch: Batch) -> None:
        for run in batch.runs.values():
            self.arm(run)

    def arm(self, run: Run) -> None:
        """Take over the run's newest due time."""
        due = next_due_ms(run)
        if due is None:
            self._due.pop(run.id, None)
        elif self._due.get(run.id) != due:
            self._due[run.id] = due
            heapq.heappush(self._heap, (due, run.id))
            if self._heap[0] == (due, run.id):
                self._changed.set()

    async def run(self) -> None:
        """Fire due timers until cancelled."""
        while True:
            self.fire_due()
            self._changed.clear()
            wait_ms = LOOK_MS_MAX
            if self._heap:
                wait_ms = min(max(self._heap[0][0] - self._clock.now_ms(), 1), LOOK_MS_MAX)
            await wait_at_most(self._clock, wait_ms / 1000, self._changed)

    def fire_due(self) -> int:
        """Apply the passed deadlines of every due run; returns how many runs that were."""
        now, fired = self._clock.now_ms(), 0
        while self._heap and self._heap[0][0] <= now:
            due, run_id = heapq.heappop(self._heap)
            if self._due.get(run_id) != due:
                continue  # a newer due time replaced this one
            del self._due[run_id]
            run = self._ledger.live.get(run_id)
            # A run that changed since is armed anew by its commit.
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
        self._ledger.apply_now(run.id, self._explained(run, event))
        return True

    def _explained(self, run: Run, event: TimerFired) -> TimerFired:
        is_refused = event.cause is TimerCause.DEADLINE and self._backs_off(run)
        return replace(event, backs_off=True) if is_refused else event
