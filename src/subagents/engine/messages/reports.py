"""What a worker reports of its own work: completion, progress, and which tools it used."""

import logging
from collections.abc import Callable, Sequence
from typing import Final

from subagents.domain.redaction.redact_events import redact_value
from subagents.domain.rules import admission
from subagents.domain.rules.tool_kinds import REPORT_TOOL
from subagents.domain.run.events import SignalReceived
from subagents.domain.run.run import Progress, Report, Run
from subagents.domain.run.signals import (
    ProgressSeen,
    ReportSeen,
    Signal,
    ToolSeen,
)
from subagents.domain.run.values import RunId, Value, replace
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.tasks import Tasks
from subagents.engine.messages.questions import live_attempt
from subagents.errors import StoreUnavailable
from subagents.ports import Batch, ProgressLog

log = logging.getLogger(__name__)

BUSY_S: Final = 30
"""What a second update is answered while the first is being written: the whole interval."""


class ProgressAnswer(Value, frozen=True):
    """What became of one update; being too early is no error."""

    stored: bool
    """It is in the run's progress log."""
    retry_after_s: int | None = None
    """Too soon: nothing was changed, this call can succeed in so many seconds."""

    @property
    def is_latest_only(self) -> bool:
        """The log is full: the run shows it as its latest progress, and nothing keeps it."""
        return not self.stored and self.retry_after_s is None


class Reports:
    """Takes a worker's word for its run.

    Args:
        kernel: Its ledger takes what is said, its clock paces it.
        log: Keeps the updates of each run.
        flush: Makes events of what was seen of a worker's output so far.
    """

    def __init__(
        self,
        kernel: Kernel,
        log: ProgressLog,
        *,
        flush: Callable[[RunId], None],
    ) -> None:
        self._ledger, _, self._off_loop, self._clock = kernel
        self._log = log
        self._flush = flush
        self._writing: set[RunId] = set()
        """Runs with an update on its way into the log."""
        self._tasks = Tasks()

    async def report(self, run_id: RunId, report: Report) -> None:
        """The worker's own claim of completion; the last one counts.

        What was seen of its output so far comes before it.

        Raises:
            Conflict: The run's attempt is not live.
        """
        self._flush(run_id)
        run = live_attempt(self._ledger, run_id)
        await self._say(run, ReportSeen(key="", report=report))

    async def tool_used(self, run_id: RunId, attempt: int, name: str) -> None:
        """The worker called one of our tools: a report before that is no longer its last act.

        Nothing is written unless that changes anything; of an attempt that is over nothing does.
        What was seen of the worker's output so far comes before it.
        """
        self._flush(run_id)
        if name == REPORT_TOOL:
            return
        run = self._ledger.live.get(run_id)
        if run is None or len(run.attempts) != attempt or not run.attempt.last.is_report:
            return
        await self._say(run, ToolSeen(key="", name=name))

    async def progress(self, run_id: RunId, progress: Progress) -> ProgressAnswer:
        """The worker's latest progress: at most one per 30 s, and 100 of a run are kept.

        The line in the log is written before the commit, so that no update that was
        acknowledged is missing there. A crash between the two leaves one whose number comes again.

        Raises:
            Conflict: The run's attempt is not live.
            StoreUnavailable: The log cannot be written; nothing was stored.
        """
        run = live_attempt(self._ledger, run_id)
        now = self._clock.now_ms()
        left_s = BUSY_S if run_id in self._writing else admission.progress_wait_s(run, now)
        if left_s > 0:
            return ProgressAnswer(stored=False, retry_after_s=left_s)
        number = run.progress.lines + 1
        if number > admission.PROGRESS_LINES_MAX:
            await self._say(run, _seen(progress), at_ms=now)
            return ProgressAnswer(stored=False)
        # The log is a file of its own, written before the ledger, which redacts everything else.
        progress = redact_value(progress, self._ledger.secrets_of(run))
        numbered = replace(progress, updated_at_ms=now, number=number)
        self._writing.add(run_id)
        try:
            await self._off_loop(lambda: self._log.append(run_id, numbered))
            # Its attempt may have ended meanwhile; the event says which one it belongs to.
            await self._say(run, _seen(numbered), at_ms=now)
        except OSError as error:
            raise StoreUnavailable(f"the progress of {run_id} cannot be kept: {error}") from error
        finally:
            self._writing.discard(run_id)
        return ProgressAnswer(stored=True)

    def paced(self, run_id: RunId, seen: ProgressSeen) -> ProgressSeen:
        """An update of the worker's stream, with its place in the log when it is due for one.

        Nobody is told of a stream's update that it came too soon: it is the run's latest, and no
        more. ``on_commit`` writes the lines.
        """
        run, now = self._ledger.live.get(run_id), self._clock.now_ms()
        if run is None or not run.attempts:
            return seen
        if run_id in self._writing or admission.progress_wait_s(run, now) > 0:
            return replace(seen, is_paced=False)
        number = run.progress.lines + 1
        if number > admission.PROGRESS_LINES_MAX:
            return seen
        return replace(seen, progress=replace(seen.progress, updated_at_ms=now, number=number))

    def on_commit(self, batch: Batch) -> None:
        """Write the updates of streams that are durable now; those of tool calls are in there."""
        for entry in batch.journal:
            if type(entry.event) is not SignalReceived:
                continue
            match entry.event.signal:
                case ProgressSeen(key=key, progress=progress) if key and progress.number:
                    kept = replace(progress, updated_at_ms=entry.at_ms)
                    self._tasks.start(self._keep(entry.run_id, kept), "progress")

    async def _keep(self, run_id: RunId, progress: Progress) -> None:
        try:
            await self._off_loop(lambda: self._log.append(run_id, progress))
        except OSError as error:
            log.warning("the progress of %s cannot be kept: %s", run_id, error)

    async def stop(self) -> None:
        """Return when what is being written is written."""
        await self._tasks.finished()

    async def progress_of(self, run_id: RunId) -> Sequence[Progress]:
        """The run's progress log, oldest first; at most 100."""
        return await self._off_loop(lambda: self._log.read(run_id))

    async def forget(self, run_id: RunId) -> None:
        """Delete the run's progress log; it goes with its run."""
        await self._off_loop(lambda: self._log.forget(run_id))

    async def _say(self, run: Run, signal: Signal, *, at_ms: int | None = None) -> None:
        at_ms = self._clock.now_ms() if at_ms is None else at_ms
        event = SignalReceived(at_ms=at_ms, attempt=len(run.attempts), signal=signal)
        await self._ledger.apply(run.id, event)


def _seen(progress: Progress) -> ProgressSeen:
    return ProgressSeen(key="", progress=progress)
