"""A new database with what can be read of a damaged one; see docs/decisions/0041.

Rows are taken from wherever they lie (``pages``). A run whose row is not what was written is folded
from its journal, and an open one from its checkpoint on. Where something may be missing that was
committed, it is not taken further than its record: what becomes of it is said in a ``Salvaged``,
and decided by the reducer.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.outcome import Reason
from subagents.domain.run.run import OVER, Run
from subagents.domain.run.values import RunId, SessionKey, announcement_id
from subagents.domain.text import announcement
from subagents.errors import IllegalTransition
from subagents.extensions.repair.pages import Pages, Row, Stored
from subagents.ports import InboxRow, JournalEntry, OutboxEntry, RememberedKey
from subagents.store import rows
from subagents.store.named_statements import named_statements
from subagents.store.open_runs import asked_for
from subagents.store.rows import Checkpoint
from subagents.store.sqlite.identity import read_only
from subagents.store.sqlite.migrate import migrate, migrations
from subagents.store.sqlite.migrated_state import in_values
from subagents.store.sqlite.statements import statements
from subagents.text import counted

TABLES: Final = ("node", "run", "journal", "inbox", "outbox", "lease", "idempotency", "schedule")
STATES_SINCE: Final = 3
"""The schema in which a run's state got its present form."""
CHECKPOINTS_SINCE: Final = 10
"""The schema since which the row of an open run need not be its newest state."""
EFFECTS_SINCE: Final = 11
"""The schema since which what a run has to do is in its row; before, it had a table."""
_KINDS: Final = {int: "INTEGER", str: "TEXT", bytes: "BLOB"}


class Salvaged(NamedTuple):
    """A run whose record is not what was committed."""

    run_id: RunId
    found: str
    """What was damaged, and what its record is made from."""
    is_known: bool = False
    """It has a record in the new database."""
    is_lost: bool = False
    """Its end, if it had one, is not in that record."""
    is_told: bool = False
    """Its requester may have been told of its end."""
    told: str | None = None
    """What its requester was told, or would have been."""
    requester: SessionKey | None = None


@cache
def own_statements() -> Mapping[str, str]:
    """What a repair asks besides what the store does, by name."""
    return named_statements(__package__)


def salvage(
    damaged: Path, new: Path, strays: Iterable[RunId], *, is_cut: bool = False
) -> list[Salvaged]:
    """Fill a new database.

    Args:
        damaged: Missing or empty, too; it is not changed.
        new: A file that is not there yet, in a directory of its own.
        strays: Runs of which files were found.
        is_cut: What was committed last is missing from the log.

    Returns:
        Runs that need a word; all others are as they were.

    Raises:
        OSError: The disk is full, or a file cannot be read.
        sqlite3.Error: The new file cannot be written.
    """
    pages = Pages(damaged)
    newest = migrations()[-1][0]
    version = pages.version if pages.version in range(1, newest + 1) else newest
    with closing(sqlite3.connect(new, isolation_level=None)) as connection:
        new.chmod(0o600)
        migrate(connection, new, to=version)
        _fill(connection, pages.rows(), version or newest)
        migrate(connection, new)
        connection.execute("BEGIN")
        old = version or newest
        whole = {name for name in TABLES if _is_whole(damaged, name)}
        if old >= EFFECTS_SINCE:
            whole.add("outbox")
        ends = _ends(damaged) if old >= CHECKPOINTS_SINCE else None
        found = _Salvage(connection, whole, ends, is_cut=is_cut).all(strays)
        connection.execute("COMMIT")
    return found


# -- rows as they are ---------------------------------------------------------------------------


