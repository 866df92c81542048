"""Who writes performance records and when, and what they add up to.

A record decides nothing, and one that cannot be written never holds up a run. Every commit is
searched for attempts that became final by it; their records are small and made at once, a task of
its own writes them, in order, off the loop. What a crash or a full disk kept from being written is
made again from the store: at the start, and once the log can be written again. For that the log has
a mark: what the journal says up to there is in it, so only what was journaled since is looked at.
Each sweep moves it on, and so does a stop. The log itself keeps each attempt once
(``PerformanceFiles``). In a store that other nodes write, too, what they journaled is looked at in
the same way whenever somebody asks, so that each node knows of all.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, TypeVar, cast

from subagents.domain.agents.agent_stats import Stats
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, replace
from subagents.engine.engine import Engine, HasSession, Part
from subagents.errors import SubagentsError, Unavailable
from subagents.extensions.track_record.series import (
    Bucket,
    Cells,
    Groups,
    SeriesBy,
    put,
    series,
)
from subagents.extensions.track_record.track_record import (
    DAY_MS,
    RETENTION_DAYS,
    AttemptRecord,
    Day,
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
from subagents.extensions.track_record.track_record_files import PerformanceFiles
from subagents.ports import Batch, readable

log = logging.getLogger(__name__)

T = TypeVar("T")

DUE_MAX: Final = 20_000
"""Records that wait in memory while the log cannot be written; the store has the others."""
RETRY_S: Final = 30.0
"""The pause between two tries to write what could not be written."""
PAGE: Final = 2_000
"""Events looked at together when the log is brought up to date; a run has eight or more."""
MARGIN_DAYS: Final = 1
"""So long before its newest day a log without a mark is brought up to date: clocks jump."""


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
    cells: Cells = field(default_factory=dict)


class TrackRecords(Part):
    """Writes a record for every attempt that is final, and counts them."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._ledger = engine, engine.ledger
        adapters = engine.adapters
        self._store, self._off_loop, self._clock = adapters.store, adapters.off_loop, adapters.clock
        self._records = PerformanceFiles(adapters.state_dir)
        self._is_shared = engine.partitions.is_shared
        """Whether attempts end at other nodes, too, of which only the store tells."""
        self._seen: dict[RunId, int] = {}
        """How many attempts of a run were taken."""
        self._due: list[_Due] = []
        self._missed = 1
        """How often attempts may have come to be in the store alone, behind the mark."""
        self._made_good = 0
        """Up to which of those times that was put right."""
        self._marked: int | None = None
        """How far the mark is, as far as this process moved it."""
        self._has_work = asyncio.Event()
        self._writing, self._following = asyncio.Lock(), asyncio.Lock()
        self._is_failing = False
        self._read: dict[int, _Read] = {}
        self._reading = threading.Lock()
        self._working: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, engine: Engine) -> "TrackRecords":
        """Those of an engine."""
        return cast("TrackRecords", engine.parts["track_record"])

    # -- writing ---------------------------------------------------------------------------

    async def read(self, has: HasSession) -> Callable[[], None]:  # noqa: ARG002 - of all sessions
        """See ``Part``: what was committed before may not have been taken."""
        return self._begin

    def _begin(self) -> None:
        if self._working is not None and not self._working.done():
            return  # runs of another node: what ended there is read when somebody asks
        # Behind the mark the store is asked for what was not taken.
        self._seen = {run.id: ended_attempts(run) for run in self._ledger.published.values()}
        self._missed += 1
        self._has_work.set()
        self._working = self._engine.keep(self.run, "track records")

    def on_commit(self, batch: Batch) -> None:
        """See ``Part``: take the records of attempts that are final now."""
        for run in batch.runs.values():
            has_ended = bool(run.attempts) and run.attempts[0].outcome is not None
            # Each is taken once, and its run changes some times more.
            if has_ended and self._seen.get(run.id) != len(run.attempts):
                self._take(run)

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
        return not self._due and not self._is_behind and not self._writing.locked()

    @property
    def _is_behind(self) -> bool:
        return self._made_good < self._missed

    async def tidy(self) -> None:
        """See ``Part``: what is older than the retention goes, and the mark moves on."""
        self._seen = {run_id: n for run_id, n in self._seen.items() if run_id in self._ledger.live}
        await self._try(lambda: self._records.forget(self._oldest_day))
        await self.settle()

    async def settle(self) -> None:
        """See ``Part``: write what waits and move the mark behind it, if nothing is missing."""
        if self._is_shared:
            await self._gather()
            return
        number: int | None = None
        with contextlib.suppress(SubagentsError):
            newest = await self._off_loop(self._store.newest_number)
            # What has a number is on the disk; once this returns it was taken, too.
            await self._ledger.committed()
            number = newest
        if await self.flush() and number is not None and not self._is_behind:
            await self._try(partial(self._mark, number))

    async def _gather(self) -> None:
        """Write what waits, and what other nodes journaled."""
        await self.flush()
        if self._is_shared:
            self._missed += 1
            await self._catch_up()

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
        else:
            self._missed += 1
        self._has_work.set()

    async def _catch_up(self) -> bool:
        """Write what only the store knows; False = not all of it."""
        async with self._following:
            missed = self._missed
            if self._is_behind and await self._try(self._follow) is not None:
                self._made_good = missed
            return not self._is_behind

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

    def _follow(self) -> int:
        """Write what the store knows of all runs with an event behind the mark; the new mark."""
        marked, since_ms = self._records.mark(), 0
        if marked is None or marked > self._store.newest_number():
            # A log of before there were marks, or of another database.
            marked, since_ms = 0, self._behind_ms()
        while True:
            number, runs = self._store.touched(after=marked, ended_since_ms=since_ms, limit=PAGE)
            if number == marked:
                return self._mark(number)
            self._keep([due for run in runs for due in _records_of(run, after=0)])
            marked = number

    def _mark(self, number: int) -> int:
        if number != self._marked:
            self._records.keep_mark(number)
        self._marked = number
        return number

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

    async def agent_stats(self) -> Mapping[str, Stats]:
        """See ``Part``."""
        return {each.name: each for each in await self.stats() if each.name is not None}

    async def stats(
        self, wanted: Wanted | None = None, *, days: int = RETENTION_DAYS
    ) -> tuple[Stats, ...]:
        """What ended attempts came to, by name.

        Args:
            wanted: Which, and what of them is counted together; None = all, by agent.
            days: UTC days up to and with today, 1 to ``RETENTION_DAYS``.

        Raises:
            Unavailable: The log cannot be read.
        """
        first = self._today - days + 1
        sums = await self._counted(lambda: self._sums(wanted or Wanted(), first))
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
            self._read_on(sizes, chosen)
            return total([self._read[day].sums for day in reversed(chosen)], wanted)

    async def series(
        self,
        by: SeriesBy,
        bucket: Bucket,
        *,
        days: int,
        agent: str | None = None,
        model: str | None = None,
        tag: str | None = None,
    ) -> Sequence[tuple[int, Groups]]:
        """What ended attempts came to over time; see ``series.series``.

        Args:
            by: What is added up together.
            bucket: For each hour or each day.
            days: UTC days up to and with today, 1 to ``RETENTION_DAYS``.
            agent: Only attempts of this agent.
            model: Only attempts with this model.
            tag: Only attempts of runs with this tag.

        Raises:
            Unavailable: The log cannot be read.
        """
        now_ms, first = self._clock.now_ms(), self._today - days + 1

        def added_up() -> Sequence[tuple[int, Groups]]:
            sizes = self._records.sizes()
            chosen = sorted(day for day in sizes if day >= first)
            if tag is None:
                with self._reading:
                    self._read_on(sizes, chosen)
                    cells = [each for day in chosen for each in self._read[day].cells.items()]
            else:
                # Read anew, as for sums by tag.
                found: Cells = {}
                for _, records in (page for day in chosen for page in self._pages(day, 0)):
                    put(found, [each for each in records if tag in each.tags])
                cells = [*found.items()]
            return series(
                cells,
                by=by,
                bucket=bucket,
                since_ms=first * DAY_MS,
                until_ms=now_ms,
                agent=agent,
                model=model,
            )

        return await self._counted(added_up)

    async def _counted(self, work: Callable[[], T]) -> T:
        """What is counted off the loop, in a log that has what ended until now.

        Raises:
            Unavailable: The log cannot be read.
        """
        await self._gather()
        try:
            return await self._off_loop(work)
        except OSError as error:
            raise Unavailable(
                f"the performance records cannot be read: {error.strerror or error}",
                hint=f"see agent-performance-*.jsonl in {self._engine.adapters.state_dir}",
            ) from error

    def _read_on(self, sizes: Mapping[int, int], chosen: Sequence[int]) -> None:
        """Read what was written into the files of these days since they were read."""
        self._read = {day: read for day, read in self._read.items() if day in sizes}
        for day in chosen:
            read = self._read.get(day)
            if read is None or read.offset > sizes[day]:
                read = self._read[day] = _Read()
            if read.offset < sizes[day]:
                for end, records in self._pages(day, read.offset):
                    count(read.sums, records)
                    put(read.cells, records)
                    read.offset = end

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
