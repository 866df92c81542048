"""Everything that happens to any run, in one order, for those who follow.

The journal is the feed: a follower is a number, and what comes behind it is read from the store.
So nothing is kept for a follower, a slow one reads later, and one that comes back continues
where it was, also after a restart. A commit only wakes; the store is the truth.

See docs/decisions/0021.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, SessionKey, Value
from subagents.domain.transcript.feed_entry import FeedDocument, feed_documents
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.tasks import wait_at_most
from subagents.ports import Batch, EngineClock, FeedEntry, readable

PAGE: Final = 200
"""Entries that are read at once: the largest, a spawn with its task, has 256 KiB."""
PACE_S: Final = 0.02
"""The pause between a commit and the look at it: in a burst one look finds many."""
SHOWN_EVERY_MS: Final = 1_000
"""How often a run is shown that changes all the time."""
DEPTH_MAX: Final = 64
"""More than ``max_spawn_depth`` can be, so the walk up a tree ends."""

Known = dict[RunId, Run]
"""Runs looked up for one page of entries."""


class Scope(Value, frozen=True):
    """Which runs somebody follows; everything that is given must fit."""

    run: RunId | None = None
    tree: RunId | None = None
    """This run and all below it."""
    session: SessionKey | None = None
    """The trees that this session spawned, and its own run when it is a worker's."""
    requester: SessionKey | None = None
    """Runs that this session itself spawned."""
    label: str | None = None


class Happened(Value, frozen=True):
    """An entry with its run as it is now."""

    found: FeedEntry
    run: Run

    def documents(self, names: frozenset[str]) -> tuple[FeedDocument, ...]:
        """See ``domain.transcript.feed_entry``."""
        entry = self.found.entry
        return feed_documents(
            self.run, entry.event, number=self.found.number, seq=entry.seq, names=names
        )


class Page(Value, frozen=True):
    """What came behind a number."""

    number: int
    """The number of the last entry looked at: where the next page begins."""
    happened: tuple[Happened, ...] = ()
    """The entries, but for those of runs that were pruned meanwhile."""
    known: Known = {}
    is_last: bool = True
    """Nothing more was there."""


class Feed:
    """Reads the journal of all runs by number, and wakes those who wait for more of it."""

    def __init__(self, kernel: Kernel) -> None:
        self._ledger, self._store, self._off_loop, self.clock = kernel
        self._waiting: dict[asyncio.Event, None] = {}
        self._reading = asyncio.Lock()
        self._news: tuple[tuple[int, int, int], Page] | None = None
        """The newest page: after which number, as of which, and of which look."""

    @property
    def look_ms(self) -> int | None:
        """So long a follower may wait to be woken before it looks; None = as long as it likes."""
        return self._ledger.partitions.look_ms

    def on_commit(self, batch: Batch) -> None:
        """Wake everybody when there are new events."""
        if batch.journal:
            for each in self._waiting:
                each.set()

    @contextmanager
    def woken(self, event: asyncio.Event) -> Iterator[None]:
        """``event`` is set at every commit, as long as the block lasts."""
        self._waiting[event] = None
        try:
            yield
        finally:
            del self._waiting[event]

    async def until_news(self, woken: asyncio.Event) -> None:
        """Return when ``woken`` is set, or when it is time to look without that."""
        if self.look_ms is None:
            await woken.wait()
        else:
            await wait_at_most(self.clock, self.look_ms / 1000, woken)

    async def newest(self) -> int:
        """The number of the newest event.

        Raises:
            StoreUnavailable: It cannot be read now.
        """
        return await self._off_loop(self._store.newest_number)

    async def begin(self, after: int | None) -> tuple[int, bool]:
        """Where a follower really begins that has seen everything up to ``after``.

        Args:
            after: A number that it was told before; None = only what is new.

        Returns:
            The number, and whether the one given lies in the future: then it is of another
            database (a restored backup), and following continues from the newest.
        """
        newest = await self.newest()
        if after is None:
            return newest, False
        return (newest, True) if after > newest else (after, False)

    async def page(self, after: int) -> Page:
        """What happened behind ``after``, at most ``PAGE`` entries.

        Raises:
            StoreUnavailable: It cannot be read now.
        """
        # Only we write, and what is in the store but not published yet wakes all when it is.
        if self.look_ms is None and after >= self._ledger.number:
            return Page(number=after)
        found = await self._off_loop(lambda: self._store.feed(after=after, limit=PAGE))
        known: Known = {}
        happened = []
        for each in found:
            run = await self.run(each.entry.run_id, known, seq_min=each.entry.seq)
            if run is not None:
                happened.append(Happened(found=each, run=run))
        number = found[-1].number if found else after
        is_last = len(found) < PAGE
        return Page(number=number, happened=tuple(happened), known=known, is_last=is_last)

    async def news(self, after: int) -> Page:
        """The same for followers that a commit woke, or that look again: most ask for one page.

        It is read once.

        Raises:
            StoreUnavailable: It cannot be read now.
        """
        async with self._reading:
            look = 0 if self.look_ms is None else self.clock.steady_ms() // self.look_ms
            asked = after, self._ledger.number, look
            if self._news is None or self._news[0] != asked:
                self._news = asked, await self.page(after)
            return self._news[1]

    async def run(self, run_id: RunId, known: Known, *, seq_min: int = 0) -> Run | None:
        """The run, not older than its event ``seq_min``; None = it was pruned, or is set aside."""
        run = known.get(run_id) or self._ledger.published.get(run_id)
        if run is None or run.seq < seq_min:
            # A commit is in the store before it is published here.
            run = await self._off_loop(lambda: readable(self._store, run_id))
        if run is not None:
            known[run_id] = run
        return run

    async def fits(self, run: Run, scope: Scope, known: Known) -> bool:
        """Whether a follower of ``scope`` hears of this run.

        Args:
            run: Which.
            scope: Of the follower.
            known: Of the page that the run came with; ancestors are added.
        """
        is_one = (
            scope.run in (None, run.id)
            and scope.label in (None, run.resolved.label)
            and scope.requester in (None, run.requester)
        )
        if not is_one:
            return False
        is_below, is_theirs = scope.tree is None, scope.session is None
        current = run
        for _ in range(DEPTH_MAX):
            is_below = is_below or current.id == scope.tree
            is_theirs = is_theirs or scope.session in {current.requester, *current.session_keys}
            if is_below and is_theirs:
                return True
            if current.lineage.requester_run is None:
                return False
            above = await self.run(current.lineage.requester_run, known)
            if above is None:
                return False
            current = above
        return False