class _Table(NamedTuple):
    name: str
    kinds: tuple[str, ...]
    """The kinds of its columns, in the order in which they are stored."""
    needed: int
    """A record has at least so many: later columns were added later."""
    nullable: tuple[bool, ...]
    defaults: tuple[Stored, ...]
    has_number: bool
    """Its rows have a rowid."""
    number: int | None
    """Which column that is; it is stored apart."""

    def takes(self, row: Row) -> bool:
        if (row.number is not None) != self.has_number:
            return False
        if not self.needed <= len(row.values) <= len(self.kinds):
            return False
        return all(
            value is None if at == self.number else self._fits(at, value)
            for at, value in enumerate(row.values)
        )

    def _fits(self, at: int, value: Stored) -> bool:
        return self.nullable[at] if value is None else _KINDS.get(type(value)) == self.kinds[at]

    def whole(self, row: Row) -> list[Stored]:
        values = [*row.values, *self.defaults[len(row.values) :]]
        if self.number is not None:
            values[self.number] = row.number
        return values


def _fill(connection: sqlite3.Connection, found: Iterable[Row], version: int) -> None:
    known = {name for (name,) in connection.execute(statements()["select_tables"])}
    tables = [_table(connection, name) for name in TABLES if name in known]
    connection.execute("BEGIN")
    for row in found:
        table = next((each for each in tables if each.takes(row)), None)
        if table is None:
            continue
        values = table.whole(row)
        try:
            if table.name == "run" and version < STATES_SINCE and isinstance(values[-1], bytes):
                in_values(values[-1])
            places = ", ".join("?" * len(values))
            connection.execute(f"REPLACE INTO {table.name} VALUES ({places})", values)  # noqa: S608 - one of TABLES
        except (*rows.DAMAGE, sqlite3.IntegrityError):
            continue  # what it says cannot be so
    connection.execute("COMMIT")


def _table(connection: sqlite3.Connection, name: str) -> _Table:
    columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
    (_, _, _, _, is_free, _), *_ = connection.execute(f"PRAGMA table_list({name})").fetchall()
    keys = [at for at, _, kind, _, _, key in columns if key and kind == "INTEGER"]
    needed = [at for at, _, _, not_null, default, _ in columns if not_null and default is None]
    return _Table(
        name=name,
        kinds=tuple(kind for _, _, kind, _, _, _ in columns),
        needed=max(needed, default=0) + 1,
        nullable=tuple(not not_null for _, _, _, not_null, _, _ in columns),
        defaults=tuple(None if d is None else int(d) for _, _, _, _, d, _ in columns),
        has_number=not is_free,
        number=keys[0] if keys and not is_free else None,
    )


def _is_whole(damaged: Path, table: str) -> bool:
    """Whether SQLite finds every row of the table."""
    try:
        with closing(sqlite3.connect(read_only(damaged), uri=True)) as connection:
            found = connection.execute(f"PRAGMA integrity_check({table})").fetchall()
    except sqlite3.Error:
        return False
    return [problem for (problem,) in found] == ["ok"]


def _ends(damaged: Path) -> dict[int, int]:
    """How far the journal of each run went, as its index says; nothing where that is damaged."""
    try:
        with closing(sqlite3.connect(read_only(damaged), uri=True)) as connection:
            return dict(connection.execute(own_statements()["journal_ends"]))
    except sqlite3.Error:
        return {}


# -- runs -----------------------------------------------------------------------------------------


