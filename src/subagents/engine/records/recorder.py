"""Keeps the output of workers as lines, and shows it to the detectors.

Apart from the ledger: a transcript decides nothing, and one that cannot be kept never holds up
a run. Lines and what the detectors know are kept together with how far the stream was read, so
that after a crash reading continues there; alerts become durable *before* that, under keys that are
the same when the same pieces are looked at again. So none is lost and none is raised twice.

What only the journal knows (starts, messages to the worker, verdicts) gets its lines when
something is recorded or read next.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from subagents.domain.alerts import detectors
from subagents.domain.alerts.detectors import Watch
from subagents.domain.rules.current_alerts import Concern, concerns
from subagents.domain.run.alert import Alert
from subagents.domain.run.events import Alerted
from subagents.domain.run.run import OVER, Phase, Run
from subagents.domain.run.spec import Cleanup
from subagents.domain.run.values import RunId, replace
from subagents.domain.run.worker_output import OutputBatch
from subagents.domain.transcript.transcript_query import Checkpoint, LogPage, LogQuery
from subagents.engine.kernel.due_heap import DueHeap
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.tasks import wait_at_most
from subagents.engine.kernel.waiters import Wakeups
from subagents.engine.records.writer import Page, Pieces, TranscriptWriter
from subagents.errors import Fenced, StoreUnavailable
from subagents.ports import Batch, TranscriptLog

log = logging.getLogger(__name__)

GATHER_S: Final = 0.1
"""What all runs say within so long is written together."""
PENDING_MAX: Final = 4_000
"""Pieces of one run that wait to be written; a worker that says more waits until they are."""
LOOK_MS: Final = 1_000
"""The pause between two looks at a run of which one look did not get rid of what is due."""


@dataclass(slots=True)
class _Open:
    """One run's transcript while somebody writes it."""

    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    is_read: bool = False
    """The checkpoint is what the log says, or newer."""
    is_silent: bool = False
    """Nothing of what its workers said can be in the log or on its way there."""
    pieces: list[Pieces] = field(default_factory=list)
    is_deleted: bool = False
    """Its transcript was deleted while somebody waited to write on."""
    pending: int = 0
    """Number of pieces in ``pieces``."""
    is_idle: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when all output was written, or could not be."""
    ends: bool = False
    """The attempt is over: see ``Page.ends``."""
    is_synced: bool = True
    lost: int = 0
    """Lines that were lost; the next that is written says so."""
    is_kept: bool = True
    """False once lines were lost: the stream they come from must not be given up."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def rest(self, *, is_waiting: bool) -> None:
        """A write is over: wake whoever waits for it, unless there is more to be written."""
        if not self.pieces and not is_waiting:
            self.is_idle.set()