class ChangedRuns:
    """Which runs have changed since they were shown, each shown at most once a second.

    Args:
        clock: By which the seconds go.
    """

    def __init__(self, clock: EngineClock) -> None:
        self._clock = clock
        self._changed: dict[RunId, tuple[int, int]] = {}
        """Not shown yet: the number of the first event since, and the newest one's in its run."""
        self._shown_ms: dict[RunId, int] = {}
        """When those of the last second were shown."""

    def add(self, found: FeedEntry) -> None:
        """The run of this entry has changed by it."""
        run_id, seq = found.entry.run_id, found.entry.seq
        number, _ = self._changed.get(run_id, (found.number, 0))
        self._changed[run_id] = number, seq

    def take(self) -> Mapping[RunId, int]:
        """Those that are due now, and the number of the newest event of each in its run."""
        now = self._clock.steady_ms()
        self._shown_ms = {
            run_id: at for run_id, at in self._shown_ms.items() if now - at < SHOWN_EVERY_MS
        }
        due = {
            run_id: seq
            for run_id, (_, seq) in self._changed.items()
            if run_id not in self._shown_ms
        }
        for run_id in due:
            del self._changed[run_id]
            self._shown_ms[run_id] = now
        return due

    def wait_ms(self) -> int | None:
        """How long until one is due; None = none has changed."""
        now = self._clock.steady_ms()
        ready = (
            self._shown_ms.get(run_id, now - SHOWN_EVERY_MS) + SHOWN_EVERY_MS
            for run_id in self._changed
        )
        first = min(ready, default=None)
        return None if first is None else max(first - now, 1)

    def before(self, number: int) -> int:
        """The last event up to ``number`` before which every change was shown."""
        return min([number, *(first - 1 for first, _ in self._changed.values())])


RowsOf = Callable[[Sequence[Run]], Sequence[FeedDocument]]


class Follower:
    """One reader with one scope; it continues behind ``number``.

    Args:
        feed: What is followed.
        after: Everything up to this number is known already.
        scope: Which runs.
        names: Which documents, of ``domain.feed.NAMES``.
        rows_of: Makes a document of each run that has changed; None = only events are followed.
    """

    def __init__(
        self,
        feed: Feed,
        *,
        after: int,
        scope: Scope,
        names: frozenset[str],
        rows_of: RowsOf | None = None,
    ) -> None:
        self._feed = feed
        self._scope = scope
        self._names = names
        self._rows_of = rows_of
        self._changed = ChangedRuns(feed.clock)
        # The first look is this follower's alone, which may be far behind. Later ones follow a
        # commit that woke all, and share one read.
        self._read = feed.page
        self.number = after

    @property
    def resume_at(self) -> int:
        """Where a reader continues that has everything that was returned, and misses nothing.

        Less than ``number`` while a run that has changed was not shown since: then some events
        come again.
        """
        return self._changed.before(self.number)

    async def more(self, wait_s: float) -> Sequence[FeedDocument]:
        """What came, in order; empty when nothing did within ``wait_s`` seconds.

        Safe to cancel: what was not returned comes again.

        Raises:
            StoreUnavailable: It cannot be read now.
        """
        clock = self._feed.clock
        due_ms = clock.steady_ms() + int(wait_s * 1000)
        woken = asyncio.Event()
        with self._feed.woken(woken):
            while True:
                woken.clear()
                page = await self._read(self.number)
                found = await self._wanted(page)
                self.number = page.number
                rows = await self._rows(page.known)
                left_ms = due_ms - clock.steady_ms()
                if found or rows or left_ms <= 0:
                    return [*found, *rows]
                if page.is_last:
                    look_ms = self._feed.look_ms or left_ms
                    wait_ms = min(left_ms, look_ms, self._changed.wait_ms() or left_ms)
                    await wait_at_most(clock, wait_ms / 1000, woken)
                    if woken.is_set():
                        await clock.sleep(PACE_S)
                    if woken.is_set() or self._feed.look_ms is not None:
                        self._read = self._feed.news

    async def _wanted(self, page: Page) -> list[FeedDocument]:
        found: list[FeedDocument] = []
        for each in page.happened:
            documents = each.documents(self._names)
            is_wanted = bool(documents) or self._rows_of is not None
            if is_wanted and await self._feed.fits(each.run, self._scope, page.known):
                found += documents
                if self._rows_of is not None:
                    self._changed.add(each.found)
        return found

    async def _rows(self, known: Known) -> Sequence[FeedDocument]:
        if self._rows_of is None:
            return ()
        found = [
            await self._feed.run(run_id, known, seq_min=seq)
            for run_id, seq in self._changed.take().items()
        ]
        runs = [run for run in found if run is not None]
        return self._rows_of(runs) if runs else ()
