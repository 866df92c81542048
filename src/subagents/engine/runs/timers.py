"""Wakes runs at their stored due times.

A wake-up is a hint: what is due is read from the stored run, and the reducer decides from the time
inside ``TimerFired``. The sweep asks the same of every run, so a lost or early wake-up costs time,
never a run.
"""

import asyncio
import heapq
from typing import Final

from subagents.domain.rules.deadlines import next_due_ms, timer_event
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.tasks import wait_at_most
from subagents.ports import Batch

LOOK_MS_MAX: Final = 5_000
"""The wall clock can jump forward (suspend, NTP): look at it at least this often."""


class Timers:
    """A heap of ``(due, run)`` over the committed runs."""

    def __init__(self, kernel: Kernel) -> None:
        self._ledger, self._clock = kernel.ledger, kernel.clock
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
            event = timer_event(run, now) if run is not None else None
            if event is not None:  # else the run changed since, and its commit arms it anew
                self._ledger.apply_now(run_id, event)
                fired += 1
        return fired
