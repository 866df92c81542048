"""What stores of rows have in common: how their rows are read, and what a start makes of them.

A dialect brings its statements by name, and says how one is asked; a statement has the same name,
parameters and columns in each of them. Rows are those of ``rows``, open runs those of
``open_runs``.
"""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

import msgspec

from subagents.domain.run.outcome import Status
from subagents.domain.run.run import Run
from subagents.domain.run.values import MessageId, RunId, SessionKey
from subagents.domain.schedules.schedule import Schedule
from subagents.errors import CorruptState
from subagents.ports import (
    Below,
    FeedEntry,
    InboxRow,
    JournalEntry,
    Lease,
    OutboxEntry,
    RememberedKey,
    RunFilter,
    SetAside,
)
from subagents.store import rows
from subagents.store.open_runs import OpenRuns, folded
from subagents.version import __version__

log = logging.getLogger(__name__)

T = TypeVar("T")
Parameters: TypeAlias = Sequence[object] | Mapping[str, object]


Kinds: TypeAlias = tuple[str, rows.Kind[object]]
"""The statement that gives all rows of a kind, and how they are read."""

CHECK_BYTES_MAX: Final = 64 * 1024 * 1024
"""The largest database that is checked at every start; a larger one is checked by ``check``."""
WORK: Final[tuple[Kinds, ...]] = (("all_leases", rows.LEASE),)
"""What cannot be set aside alone."""
RECORDS: Final[tuple[Kinds, ...]] = (
    ("all_runs", rows.RUN),
    ("all_messages", rows.MESSAGE),
    ("all_schedules", rows.SCHEDULE),
)
EVENTS: Final[Kinds] = ("all_events", rows.EVENT)
STRAYS: Final = "its events are filed under another run"