class _Salvage:
    """What becomes of the rows that are there, in one transaction."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        whole: set[str],
        ends: Mapping[int, int] | None,
        *,
        is_cut: bool,
    ) -> None:
        self._connection = connection
        self._sql = {**statements(), **own_statements()}
        self._whole = whole
        """Tables that have every row, as it was written."""
        self._ends = ends
        """The seq of the newest event by the run's number; None = every row is the newest state."""
        self._is_cut = is_cut
        self._runs: dict[RunId, Run] = {}
        self._pending: dict[RunId, tuple[OutboxEntry, ...]] = {}
        """What the rows of runs say that they have to do."""
        self._events: defaultdict[RunId, list[JournalEntry]] = defaultdict(list)
        self._numbers: dict[tuple[RunId, int], int] = {}
        self._messages: dict[str, InboxRow] = {}

    def all(self, strays: Iterable[RunId]) -> list[Salvaged]:
        damaged = self._read()
        ids = dict.fromkeys((*self._runs, *damaged, *self._events, *strays))
        ids |= dict.fromkeys(each.message.run_id for each in self._messages.values())
        found = [each for run_id in ids for each in self._one(run_id)]
        self._do("refile_events")
        self._do("drop_stray_events")
        self._do("drop_stray_leases")
        self._remember()
        return found

    def _read(self) -> list[RunId]:
        """Drop what is not what was written; returns the ids of such runs."""
        damaged = []
        for row in self._all("all_runs"):
            try:
                run, pending = rows.CHECKPOINT.read(row)
                self._runs[run.id], self._pending[run.id] = run, pending
            except rows.DAMAGE:
                self._do("delete_run", row[1])
                damaged.append(RunId(str(row[1])))
        for row in self._all("all_events"):
            try:
                entry = rows.EVENT.read(row).entry
                self._events[entry.run_id].append(entry)
                self._numbers[entry.run_id, entry.seq] = int(str(row[0]))
            except rows.DAMAGE:
                self._do("drop_event", row[0])
                self._whole.discard("journal")
        for row in self._all("all_leases"):
            self._keep_if_sound(rows.LEASE, row, "release_lease", slice(1))
        for row in self._all("all_schedules"):
            self._keep_if_sound(rows.SCHEDULE, row, "remove_schedule", slice(1))
        for row in self._all("all_messages"):
            message = self._keep_if_sound(rows.MESSAGE, row, "drop_message", slice(1, 2))
            if message is not None:
                self._messages[message.message.id] = message
        return damaged

    def _keep_if_sound(
        self, kind: rows.Kind[rows.T_co], row: rows.Row, drop: str, keys: slice
    ) -> rows.T_co | None:
        try:
            return kind.read(row)
        except rows.DAMAGE:
            self._do(drop, *row[keys])
            return None

    def _one(self, run_id: RunId) -> Iterator[Salvaged]:
        run = self._runs.get(run_id)
        events = sorted(self._events.get(run_id, ()), key=lambda each: each.seq)
        if run is None:
            yield self._folded(run_id, events)
            return
        if self._ends is not None and run.phase not in OVER:
            run, is_sure = self._continued(run, events)
            if not is_sure and not run.is_settled:
                yield self._uncertain(run, f"it is known up to event {run.seq}")
                return
            events = [each for each in events if each.seq <= run.seq]
        missing, is_lost = run.seq - len(events), False
        if "outbox" not in self._whole and run.phase not in OVER:
            is_lost = missing > 0 and not run.is_settled
            folded, _ = _fold(events)
            again = () if folded is None else folded.pending
            known = {each.key: each for each in (*self._pending[run.id], *again)}
            self._write(Checkpoint(run, tuple(known.values())))
        if missing:
            text = f"{counted(missing, 'event')} of its journal could not be read"
            yield Salvaged(run_id, text, is_known=True, is_lost=is_lost or self._is_cut)
        elif self._is_cut and not run.is_settled:
            text = "what was committed last is missing from the log"
            yield Salvaged(run_id, text, is_known=True, is_lost=True)
        if _is_news(run) and announcement_id(run.id) not in self._messages:
            self._tell(run)

    def _continued(self, checkpoint: Run, events: Sequence[JournalEntry]) -> tuple[Run, bool]:
        """The run after what is left of the events since then; whether those are surely all."""
        (number,) = self._connection.execute(self._sql["run_number"], (checkpoint.id,)).fetchone()
        tail = [each for each in events if each.seq > checkpoint.seq]
        kept = Checkpoint(checkpoint, self._pending[checkpoint.id])
        now, used = _fold(tail, kept)
        run, _ = now = now or kept
        self._drop(tail[used:])
        self._write(now)
        is_end = self._ends is not None and self._ends.get(number, 0) == run.seq
        is_whole = used == len(tail) and not self._is_cut
        return run, is_whole and (is_end or "journal" in self._whole)

    def _drop(self, events: Iterable[JournalEntry]) -> None:
        for each in events:
            self._do("drop_event", self._numbers[each.run_id, each.seq])

    def _uncertain(self, run: Run, words: str) -> Salvaged:
        """It may have ended since: nothing of it goes on, and what was said of its end stays."""
        told = self._messages.get(announcement_id(run.id))
        if told is not None:
            self._do("drop_message", told.message.id)
        return Salvaged(
            run.id,
            f"{words}, and what came after may be missing",
            is_known=True,
            is_lost=True,
            is_told=told is not None and told.message.consumed,
            told=None if told is None else told.message.text,
        )

    def _folded(self, run_id: RunId, events: Sequence[JournalEntry]) -> Salvaged:
        told = self._messages.get(announcement_id(run_id))
        now, used = _fold(events)
        self._drop(events[used:])
        if now is None:
            if told is not None:
                self._do("drop_message", told.message.id)
            return Salvaged(
                run_id,
                "nothing of its record can be read",
                is_lost=True,
                is_told=told is None or told.message.consumed,
                told=None if told is None else told.message.text,
                requester=None if told is None else told.message.session_key,
            )
        run = self._runs[run_id] = now.run
        (number,) = self._connection.execute(self._sql["newest_run"]).fetchone()
        self._do("insert_run", *rows.inserted(number + 1, now))
        is_sure = used == len(events) and "journal" in self._whole and not self._is_cut
        words = f"its record was damaged; it is folded from {counted(used, 'event')} of its journal"
        if not is_sure and not run.is_settled:
            return self._uncertain(run, words)
        if told is None and is_sure and _is_news(run):
            self._tell(run)
        is_told = told.message.consumed if told is not None else not is_sure
        return Salvaged(run_id, words, is_known=True, is_told=is_told and run.is_settled)

    def _write(self, now: Checkpoint) -> None:
        self._runs[now.run.id] = now.run
        self._do("archive_run", *rows.archived_run(now))

    def _tell(self, run: Run) -> None:
        message = announcement.announcement(run, consumed=False)
        (number,) = self._connection.execute(self._sql["newest_message"]).fetchone()
        self._do("insert_message", *rows.message_inserted(number + 1, message))

    def _remember(self) -> None:
        """The keys of idempotent spawns: else repeating one would start its work again."""
        known = {tuple(row[:2]) for row in self._all("all_keys")}
        for run in self._runs.values():
            key = run.spec.idempotency_key
            if key is not None and (run.requester, key) not in known:
                at_ms = run.times.created_at_ms
                made = RememberedKey(run.requester, key, run.id, at_ms, digest=None)
                self._do("put_idempotency", *rows.remembered_inserted(made))

    def _all(self, name: str) -> list[rows.Row]:
        return self._connection.execute(self._sql[name]).fetchall()

    def _do(self, name: str, *values: object) -> None:
        self._connection.execute(self._sql[name], values)


def _fold(
    events: Sequence[JournalEntry], kept: Checkpoint | None = None
) -> tuple[Checkpoint | None, int]:
    """The run up to the first gap, and how many events that is.

    Without a row to begin with nobody knows which effects were done that no event answers: it then
    has to do what it had to do in its phase.
    """
    now = kept
    first = 1 if kept is None else kept.run.seq + 1
    for used, entry in enumerate(events):
        if entry.seq != first + used:
            return now, used
        try:
            step = reduce(None if now is None else now.run, entry.event)
        except IllegalTransition:
            return now, used
        is_same = now is not None and (kept is not None or step.run.phase is now.run.phase)
        before = now.pending if now is not None and is_same else ()
        left = (each for each in before if each.key != entry.key)
        now = Checkpoint(step.run, (*left, *asked_for(step)))
    if now is not None and kept is None and now.run.phase in OVER:
        now = Checkpoint(now.run)
    return now, len(events)


def _is_news(run: Run) -> bool:
    """Whether somebody is still to be told of its end."""
    outcome = run.outcome
    if outcome is None or run.announcement_consumed_ms is not None:
        return False
    return outcome.reason is not Reason.PARENT_ENDED and run.lineage.judges is None
