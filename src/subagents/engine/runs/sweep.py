"""The one periodic pass, every 60 s and on demand: wake-ups are hints, this is the truth."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from subagents.config.settings import Settings
from subagents.domain.rules.deadlines import timer_event
from subagents.domain.run.events import Archived
from subagents.domain.run.run import Phase
from subagents.domain.run.values import AttemptId, RunId, Value
from subagents.engine.kernel.ledger import Ledger
from subagents.engine.messages.mailbox import Mailbox
from subagents.ports import Clock, OffLoop, Store

log = logging.getLogger(__name__)

ROWS_MAX: Final = 500
"""Archived or pruned per pass; the next pass goes on."""

Orphans = Callable[[set[AttemptId]], Awaitable[list[tuple[str, int]]]]
"""Given the attempts that may live, the marked processes of all others: ``(attempt, pid)``."""


class SweepReport(Value, frozen=True):
    archived: int = 0
    pruned: int = 0
    redriven: int = 0
    orphans: tuple[tuple[str, int], ...] = ()
    """Found; those of attempts that are over were ended."""


class Sweep:
    """Archives, prunes, finds orphans, and re-examines everything with a due time."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        mailbox: Mailbox,
        store: Store,
        off_loop: OffLoop,
        clock: Clock,
        settings: Settings,
        orphans: Orphans,
        forget: Callable[[RunId], Awaitable[None]],
        end_orphan: Callable[[AttemptId], Awaitable[bool]],
        tidy: Callable[[], Awaitable[None]],
    ) -> None:
        self._ledger = ledger
        self._mailbox = mailbox
        self._store = store
        self._off_loop = off_loop
        self._clock = clock
        self._settings = settings
        self._orphans = orphans
        self._forget = forget
        self._end_orphan = end_orphan
        self._tidy = tidy

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            await self._clock.sleep(self._settings.daemon.sweep_seconds)
            try:
                await self.once()
            except Exception:
                log.exception("a sweep failed; the next one tries again")

    async def once(self) -> SweepReport:
        """One whole pass."""
        redriven = self._redrive()
        self._mailbox.offers.forget()
        archived = await self._archive()
        pruned = await self._prune()
        await self._tidy()
        orphans = await self._orphans(self._expected())
        for attempt in dict.fromkeys(attempt for attempt, _ in orphans):
            pids = ", ".join(str(pid) for name, pid in orphans if name == attempt)
            ended = await self._end_orphan(AttemptId(attempt))
            what = "ended" if ended else "left alone: no run of ours that is over"
            log.warning("processes %s carry the marker of %s: %s", pids, attempt, what)
        return SweepReport(
            archived=archived, pruned=pruned, redriven=redriven, orphans=tuple(orphans)
        )

    def _redrive(self) -> int:
        """Tell every run whose due time passed; normally the timers did and there is none."""
        now, late = self._clock.now_ms(), 0
        for run in tuple(self._ledger.live.values()):
            event = timer_event(run, now)
            if event is not None:
                self._ledger.apply_now(run.id, event)
                late += 1
        return late

    async def _archive(self) -> int:
        minutes = self._settings.defaults.archive_after_minutes
        before = self._clock.now_ms() - minutes * 60_000
        ids = await self._off_loop(lambda: self._store.archivable(before, ROWS_MAX))
        for run_id in ids:
            run = await self._ledger.bring(run_id)
            if run.archived_at_ms is None:
                self._ledger.apply_now(run_id, Archived(at_ms=self._clock.now_ms()))
            else:
                self._ledger.let_go(run)
        await self._ledger.committed()
        return len(ids)

    async def _prune(self) -> int:
        days = self._settings.retention.result_retention_days
        before = self._clock.now_ms() - days * 24 * 3_600_000
        ids = [
            run_id
            for run_id in await self._off_loop(lambda: self._store.prunable(before, ROWS_MAX))
            if run_id not in self._ledger.live
        ]
        for run_id in ids:
            await self._forget(run_id)
        await self._off_loop(lambda: self._store.prune(ids))
        return len(ids)

    def _expected(self) -> set[AttemptId]:
        """Attempts that may have processes."""
        return {
            run.attempt_id
            for run in self._ledger.live.values()
            if run.attempts
            and run.phase in {Phase.SPAWNING, Phase.RUNNING, Phase.ENDING, Phase.VERIFYING}
        }