class Recorder:
    """Writes the transcripts, each by one writer at a time; readers bring them up to date first.

    Args:
        kernel: Its ledger takes the alerts, its store has the journal.
        transcripts: Keep the lines.
    """

    def __init__(self, kernel: Kernel, transcripts: TranscriptLog) -> None:
        self._ledger, _, self._off_loop, self._clock = kernel
        self._transcripts = transcripts
        self._writer = TranscriptWriter(kernel.store, transcripts)
        self._open: dict[RunId, _Open] = {}
        self._waiting: dict[RunId, Run] = {}
        """Runs with pieces that are not written yet."""
        self._of_before: set[RunId] = set()
        """Runs whose output a daemon before this one may have written, and never synced."""
        self._has_work = asyncio.Event()
        self._hurry = asyncio.Event()
        """A run's end waits for its output to be written, which is not gathered any longer."""
        self.readers: Wakeups[RunId] = Wakeups()
        """Whoever follows a run's lines, to be woken when there may be new ones."""
        self._is_paused = False
        self._due: DueHeap[RunId] = DueHeap()
        """When the detectors may have something to say about a run, or earlier."""
        self._due_changed = asyncio.Event()

    def on_commit(self, batch: Batch) -> None:
        """Runs that left memory leave this one, too."""
        self.readers.wake(batch.runs)
        # In the order of the batch: that of a set of names differs from process to process.
        for run_id, run in batch.runs.items():
            if run.phase in OVER and run_id in self._open:
                self._close(run_id)
            is_expected = run_id in self._due.due_ms
            if run.phase is Phase.RUNNING:
                if not is_expected:
                    self._expect(run)
            elif is_expected:
                self._due.drop(run_id)

    def _close(self, run_id: RunId) -> None:
        opened, run = self._open.get(run_id), self._ledger.live.get(run_id)
        # One that is over leaves the ledger only after all have heard of the commit.
        is_over = (run is None or run.phase in OVER) and run_id not in self._waiting
        if is_over and opened is not None and not opened.pieces and not opened.lock.locked():
            del self._open[run_id]
            self._transcripts.close(run_id)

    async def pause(self) -> None:
        """Return when no write is under way; until ``reset`` none begins, not even for readers."""
        self._is_paused = True
        for opened in tuple(self._open.values()):
            async with opened.lock:
                pass

    def reset(self) -> None:
        """Forget what is in memory; the log is read again."""
        self._open.clear()
        self._waiting.clear()
        self._of_before.clear()
        self._is_paused = False
        self._due.clear()
        self.adopt(self._ledger.published.values())

    def adopt(self, runs: Iterable[Run]) -> None:
        """Runs that somebody else recorded so far join those in memory."""
        for run in runs:
            self._of_before.add(run.id)
            self._expect(run)

    def leave(self, runs: Iterable[Run]) -> None:
        """Runs that somebody else records from here on leave memory; none has a worker here."""
        for run in runs:
            self._of_before.discard(run.id)
            self._waiting.pop(run.id, None)
            self._due.drop(run.id)
            if self._open.pop(run.id, None) is not None:
                self._transcripts.close(run.id)

    # -- writing ---------------------------------------------------------------------------

    async def positions(self, run: Run, *, is_new: bool) -> Mapping[str, int]:
        """How far the newest attempt's stream is kept; ``is_new`` = it cannot be, nothing is read.

        A transcript that cannot be read starts over, behind what the stream already gave.
        """
        opened = self._of(run.id)
        if is_new and not opened.is_read:
            opened.is_read = opened.is_silent = True
            return {}
        found = (await self._write_one(run)).positions
        prefix = f"{len(run.attempts)}/"
        return {n.removeprefix(prefix): at for n, at in found.items() if n.startswith(prefix)}

    async def record(self, run: Run, output: OutputBatch) -> None:
        """Take over what the run's newest attempt said; it is written within ``GATHER_S``.

        A worker that says much waits until there is room. Of a deleted session nothing is kept: a
        worker that was given up may go on talking.
        """
        known = self._ledger.live.get(run.id)
        if run.spec.cleanup is Cleanup.DELETE and (known is None or _is_gone(known)):
            return
        opened = self._of(run.id)
        opened.is_silent = False
        seq = (known or run).seq
        opened.pieces.append(Pieces(len(run.attempts), self._clock.now_ms(), seq, output))
        opened.pending += len(output.items)
        opened.is_idle.clear()
        self._waiting[run.id] = run
        self._has_work.set()
        if opened.pending >= PENDING_MAX:
            await self._write_one(run)

    async def written(self, run: Run) -> None:
        """Return when all output of the run is written; those who wait share one write.

        Call it before saying that an attempt is over: after that its stream is not read again.
        """
        opened = self._open.get(run.id)
        if opened is None:
            return
        if detectors.is_gathering(opened.checkpoint.watch):
            self._waiting[run.id] = run
            opened.is_idle.clear()
        elif not opened.pieces and not opened.lock.locked():
            return
        opened.ends = True
        self._hurry.set()
        self._has_work.set()
        await opened.is_idle.wait()

    async def sync(self, run: Run) -> bool:
        """Return when all output outlives a power cut; False = some of it is lost."""
        opened = self._open.get(run.id)
        if opened is None:
            return run.id not in self._of_before or await self._synced(run)
        if opened.pieces or opened.lock.locked():
            await self._write_one(run)
        if opened.is_synced:
            return opened.is_kept
        async with opened.lock:
            if not await self._synced(run):
                return False
        opened.is_synced = True
        self._close(run.id)
        return opened.is_kept

    async def _synced(self, run: Run) -> bool:
        try:
            await self._off_loop(lambda: self._transcripts.sync(run.id))
        except OSError as error:
            log.warning("the transcript of %s may not outlive a power cut: %s", run.id, error)
            return False
        self._of_before.discard(run.id)
        return True

    async def forget(self, run_id: RunId) -> None:
        """Delete the run's transcript; it goes with its run, or with its session."""
        opened = self._of(run_id)
        async with opened.lock:  # a write that is under way would bring it back
            self._waiting.pop(run_id, None)
            self._open.pop(run_id, None)
            self._of_before.discard(run_id)
            opened.pieces.clear()
            opened.is_deleted = True
            opened.is_idle.set()
            await self._off_loop(lambda: self._transcripts.forget(run_id))

    async def write_on(self) -> None:
        """Write the output of all runs together, until cancelled."""
        while True:
            await self._has_work.wait()
            await wait_at_most(self._clock, GATHER_S, self._hurry)
            self._has_work.clear()
            self._hurry.clear()
            ready = [
                run
                for run_id, run in tuple(self._waiting.items())
                if (opened := self._open.get(run_id)) is not None and not opened.lock.locked()
            ]
            try:
                await self._write(ready)
            except (StoreUnavailable, Fenced) as error:
                if self._ledger.failure is not None:
                    return  # memory is thrown away; the streams are read again from the log
                log.warning("what %s runs said is written later: %s", len(ready), error)
            except Exception:
                log.exception("what %s runs said could not be written", len(ready))
            if self._waiting:
                self._has_work.set()

    # -- reading ---------------------------------------------------------------------------

    def is_silent(self, run: Run) -> bool:
        """Whether it is known, without a look at the log, that its workers said nothing so far."""
        opened = self._open.get(run.id)
        return opened is not None and opened.is_silent

    async def read(self, run: Run, query: LogQuery) -> LogPage:
        """The run's lines that are wanted, everything known so far included.

        Raises:
            UsageError: ``grep`` is no regular expression, or one that takes too long.
            StoreUnavailable: The transcript cannot be read.
        """
        await self._write_one(run)
        try:
            return await self._off_loop(lambda: self._transcripts.read(run.id, query))
        except OSError as error:
            raise StoreUnavailable(f"the transcript of {run.id} cannot be read: {error}") from error

    async def watch_of(self, run: Run) -> Watch:
        """What the detectors know of the run: tools used, last activity, context."""
        opened = self._open.get(run.id)
        if opened is not None and opened.is_read:
            return opened.checkpoint.watch
        return (await self._write_one(run)).watch

    def known_watch(self, run_id: RunId) -> Watch:
        """What the detectors know of the run as far as it is in memory; reads nothing."""
        opened = self._open.get(run_id)
        return opened.checkpoint.watch if opened is not None and opened.is_read else Watch()

    def concerns(self, run: Run) -> tuple[Concern, ...]:
        """What is wrong with a run at work now, as far as ``known_watch`` says."""
        return concerns(run, self.known_watch(run.id), now_ms=self._clock.now_ms())

    # -- time ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look for silence, and for batches that are due, until cancelled."""
        while True:
            self._due_changed.clear()
            for run_id in tuple(self._due.take(self._clock.now_ms())):
                run = self._ledger.published.get(run_id)
                if run is not None and not await self._look(run):
                    return
            next_ms = self._due.next_ms
            if next_ms is None:
                await self._due_changed.wait()
            else:
                wait_ms = max(next_ms - self._clock.now_ms(), 1)
                await wait_at_most(self._clock, wait_ms / 1000, self._due_changed)

    async def _look(self, run: Run) -> bool:
        """Show the run to the detectors if it is due; False = memory is thrown away."""
        due, now = self._due_ms(run), self._clock.now_ms()
        if due is not None and due <= now:
            try:
                await self._write_one(run, looks=True)
            except (StoreUnavailable, Fenced) as error:
                if self._ledger.failure is not None:
                    return False
                log.warning("the silence of %s is checked later: %s", run.id, error)
            except Exception:
                log.exception("checking the silence of %s failed", run.id)
            run = self._ledger.published.get(run.id, run)
            due, now = self._due_ms(run), self._clock.now_ms() + LOOK_MS
        if due is not None:
            self._due.put(run.id, max(due, now))
        return True

    def _expect(self, run: Run) -> None:
        """Look at the run when it is due, unless that is done anyway.

        What a worker says puts off its silence: that is found out when the time comes, and not
        counted for everything it says.
        """
        due, known = self._due_ms(run), self._due.due_ms.get(run.id)
        if due is not None and (known is None or due < known) and self._due.put(run.id, due):
            self._due_changed.set()

    def _due_ms(self, run: Run) -> int | None:
        """When the detectors have something to say if nothing happens; None = they have nothing."""
        if run.phase is not Phase.RUNNING or run.control.frozen_since_ms is not None:
            return None
        opened, rules = self._open.get(run.id), run.resolved.alerts
        if opened is not None and opened.checkpoint.watch.last_at_ms is not None:
            return detectors.next_due_ms(opened.checkpoint.watch, rules)
        return (run.attempt.times.started_at_ms or run.times.phase_since_ms) + rules.stuck_ms

    def clock_stepped(self, by_ms: int) -> None:
        """Silence is counted without the time that did not pass."""
        self._due.shift(by_ms)
        self._due_changed.set()
        for opened in self._open.values():
            watch = opened.checkpoint.watch
            if watch.last_at_ms is not None:
                heard = replace(watch, last_at_ms=watch.last_at_ms + by_ms)
                opened.checkpoint = replace(opened.checkpoint, watch=heard)

    # -- steps -----------------------------------------------------------------------------

    def _of(self, run_id: RunId) -> _Open:
        return self._open.setdefault(run_id, _Open())

    async def _write_one(self, run: Run, *, looks: bool = False) -> Checkpoint:
        """Write all that is known of one run now, and return where its transcript stands."""
        opened = self._of(run.id)
        async with opened.lock:
            # A reader must not bring back from the journal what was deleted.
            is_deleted = opened.is_deleted or _is_gone(self._ledger.published.get(run.id, run))
            if self._is_paused or is_deleted:
                return opened.checkpoint
            page = self._page(run, opened, looks=looks)
            try:
                await self._write_pages({run.id: (opened, page)})
            finally:
                opened.rest(is_waiting=run.id in self._waiting)
        self._close(run.id)
        return opened.checkpoint

    async def _write(self, runs: Iterable[Run]) -> None:
        """Write what these runs said; none of them is being written by anybody."""
        taken: dict[RunId, tuple[_Open, Page]] = {}
        for run in runs:
            opened = self._of(run.id)
            # Free, unless somebody waits to delete it. No one else takes several at once, so that
            # none can wait in a circle.
            await opened.lock.acquire()
            if opened.is_deleted:
                opened.lock.release()
                continue
            taken[run.id] = (opened, self._page(run, opened))
        try:
            await self._write_pages(taken)
        finally:
            for run_id, (opened, _) in taken.items():
                opened.lock.release()
                opened.rest(is_waiting=run_id in self._waiting)
                self._close(run_id)

    def _page(self, run: Run, opened: _Open, *, looks: bool = False) -> Page:
        pieces, opened.pieces, opened.pending = opened.pieces, [], 0
        ends, opened.ends = opened.ends, False
        self._waiting.pop(run.id, None)
        known = self._ledger.published.get(run.id, run)
        return Page(
            run=known,
            pieces=pieces,
            checkpoint=opened.checkpoint,
            secrets=self._ledger.secrets_of(known),
            is_read=opened.is_read,
            lost=opened.lost,
            at_ms=self._clock.now_ms(),
            looks=looks,
            ends=ends,
        )

    async def _write_pages(self, taken: Mapping[RunId, tuple[_Open, Page]]) -> None:
        """Write them; whatever happens, each page is taken over, or its pieces are pending again.

        What is given back is written again soon, from the same place; after ``StoreUnavailable``
        mostly by whoever reads the streams again. What failed for no known reason is lost: the end
        of a run must not wait for it.
        """
        pages = [page for _, page in taken.values()]
        try:
            await _finished(self._off_loop(lambda: self._writer.write(pages)))
            with_news = [page for page in pages if page.alerts]
            if with_news:
                for page in with_news:
                    self._raise(page.run.id, page.alerts)
                await self._ledger.committed()
                await _finished(self._off_loop(lambda: self._writer.keep(with_news)))
        except (StoreUnavailable, Fenced):
            raise
        except Exception:
            for opened, page in taken.values():
                if not page.is_done:
                    page.checkpoint, page.is_read = opened.checkpoint, opened.is_read
                    page.is_kept, page.is_done = False, True
            raise
        finally:
            for opened, page in taken.values():
                if page.is_done:
                    _take_over(opened, page)
                    self._expect(page.run)
                else:
                    self._put_back(opened, page)
            self.readers.wake(taken)

    def _put_back(self, opened: _Open, page: Page) -> None:
        opened.pieces[:0] = page.pieces
        opened.pending += sum(len(each.output.items) for each in page.pieces)
        opened.ends = opened.ends or page.ends
        if page.pieces or page.ends:
            # What was cancelled may be only a reader, and the end of the run still waits.
            self._waiting.setdefault(page.run.id, page.run)
            self._has_work.set()

    def _raise(self, run_id: RunId, alerts: Sequence[Alert]) -> None:
        """Put them into the next commit; those that are known already change nothing."""
        for alert in alerts:
            live = self._ledger.live.get(run_id)
            if live is None or live.is_settled:
                return
            event = Alerted(at_ms=self._clock.now_ms(), alert=alert)
            self._ledger.apply_now(run_id, event, key=f"alert:{alert.key}")


def _is_gone(run: Run) -> bool:
    """Whether its transcript was deleted with its session, or is about to be."""
    is_over = run.phase in {Phase.CLEANUP_PENDING, Phase.COMPLETED}
    return is_over and run.spec.cleanup is Cleanup.DELETE


def _take_over(opened: _Open, page: Page) -> None:
    if page.checkpoint is not opened.checkpoint:
        opened.is_synced = False
    opened.checkpoint, opened.is_read = page.checkpoint, page.is_read
    opened.is_kept = opened.is_kept and page.is_kept
    opened.lost = page.lost


async def _finished(work: Awaitable[None]) -> None:
    """Wait for a thread to its end, also when whoever waits is told to stop.

    Else it would write on while somebody else reads the log to go on from it.
    """
    working = asyncio.ensure_future(work)
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait({working})
        raise
