"""Who writes performance records and when, and what they add up to.

Beside the ledger: a record decides nothing, and one that cannot be written never holds up a
run. Every commit is searched for attempts that became final by it; their records are small and
made at once, a task of its own writes them, in order, off the loop. What a crash or a full disk
kept from being written is made again from the store: at the start, and once the log can be
written again. The log itself keeps each attempt once (``ports.PerformanceLog``).
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, TypeVar

from subagents.domain.run.run import SETTLED, Run
from subagents.domain.run.values import RunId, replace
from subagents.domain.track_record.track_record import (
    DAY_MS,
    RETENTION_DAYS,
    AttemptRecord,
    Day,
    Stats,
    Sums,
    Wanted,
    count,
    count_tags,
    ended_attempts,
    record_of,
    repeated,
    stats_of,
    total,
)
from subagents.engine.kernel.kernel import Kernel
from subagents.errors import SubagentsError
from subagents.ports import (
    Batch,
    PerformanceLog,
    RunFilter,
    readable,
)

log = logging.getLogger(__name__)

T = TypeVar("T")

DUE_MAX: Final = 20_000
"""Records that wait in memory while the log cannot be written; the store has the others."""
RETRY_S: Final = 30.0
"""Between two tries to write what could not be written."""
PAGE: Final = 500
"""Runs read at once when the log is brought up to date."""
MARGIN_DAYS: Final = 1
"""So long before its newest day the log is brought up to date: clocks jump."""


class _Due(NamedTuple):
    """A record on its way into the log."""

    record: AttemptRecord
    repeats: RunId | None
    """The run that its run repeats: what is said of it has to be read."""


@dataclass(slots=True)
class _Read:
    """A day of the log, as far as it was read."""

    offset: int = 0
    sums: Day = field(default_factory=dict)


class TrackRecords:
    """Writes a record for every attempt that is final, and counts them.

    Args:
        kernel: Has the runs.
        records: Keeps the records.
    """

    def __init__(self, kernel: Kernel, records: PerformanceLog) -> None:
        self._ledger, self._store, self._off_loop, self._clock = kernel
        self._records = records
        self._seen: dict[RunId, int] = {}
        """How many attempts of a run were taken."""
        self._due: list[_Due] = []
        self._missing_since_ms: int | None = 0
        """Attempts of runs that ended since then may be in the store alone; None = there are none.
        0 = since a little before the newest day of the log."""
        self._has_work = asyncio.Event()
        self._writing = asyncio.Lock()
        self._is_failing = False
        self._read: dict[int, _Read] = {}
        self._reading = threading.Lock()

    # -- writing ---------------------------------------------------------------------------

    def on_commit(self, batch: Batch) -> None:
        """Take the records of attempts that are final now."""
        for run in batch.runs.values():
            has_ended = bool(run.attempts) and run.attempts[0].outcome is not None
            # Each is taken once, and its run changes some times more.
            if has_ended and self._seen.get(run.id) != len(run.attempts):
                self._take(run)

    def reset(self) -> None:
        """The ledger was loaded: what was committed before may not have been taken."""
        self._seen.clear()
        for run in self._ledger.published.values():
            self._take(run)
        self._has_work.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            try:
                is_done = await self.flush() and await self._catch_up()
            except Exception:
                log.exception("performance records could not be made")
                is_done = False
            if not is_done:
                self._has_work.set()
                await self._clock.sleep(RETRY_S)

    async def flush(self) -> bool:
        """Write what waits; False = some of it still does."""
        async with self._writing:
            due, self._due = self._due, []
            is_kept = False
            try:
                is_kept = not due or await self._try(lambda: self._keep(due)) is not None
            finally:
                if not is_kept:
                    # Also when this was cancelled: what was written all the same is kept once.
                    self._due[:0] = due
            if due and is_kept:
                self._is_failing = False
            return is_kept

    @property
    def is_current(self) -> bool:
        """Whether the log has all that ended so far."""
        return not self._due and self._missing_since_ms is None and not self._writing.locked()

    async def tidy(self) -> None:
        """Drop what is older than the retention; part of the sweep."""
        self._seen = {run_id: n for run_id, n in self._seen.items() if run_id in self._ledger.live}
        await self._try(lambda: self._records.forget(self._oldest_day))

    @property
    def _oldest_day(self) -> int:
        return self._today - RETENTION_DAYS + 1

    @property
    def _today(self) -> int:
        return self._clock.now_ms() // DAY_MS

    def _take(self, run: Run) -> None:
        ended, seen = ended_attempts(run), self._seen.get(run.id, 0)
        if ended <= seen:
            return
        if len(self._due) < DUE_MAX:
            self._seen[run.id] = ended
            self._due += _records_of(run, after=seen)
        elif run.is_settled:
            # Others are taken with a later commit: the store is asked for those that ended, by the
            # time of their end, which need not be after that of their start: clocks jump.
            self._seen[run.id] = ended
            since_ms = run.ended_at_ms or 0
            known_ms = self._missing_since_ms
            self._missing_since_ms = since_ms if known_ms is None else min(since_ms, known_ms)
        self._has_work.set()

    async def _catch_up(self) -> bool:
        """Write what only the store knows; False = not all of it."""
        missing_ms = self._missing_since_ms
        if missing_ms is None:
            return True
        self._missing_since_ms = None
        page, offset = None, 0
        try:
            since_ms = missing_ms or await self._try(self._behind_ms)
            while since_ms is not None and page != 0:
                page = await self._try(partial(self._page, since_ms, offset))
                if page is None:
                    break
                offset += page
        finally:
            if page != 0:
                self._missing_since_ms = missing_ms
        return page == 0

    async def _try(self, work: Callable[[], T]) -> T | None:
        """Do it off the loop; None = it failed, which is said once until records are kept again."""
        try:
            return await self._off_loop(work)
        except (OSError, SubagentsError) as error:
            if not self._is_failing:
                log.warning("performance records cannot be kept now: %s", error)
            self._is_failing = True
            return None

    # -- off the loop ----------------------------------------------------------------------

    def _page(self, since_ms: int, offset: int) -> int:
        """Write what the store knows of some of the runs that ended since then; their number."""
        where = RunFilter(
            phases=tuple(SETTLED),
            archived=True,
            ended_after_ms=since_ms,
            limit=PAGE,
            offset=offset,
        )
        runs = self._store.runs(where)
        self._keep([due for run in runs for due in _records_of(run, after=0)])
        return len(runs)

    def _behind_ms(self) -> int:
        sizes, today = self._records.sizes(), self._today
        written = [day for day, size in sizes.items() if size and day <= today]
        newest = max(written, default=self._oldest_day)
        return max(newest - MARGIN_DAYS, self._oldest_day) * DAY_MS

    def _keep(self, due: Sequence[_Due]) -> int:
        oldest = self._oldest_day
        self._records.append([self._whole(each) for each in due if each.record.day >= oldest])
        return len(due)

    def _whole(self, due: _Due) -> AttemptRecord:
        before = readable(self._store, due.repeats) if due.repeats is not None else None
        if before is None:
            return due.record
        retry_of, escalated_from = repeated(before)
        return replace(due.record, retry_of=retry_of, escalated_from=escalated_from)

    # -- counting --------------------------------------------------------------------------

    async def stats(
        self, wanted: Wanted | None = None, *, days: int = RETENTION_DAYS
    ) -> tuple[Stats, ...]:
        """What ended attempts came to, by name.

        Args:
            wanted: Which, and what of them is counted together; None = all, by agent.
            days: UTC days up to and with today, 1 to ``RETENTION_DAYS``.

        Raises:
            OSError: The log cannot be read.
        """
        await self.flush()
        first = self._today - days + 1
        sums = await self._off_loop(lambda: self._sums(wanted or Wanted(), first))
        names = sorted(sums, key=lambda name: (name is None, name))
        return tuple(stats_of(name, sums[name]) for name in names)

    def _sums(self, wanted: Wanted, first: int) -> Sums:
        sizes = self._records.sizes()
        chosen = sorted(day for day in sizes if day >= first)
        if wanted.is_of_tags:
            # Read anew each time: sums for each of any number of tags would fill memory.
            sums: Sums = {}
            for day in chosen:
                for _, records in self._pages(day, 0):
                    count_tags(sums, records, wanted)
            return sums
        with self._reading:
            self._read = {day: read for day, read in self._read.items() if day in sizes}
            for day in chosen:
                read = self._read.get(day)
                if read is None or read.offset > sizes[day]:
                    read = self._read[day] = _Read()
                if read.offset < sizes[day]:
                    for end, records in self._pages(day, read.offset):
                        count(read.sums, records)
                        read.offset = end
            return total([self._read[day].sums for day in reversed(chosen)], wanted)

    def _pages(self, day: int, offset: int) -> Iterator[tuple[int, Sequence[AttemptRecord]]]:
        while True:
            records, end = self._records.read(day, offset=offset)
            if end == offset:
                return
            offset = end
            yield end, records


def _records_of(run: Run, *, after: int) -> list[_Due]:
    return [
        _Due(record_of(run, number), run.lineage.retry_from if number == 1 else None)
        for number in range(after + 1, ended_attempts(run) + 1)
    ]