class RowStore(ABC):
    """The reading half of a ``ports.Store``."""

    _feed_kind: rows.Kind[FeedEntry] = rows.EVENT
    """How the rows of the feed are read."""
    _upto: Sequence[object] = ()
    """Further parameters of what reads the feed: how far it can be read."""

    def __init__(self, sql: Mapping[str, str]) -> None:
        self._sql = sql
        self._open = OpenRuns()
        self._writing = threading.Lock()
        self._commits = 0
        self._left_by: str | None = None
        """The version that wrote last."""

    @property
    @abstractmethod
    def _may_write(self) -> bool:
        """Whether this store was opened for writing."""

    @abstractmethod
    def _fetched(self, statement: str, parameters: Parameters) -> list[rows.Row]:
        """All rows of a statement, of what is committed.

        Raises:
            StoreUnavailable: They cannot be read now.
            CorruptState: They never can.
        """

    @abstractmethod
    def _narrowed(self, name: str, where: RunFilter, far: int) -> tuple[str, Mapping[str, object]]:
        """The statement about the runs that are asked for, ``far`` of the newest at most."""

    @property
    def _ours(self) -> Sequence[object]:
        """Further parameters of statements about our own runs alone."""
        return ()

    @abstractmethod
    def _put_aside(self, found: Iterable[SetAside]) -> bool:
        """Leave these out from now on; False = they were before, or that cannot be written."""

    @abstractmethod
    def checkpoint(self) -> None:
        """See ``ports.Store.checkpoint``."""

    def _all(self, name: str, parameters: Parameters = ()) -> list[rows.Row]:
        return self._fetched(self._sql[name], parameters)

    def set_aside(self) -> Sequence[SetAside]:
        """See ``ports.Store.set_aside``."""
        return [
            SetAside(name=shown(name), run_id=RunId(shown(run_id)), reason=str(reason))
            for name, run_id, reason in self._all("select_set_aside")
        ]

    def _read(self, name: str, kind: rows.Kind[T], parameters: Parameters = ()) -> list[T]:
        return self._rows(self._sql[name], kind, parameters)

    def _rows(
        self,
        statement: str,
        kind: rows.Kind[T],
        parameters: Parameters,
        reading: Callable[[Sequence[rows.Row]], Callable[[rows.Row], T]] | None = None,
    ) -> list[T]:
        """What the rows say; the damaged ones are set aside and left out.

        Args:
            statement: Gives the rows.
            kind: How they are read.
            parameters: The statement's.
            reading: Looks at all rows before the first is read; None = that is not needed.
        """
        while True:
            found: list[T] = []
            bad: list[SetAside] = []
            fetched = self._fetched(statement, parameters)
            read = kind.read if reading is None else reading(fetched)
            for row in fetched:
                try:
                    found.append(read(row))
                except rows.DAMAGE as error:
                    bad += aside(kind, row, error)
            # Once set aside they are left out by the statement, whose limit counts only others.
            if not bad or not self._put_aside(bad):
                return found

    def _runs(self, statement: str, parameters: Parameters = ()) -> list[Run]:
        """The runs of these rows as they are now: the row of an open one is a checkpoint."""
        return self._rows(statement, rows.RUN, parameters, self._as_now)

    def _as_now(self, fetched: Sequence[rows.Row]) -> Callable[[rows.Row], Run]:
        opened = [row for row in fetched if rows.is_open(row)]
        # Looked up once: what is in memory may be forgotten while the rows are read.
        known = {row[1]: self._open.get(RunId(str(row[1]))) for row in opened}
        tails = self.tails({str(row[1]): row[2] for row in opened if known[row[1]] is None})

        def read(row: rows.Row) -> Run:
            run = known.get(row[1])
            if run is not None:
                return run
            checkpoint = rows.CHECKPOINT.read(row)
            return self._folded(checkpoint, tails.get(str(row[1]), ())).run

        return read

    def tails(self, heads: Mapping[str, object]) -> Mapping[str, Sequence[rows.Row]]:
        """The journals of runs behind the ``seq`` that is given of each."""
        return {
            run_id: self._all("select_journal", (run_id, seq, -1)) for run_id, seq in heads.items()
        }

    def _folded(self, checkpoint: rows.Checkpoint, tail: Sequence[rows.Row]) -> rows.Checkpoint:
        return folded(checkpoint, (rows.EVENT.read(row).entry for row in tail))

    def load_open(self) -> Sequence[Run]:
        """See ``ports.Store.load_open``."""
        if self._open.is_complete:
            return self._runs(self._sql["load_open"], self._ours)
        return [now.run for now in self._load()[0]]

    def _load(self) -> tuple[Sequence[rows.Checkpoint], Sequence[rows.Checkpoint]]:
        """The open runs with their children, and others that have something to do, as they are now.

        Where this store may write, they are in memory from now on.
        """
        while True:
            commits = self._commits
            ours = self._ours
            found, bad = self._fold_open(ours)
            others = self._read("load_pending", rows.CHECKPOINT, ours)
            self._put_aside(bad)
            with self._writing:
                # A commit came in between: rows and journals were read at different moments.
                if commits != self._commits:
                    continue
                if self._may_write:
                    self._open.load((*found, *((each, each.run.seq) for each in others)))
            if self._left_by not in {None, __version__}:
                # What this version makes of another one's events is decided once: a later version
                # may fold them to something else.
                self.checkpoint()
            return [now for now, _ in found], others

    def _fold_open(
        self, ours: Sequence[object]
    ) -> tuple[list[tuple[rows.Checkpoint, int]], list[SetAside]]:
        """The open runs as they are now, with the ``seq`` of their rows; and the damaged ones."""
        checkpoints = self._read("load_open", rows.CHECKPOINT, ours)
        behind = {run_id for (run_id,) in self._all("select_behind", ours)}
        tails = self.tails({e.run.id: e.run.seq for e in checkpoints if e.run.id in behind})
        found, bad = [], []
        for kept in checkpoints:
            run = kept.run
            try:
                tail = tails.get(run.id)
                found.append((kept if tail is None else self._folded(kept, tail), run.seq))
            except rows.DAMAGE as error:
                bad.append(SetAside(name=run.id, run_id=run.id, reason=str(error)))
        return found, bad

    def load_outbox(self) -> Sequence[OutboxEntry]:
        """See ``ports.Store.load_outbox``."""
        if self._open.is_complete:
            found = self._open.pending()
        else:
            opened, others = self._load()
            loaded = {now.run.id: now for now in (*opened, *others)}
            found = [each for now in loaded.values() for each in now.pending]
        return in_order(found)

    def load_leases(self) -> Sequence[Lease]:
        """See ``ports.Store.load_leases``."""
        return self._read("load_leases", rows.LEASE, self._ours)

    def load_keys(self, run_ids: Iterable[RunId] | None = None) -> Mapping[RunId, set[str]]:
        """See ``ports.Store.load_keys``; None is one pass."""
        if run_ids is None:
            found = self._read("load_open_keys", rows.APPLIED, self._ours)
        else:
            found = [
                each
                for run_id in run_ids
                for each in self._read("load_keys", rows.APPLIED, (run_id,))
            ]
        return by_run(found)

    def load_idempotency(self, since_ms: int) -> Sequence[RememberedKey]:
        """See ``ports.Store.load_idempotency``."""
        found: dict[tuple[str, str], RememberedKey] = {}
        is_whole = True
        for row in self._all("load_idempotency", (since_ms,)):
            try:
                each = rows.remembered_from(row)
            except rows.DAMAGE as error:
                log.error("an idempotency key is damaged: %s", error)  # noqa: TRY400
                is_whole = False
            else:
                found[each.requester, each.key] = each
        if not is_whole:
            # Its run still says which key made it.
            for run in self._runs(self._sql["select_spawned_since"], (since_ms,)):
                if run.spec.idempotency_key is not None:
                    key, at_ms = run.spec.idempotency_key, run.times.created_at_ms
                    made = RememberedKey(run.requester, key, run.id, at_ms, digest=None)
                    found.setdefault((run.requester, key), made)
        return [*found.values()]

    def load_schedules(self) -> Sequence[Schedule]:
        """See ``ports.Store.load_schedules``."""
        found = self._read("load_schedules", rows.SCHEDULE)
        return sorted(found, key=lambda each: (each.created_at_ms, each.id))

    def run(self, run_id: RunId) -> Run | None:
        """See ``ports.Store.run``."""
        for run in self._runs(self._sql["select_run"], (run_id,)):
            return run
        for (reason,) in self._all("select_reason", (run_id,)):
            raise CorruptState(
                f"run {run_id} is set aside: {reason}",
                hint="nothing of it was changed; the others go on. See: subagents db check",
                details={"runId": run_id},
            )
        return None

    def runs(self, where: RunFilter) -> Sequence[Run]:
        """See ``ports.Store.runs``."""
        statement, parameters = self._narrowed("select_runs", where, where.limit + where.offset)
        window = {"limit": where.limit, "offset": where.offset}
        return self._runs(statement, {**parameters, **window})

    def count(self, where: RunFilter, *, most: int) -> int:
        """See ``ports.Store.count``."""
        statement, parameters = self._narrowed("count_runs", where, most)
        return _number(self._fetched(statement, parameters))

    def _open_runs(self) -> Sequence[Run]:
        return self._open.all() if self._open.is_complete else self.load_open()

    def these(self, run_ids: Sequence[RunId]) -> Sequence[Run]:
        """See ``ports.Store.these``."""
        return self._runs(self._sql["select_these"], (json_list(run_ids), 0)) if run_ids else ()

    def below(
        self, run_ids: Sequence[RunId], *, most: int, plans: Sequence[RunId] = ()
    ) -> Sequence[Below]:
        """See ``ports.Store.below``."""
        asked = {"roots": json_list(run_ids), "plans": json_list(plans), "far": len(run_ids) + most}
        found = self._all("count_below", asked) if run_ids else ()
        return [
            Below(
                root=RunId(str(root)),
                outcome=None if ended is None else Status(str(ended)),
                number=int(str(number)),
                open=() if ids is None else tuple(msgspec.json.decode(str(ids), type=list[RunId])),
            )
            for root, _, ended, number, ids in found
        ]

    def find(self, prefix: str) -> Sequence[RunId]:
        """See ``ports.Store.find``."""
        # Up to the last character there is: so the index finds all that begin with it.
        found = self._all("find_runs", (prefix, f"{prefix}\U0010ffff"))
        return [RunId(str(run_id)) for (run_id,) in found]

    def journal(
        self, run_id: RunId, *, after_seq: int = 0, limit: int = 500
    ) -> Sequence[JournalEntry]:
        """See ``ports.Store.journal``."""
        found = self._read("select_journal", rows.EVENT, (run_id, after_seq, limit))
        return [each.entry for each in found]

    def feed(self, *, after: int, limit: int = 500) -> Sequence[FeedEntry]:
        """See ``ports.Store.feed``."""
        return self._read("select_feed", self._feed_kind, (after, limit, *self._upto))

    def alerted(self, *, before: int, limit: int, of: RunId | None = None) -> Sequence[FeedEntry]:
        """See ``ports.Store.alerted``."""
        name, given = ("select_alerted", ()) if of is None else ("select_alerted_of_run", (of,))
        return self._read(name, self._feed_kind, (before, limit, *given))

    def touched(self, *, after: int, ended_since_ms: int, limit: int) -> tuple[int, Sequence[Run]]:
        """See ``ports.Store.touched``."""
        events = self._all("select_touched", (after, limit, *self._upto))
        if not events:
            return after, ()
        run_ids = dict.fromkeys(shown(run_id) for _, run_id in events)
        wanted = (json_list(run_ids), ended_since_ms)
        return int(str(events[-1][0])), self._runs(self._sql["select_these"], wanted)

    def newest_number(self) -> int:
        """See ``ports.Store.newest_number``."""
        return _number(self._all("newest_number"))

    def inbox(
        self, session: SessionKey | None, *, unconsumed: bool, limit: int = 1000
    ) -> Sequence[InboxRow]:
        """See ``ports.Store.inbox``; consumed ones too: newest ``limit``, oldest first."""
        if not unconsumed:
            # The statement has the newest first, so that its limit cuts off the oldest.
            return self._read("select_inbox", rows.MESSAGE, (session, limit))[::-1]
        if session is None:
            return self._read("select_all_unread", rows.MESSAGE, (limit,))
        return self._read("select_unread", rows.MESSAGE, (session, limit))

    def blockers(self, session: SessionKey | None, limit: int) -> Sequence[InboxRow]:
        """See ``ports.Store.blockers``."""
        return self._read("select_blockers", rows.MESSAGE, (session, limit))[::-1]

    def news_of(self, run_ids: Sequence[RunId]) -> Sequence[InboxRow]:
        """See ``ports.Store.news_of``."""
        return self._read("select_news", rows.MESSAGE, (json_list(run_ids),)) if run_ids else ()

    def unread(self, session: SessionKey, limit: int) -> Sequence[MessageId]:
        """See ``ports.Store.unread``."""
        found = self._all("select_unread_ids", (session, limit))
        return [MessageId(str(message_id)) for (message_id,) in found]

    def unread_total(self) -> int:
        """See ``ports.Store.unread_total``."""
        return _number(self._all("count_unread"))

    def message(self, message_id: str) -> InboxRow | None:
        """See ``ports.Store.message``."""
        return next(iter(self._read("select_message", rows.MESSAGE, (message_id,))), None)

    def archivable(self, ended_before_ms: int, limit: int) -> Sequence[RunId]:
        """See ``ports.Store.archivable``."""
        found = self._all("select_archivable", (ended_before_ms, limit, *self._ours))
        return [RunId(str(run_id)) for (run_id,) in found]

    def prunable(self, ended_before_ms: int, limit: int) -> Sequence[RunId]:
        """See ``ports.Store.prunable``."""
        found = self._all("select_prunable", (ended_before_ms, limit, *self._ours))
        return [RunId(str(run_id)) for (run_id,) in found]


def by_run(applied: Iterable[tuple[RunId, str]]) -> dict[RunId, set[str]]:
    keys: dict[RunId, set[str]] = {}
    for run_id, key in applied:
        keys.setdefault(run_id, set()).add(key)
    return keys


def in_order(pending: Iterable[OutboxEntry]) -> list[OutboxEntry]:
    return sorted(pending, key=lambda each: (each.run_id, each.seq, each.index))


def json_list(run_ids: Iterable[str]) -> str:
    return msgspec.json.encode([*run_ids]).decode()


def raw(text: str) -> bytes:
    """The bytes of a text that was read with surrogates for what is no text."""
    return text.encode("utf-8", "surrogateescape")


def shown(value: object) -> str:
    return raw(str(value)).decode("utf-8", "replace")


def aside(kind: rows.Kind[T], row: rows.Row, error: Exception) -> Iterator[SetAside]:
    for name in kind.names(row):
        yield SetAside(name=name, run_id=RunId(str(kind.run_id(row))), reason=str(error))


def _number(found: Sequence[rows.Row]) -> int:
    return int(str(found[0][0]))
