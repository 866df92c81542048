"""Ends workers while nothing can be recorded: a broken disk keeps none of them at work.

Which workers are to end is read from the runs as they were last durable, and from the cancels that
could not be stored. Those are in memory: they are recorded when the store works again, and a daemon
that is killed before has ended the workers and never says why.
"""

import asyncio
import logging

from subagents.domain.rules.deadlines import timer_event
from subagents.domain.run.events import CancelRequested, TimerCause
from subagents.domain.run.run import HOLDS_SLOT, Run
from subagents.domain.run.values import AttemptId, RunId
from subagents.engine.attempts.launch import ref_of
from subagents.engine.attempts.placement import RuntimeOf
from subagents.engine.kernel.addresses import ancestors
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.runs.timers import Timers
from subagents.errors import plain_error

log = logging.getLogger(__name__)


class EmergencyStops:
    """From a failed commit until the store can be written again."""

    def __init__(self, kernel: Kernel, timers: Timers, runtime_of: RuntimeOf) -> None:
        self._ledger, self._timers = kernel.ledger, timers
        self._runtime_of = runtime_of
        self._cancels: dict[RunId, CancelRequested] = {}
        self._ended: set[AttemptId] = set()

    def cancel(self, run_id: RunId, event: CancelRequested) -> None:
        """The run and all below it are to end, and that cannot be stored now."""
        self._cancels.setdefault(run_id, event)

    async def end_due(self) -> None:
        """End the workers whose time is over; called again while the store cannot be written."""
        self._timers.take_step()
        runs = [run for run in self._ledger.published.values() if self._is_due(run)]
        await asyncio.gather(*map(self._end, runs))

    def record(self) -> None:
        """The store works again: record what was cancelled, before anything is seen of the ends."""
        self._ended.clear()
        for run_id, event in tuple(self._cancels.items()):
            run = self._ledger.live.get(run_id)
            if run is None or run.is_settled or run.control.cancel is not None:
                del self._cancels[run_id]  # until that is seen, this commit may fail, too
            else:
                self._ledger.apply_now(run_id, event)

    def _is_due(self, run: Run) -> bool:
        # An attempt that was ended still looks live: nothing is recorded before the store works.
        if run.phase not in HOLDS_SLOT or not run.attempts or ref_of(run).attempt_id in self._ended:
            return False
        timer = timer_event(run, self._timers.now_for(run))
        return (
            run.attempt.evidence.stop is not None
            or (timer is not None and timer.cause in {TimerCause.DEADLINE, TimerCause.CANCEL})
            or any(
                each.id in self._cancels for each in (run, *ancestors(self._ledger.published, run))
            )
        )

    async def _end(self, run: Run) -> None:
        runtime = self._runtime_of(run, None)
        if runtime is None:
            return
        ref = ref_of(run)
        log.warning("%s is ended before that can be recorded", ref.attempt_id)
        try:
            await runtime.stop(ref, grace_s=run.resolved.grace_ms / 1000)
        except Exception as error:  # noqa: BLE001 - the next look tries again
            log.warning("ending %s failed: %s", ref.attempt_id, plain_error(error))
        else:
            self._ended.add(ref.attempt_id)
