"""The one periodic pass, every 60 s and on demand: wake-ups are hints, this is the truth."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from subagents.config.settings import Settings
from subagents.domain.run.events import Archived
from subagents.domain.run.run import Phase
from subagents.domain.run.values import AttemptId, RunId, Value
from subagents.engine.attempts.launch import ref_of
from subagents.engine.attempts.placement import RuntimeOf
from subagents.engine.attempts.workspaces import Workspaces
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.messages.mailbox import Mailbox
from subagents.engine.messages.reports import Reports
from subagents.engine.records.artifact_files import ArtifactFiles
from subagents.engine.records.recorder import Recorder
from subagents.engine.records.results import Results
from subagents.engine.runs.queries import Queries
from subagents.engine.runs.timers import Timers
from subagents.errors import (
    CorruptState,
    Elsewhere,
    Fenced,
    NodeUnreachable,
    NotFound,
    RuntimeUnavailable,
    StoreUnavailable,
    Unavailable,
)
from subagents.ports import RunLogs

log = logging.getLogger(__name__)

ROWS_MAX: Final = 100
"""Runs that are archived or pruned at once; commits wait for so many."""
ROUNDS_MAX: Final = 50
"""How often either is done in one pass; the next pass continues."""
STRAYS_AGAIN_MS: Final = 4_000_000
"""So long after the start what a crash left right before it counts as a stray, too."""

Orphans = Callable[[Callable[[], set[AttemptId]]], Awaitable[list[tuple[str, int]]]]
"""Given what says which attempts may live, the processes of all others: ``(attempt, pid)``. It is
asked after all processes were looked at: what starts while they are is not taken for left behind.
"""


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
        kernel: Kernel,
        *,
        queries: Queries,
        timers: Timers,
        mailbox: Mailbox,
        reports: Reports,
        recorder: Recorder,
        results: Results,
        workspaces: Workspaces,
        runtime_of: RuntimeOf,
        settings: Settings,
        orphans: Orphans,
        logs: RunLogs,
        keeps: Callable[[str], bool],
        tidy_parts: Callable[[], Awaitable[None]],
        artifacts: ArtifactFiles,
    ) -> None:
        self._ledger, self._store, self._off_loop, self._clock = kernel
        self._keeps = keeps
        """Whether variables are not those of a run, and in use."""
        self._tidy_parts, self._tidy_logs = tidy_parts, logs.tidy
        self._artifacts = artifacts
        self._queries = queries
        self._timers = timers
        self._mailbox = mailbox
        self._reports = reports
        self._recorder = recorder
        self._results = results
        self._environments = logs.environments
        self._strays_due_ms = [0, self._clock.steady_ms() + STRAYS_AGAIN_MS]
        self._workspaces = workspaces
        self._runtime_of = runtime_of
        self._settings = settings
        self._orphans = orphans
        self._passing = asyncio.Lock()

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            await self._clock.sleep(self._settings.daemon.sweep_seconds)
            try:
                await self.once()
            except Fenced:
                return  # the engine ends all that acts
            except Exception:
                log.exception("a sweep failed; the next one tries again")

    async def once(self) -> SweepReport:
        """One whole pass, after one that is under way: both would prune the same runs."""
        async with self._passing:
            return await self._pass()

    async def _pass(self) -> SweepReport:
        redriven = self._timers.redrive()
        self._mailbox.leases.forget()
        archived = await _in_rounds(self._archive)
        pruned = await _in_rounds(self._prune)
        while await self._off_loop(self._store.shrink):
            pass  # a part at a time: commits come in between
        await self._tidy_parts()
        await self._workspaces.sweep()
        orphans = await self.orphans()
        for attempt in dict.fromkeys(attempt for attempt, _ in orphans):
            pids = ", ".join(str(pid) for name, pid in orphans if name == attempt)
            ended = await self._end_orphan(AttemptId(attempt))
            what = "ended" if ended else "left alone: no run of ours that is over"
            log.warning("processes %s carry the marker of %s: %s", pids, attempt, what)
        try:
            await self._off_loop(self._tidy_files)
        except StoreUnavailable as error:
            log.warning("what archived runs left stays where it is for now: %s", error)
        return SweepReport(
            archived=archived, pruned=pruned, redriven=redriven, orphans=tuple(orphans)
        )

    async def _archive(self) -> int:
        """Some of those that are due; their number."""
        minutes = self._settings.defaults.archive_after_minutes
        before = self._clock.now_ms() - minutes * 60_000
        ids = await self._off_loop(lambda: self._store.archivable(before, ROWS_MAX))
        for run_id in ids:
            try:
                run = await self._ledger.load_run(run_id)
            except Elsewhere:
                continue  # its partition was given back meanwhile
            if run.times.archived_at_ms is None:
                self._ledger.apply_now(run_id, Archived(at_ms=self._clock.now_ms()))
            else:
                self._ledger.evict(run)  # by a caller, since it was asked which are due
        await self._ledger.committed()
        return len(ids)

    async def _prune(self) -> int:
        """Some of those that are due; their number."""
        days = self._settings.retention.result_retention_days
        before = self._clock.now_ms() - days * 24 * 3_600_000
        due = await self._off_loop(lambda: self._store.prunable(before, ROWS_MAX))
        # From the first file on: a run that somebody changed meanwhile could not be written.
        with self._ledger.leaving(due) as ids:
            gone = []
            for run_id in ids:
                try:
                    await self._forget(run_id)
                    gone.append(run_id)
                except (Unavailable, CorruptState, OSError) as error:
                    # Its files stay, and so it does: no others must wait for that.
                    log.warning("%s is not pruned yet: %s", run_id, error)
                    if isinstance(error, NodeUnreachable):
                        break  # each run of that node would take as long
            try:
                await self._off_loop(lambda: self._store.prune(gone))
            except Fenced as error:
                # No commit may ever say so: an owner with nothing to do makes none.
                self._ledger.fail(error)
                raise
        return len(gone)

    def _tidy_files(self) -> None:
        if self._strays_due_ms and self._strays_due_ms[0] <= self._clock.steady_ms():
            # Twice per start: a crash comes between a file and the commit of its run.
            self._environments.forget_strays(self._is_known)
            del self._strays_due_ms[0]
        self._tidy_logs()

    def _is_known(self, run_id: RunId) -> bool:
        if self._keeps(run_id):
            return True
        try:
            return self._store.run(run_id) is not None
        except CorruptState:
            return True

    async def orphans(self) -> list[tuple[str, int]]:
        """Marked processes of attempts that are not at work: ``(attempt, pid)``."""
        found = await self._orphans(self._expected)
        if not self._ledger.partitions.is_shared:
            return found
        names = dict.fromkeys(attempt for attempt, _ in found)
        others = {each for each in names if await self._is_anothers(AttemptId(each))}
        return [(attempt, pid) for attempt, pid in found if attempt not in others]

    async def _is_anothers(self, name: AttemptId) -> bool:
        """Whether it works here for a run that another node decides about."""
        run_id, _, number = name.rpartition("#")
        if await self._off_loop(lambda: self._ledger.partitions.has_run(RunId(run_id))):
            return False
        try:
            run = await self._off_loop(lambda: self._store.run(RunId(run_id)))
        except CorruptState:
            return True
        return run is not None and not run.is_settled and number == str(len(run.attempts))

    def _expected(self) -> set[AttemptId]:
        """Attempts that may have processes."""
        return {
            run.attempt_id
            for run in self._ledger.live.values()
            if run.attempts
            and run.phase in {Phase.SPAWNING, Phase.RUNNING, Phase.ENDING, Phase.VERIFYING}
        }

    async def _forget(self, run_id: RunId) -> None:
        """Delete the files of a run that is about to be pruned: its progress, its attempts'."""
        await self._reports.forget(run_id)
        await self._recorder.forget(run_id)
        run = await self._queries.run(run_id)
        await self._results.forget(run)
        await self._artifacts.forget(run_id)
        if run.resolved.caller_env is not None:
            await self._off_loop(partial(self._environments.forget, run_id))
        await self._workspaces.tidy(run)
        for attempt in run.attempts:
            runtime = self._runtime_of(run, attempt.number)
            if runtime is not None:
                await runtime.forget(ref_of(run, attempt.number))

    async def _end_orphan(self, name: AttemptId) -> bool:
        """End what is left of an attempt that is over; False = not ours beyond doubt."""
        run_id, _, number = name.rpartition("#")
        try:
            run, attempt = await self._queries.run(RunId(run_id)), int(number)
        except (NotFound, CorruptState, Elsewhere, ValueError):
            return False
        is_over = run.is_settled or attempt < len(run.attempts)
        if not is_over or not 1 <= attempt <= len(run.attempts):
            return False
        runtime = self._runtime_of(run, attempt)
        if runtime is None:
            return False
        try:
            await runtime.stop(ref_of(run, attempt), grace_s=run.resolved.grace_ms / 1000)
        except RuntimeUnavailable as error:
            log.warning("%s", error)
            return False
        return True


async def _in_rounds(work: Callable[[], Awaitable[int]]) -> int:
    """Repeat it while there is something to do; returns how much was done."""
    total = 0
    for _ in range(ROUNDS_MAX):
        done = await work()
        total += done
        if not done:
            break
    return total
