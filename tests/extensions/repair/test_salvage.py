"""Of a damaged database everything is kept that can be read, and nothing is made up beside it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from tests import old_state
from tests.store.row_place import changed, granted, opened
from tests.store.sqlite.sqlite_place import SqlitePlace

from subagents.config.paths import Paths
from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.effects import CleanUp
from subagents.domain.run.events import Repaired
from subagents.domain.run.outcome import Reason, Status
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, announcement_id
from subagents.extensions.repair.pages import PAGE_BYTES
from subagents.extensions.repair.repairs import Repair, rebuild_database
from subagents.extensions.repair.salvage import salvage
from subagents.extensions.testing.stored_values import a_run, a_schedule, over, spawned
from subagents.ports import Batch, OutboxEntry, RunFilter
from subagents.store.sqlite.sqlite_store import SqliteStore

EVERY = RunFilter(limit=1_000, archived=True)


@dataclass(frozen=True)
class Told:
    """What a database says."""

    runs: dict[RunId, Run]
    unread: set[str]
    read: set[str]
    work: dict[RunId, list[str]]

    @property
    def open(self) -> set[RunId]:
        return {run.id for run in self.runs.values() if not run.is_settled}


def told(path: Path) -> Told:
    with closing(SqliteStore(path, synchronous="OFF")) as store:
        store.open("test")
        assert store.check() == []
        assert store.set_aside() == []
        runs = {run.id: run for run in store.runs(EVERY)}
        work: dict[RunId, list[str]] = {}
        for entry in store.load_outbox():
            work.setdefault(entry.run_id, []).append(entry.key)
        rows = store.inbox(None, unconsumed=False, limit=10_000)
        unread = {row.message.id for row in rows if row.consumed_at_ms is None}
        read = {row.message.id for row in rows} - unread
        for run in runs.values():
            if not any(_is_gap(each.event) for each in store.journal(run.id, limit=10_000)):
                assert _folded(store, run.id) == run
        return Told(runs, set(unread), set(read), work)


def _is_gap(event: object) -> bool:
    return isinstance(event, Repaired) and "of its journal could not be read" in event.found


def _folded(store: SqliteStore, run_id: RunId) -> Run | None:
    run: Run | None = None
    for entry in store.journal(run_id, limit=10_000):
        run = reduce(run, entry.event).run
    return run


@cache
def left_by_0_1_0(directory: Path) -> tuple[Path, Told]:
    """A database of 61 runs in every phase, and one as this version has it; and what it says."""
    original, migrated = directory / "original.db", directory / "migrated.db"
    for path in (original, migrated):
        old_state.restore(path)
    return original, told(migrated)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Told]:
    return left_by_0_1_0(tmp_path_factory.mktemp("before"))


def home(directory: Path, database: bytes, runs: Iterator[RunId]) -> Paths:
    """A home with a database, and directories of its runs."""
    paths = Paths.resolve({"SUBAGENTS_HOME": str(directory)})
    paths.ensure()
    paths.database.write_bytes(database)
    for run_id in runs:
        (paths.attempts_dir / run_id / "1").mkdir(parents=True)
    return paths


def repaired(paths: Paths) -> tuple[Told, dict[RunId, Repair]]:
    new = paths.state_dir / "new" / paths.database.name
    new.parent.mkdir()
    repairs = rebuild_database(paths, new)
    return told(new), {each.run_id: each for each in repairs}


def executed(database: bytes, directory: Path, *statements: str) -> bytes:
    path = directory / "changed.db"
    path.write_bytes(database)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path.read_bytes()


FOLLOWS = {Reason.RECORD_LOST, Reason.DEPENDENCY_FAILED, Reason.CANCELLED_BY_CALLER}


def holds(before: Told, after: Told, repairs: dict[RunId, Repair]) -> None:
    """What must be so whatever was damaged."""
    assert after.runs.keys() == before.runs.keys()
    assert after.open <= before.open
    lost = {run_id for run_id, each in repairs.items() if each.is_lost}
    for run_id, run in after.runs.items():
        was, each = before.runs[run_id], repairs.get(run_id)
        if was.outcome is not None and run.outcome != was.outcome:
            assert run.outcome is not None
            assert (run.outcome.status, run.outcome.reason) == (Status.LOST, Reason.RECORD_LOST)
            assert each is not None
            assert each.is_lost
        elif was.outcome is not None:
            assert run.result == was.result
        elif run.outcome is not None:
            assert run.outcome.reason in FOLLOWS
            assert lost
        elif not kin(was) & lost:
            assert (run.phase, run.attempts) == (was.phase, was.attempts)
            assert set(after.work.get(run_id, ())) >= set(before.work.get(run_id, ()))
            assert each is not None or run == was
    ends = {str(announcement_id(run_id)) for run_id in before.open}
    told_now = after.unread & {str(announcement_id(run_id)) for run_id in after.runs}
    assert told_now <= before.unread | ends
    assert not after.unread & before.read


def kin(run: Run) -> set[RunId | None]:
    """The runs whose end changes something of this one."""
    near = {each.run_id for each in (*run.children, *run.waiting.dependencies)}
    return {*near, run.lineage.requester_run}


@pytest.mark.requirement("store:salvage")
def test_of_a_sound_database_everything_is_as_it_was(
    tmp_path: Path, before: tuple[Path, Told]
) -> None:
    original, was = before
    paths = home(tmp_path, original.read_bytes(), iter(was.runs))

    after, repairs = repaired(paths)

    assert repairs == {}
    assert after == was


def ruined(page: int, database: bytes) -> bytes:
    at = (page - 1) * PAGE_BYTES
    return database[:at] + b"\xff" * PAGE_BYTES + database[at + PAGE_BYTES :]


@pytest.mark.requirement("store:salvage", "store:salvage:page")
@pytest.mark.parametrize("share", range(12))
def test_any_page_may_be_ruined(tmp_path: Path, before: tuple[Path, Told], share: int) -> None:
    original, was = before
    database = original.read_bytes()
    pages = len(database) // PAGE_BYTES
    paths = home(tmp_path, ruined(1 + share * (pages - 1) // 11, database), iter(was.runs))

    holds(was, *repaired(paths))


@pytest.mark.requirement("store:salvage", "store:salvage:truncated")
@pytest.mark.parametrize("percent", [0, 1, 30, 70, 95])
def test_the_file_may_be_cut_anywhere(
    tmp_path: Path, before: tuple[Path, Told], percent: int
) -> None:
    original, was = before
    database = original.read_bytes()
    paths = home(tmp_path, database[: len(database) * percent // 100], iter(was.runs))

    after, repairs = repaired(paths)

    holds(was, after, repairs)
    assert repairs


@pytest.mark.requirement("store:salvage", "store:salvage:row")
def test_a_run_whose_row_is_damaged_is_folded_and_goes_on(
    tmp_path: Path, before: tuple[Path, Told]
) -> None:
    original, was = before
    change = "UPDATE run SET state = x'00ff'"
    paths = home(tmp_path, executed(original.read_bytes(), tmp_path, change), iter(was.runs))

    after, repairs = repaired(paths)

    holds(was, after, repairs)
    assert repairs.keys() == was.runs.keys()
    assert after.open == was.open
    assert not any(each.is_lost for each in repairs.values())
    assert (after.unread, after.read) == (was.unread, was.read)
    # What was done without an event to say so is done again.
    assert all(set(after.work[run_id]) >= set(keys) for run_id, keys in was.work.items())


@pytest.mark.requirement("store:salvage", "store:salvage:work")
def test_what_was_to_be_done_is_known_without_the_outbox(
    tmp_path: Path, before: tuple[Path, Told]
) -> None:
    original, was = before
    database = original.read_bytes()
    with closing(sqlite3.connect(original)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'outbox'"
        ).fetchone()
    paths = home(tmp_path, ruined(page, database), iter(was.runs))

    after, repairs = repaired(paths)

    holds(was, after, repairs)
    assert repairs == {}
    assert was.work
    assert all(set(after.work[run_id]) >= set(keys) for run_id, keys in was.work.items())


ROW = "UPDATE run SET state = x'00' WHERE run_id = '{}'"
DAMAGED = {
    "its row and its first event": (ROW, "DELETE FROM journal WHERE run_id = '{}' AND seq = 1"),
    "its row and an event behind": (ROW, "DELETE FROM journal WHERE run_id = '{}' AND seq = 2"),
    "everything": tuple(
        f"DELETE FROM {table} WHERE run_id = '{{}}'"  # noqa: S608
        for table in ("journal", "inbox", "run")
    ),
}


@pytest.mark.requirement("store:salvage", "store:salvage:gap")
@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_run_that_nothing_tells_the_end_of_ends_as_lost_and_is_told_once(
    tmp_path: Path, before: tuple[Path, Told], damage: tuple[str, ...]
) -> None:
    original, was = before
    over = next(run for run in was.runs.values() if announcement_id(run.id) in was.read)
    unread = next(run for run in was.runs.values() if announcement_id(run.id) in was.unread)
    work = next(run for run in was.runs.values() if run.id in was.open and run.seq > 2)
    changes = [each.format(run.id) for run in (over, unread, work) for each in damage]
    database = executed(original.read_bytes(), tmp_path, *changes)

    after, repairs = repaired(home(tmp_path, database, iter(was.runs)))

    holds(was, after, repairs)
    assert {run_id for run_id, each in repairs.items() if each.is_lost} >= {over.id, work.id}
    assert announcement_id(over.id) not in after.unread
    assert after.open == was.open - {work.id}


@pytest.mark.requirement("store:salvage", "spawn:idempotency")
def test_the_keys_of_idempotent_spawns_come_from_the_runs(
    tmp_path: Path, before: tuple[Path, Told]
) -> None:
    original, was = before
    database = executed(original.read_bytes(), tmp_path, "DELETE FROM idempotency")
    paths = home(tmp_path, database, iter(was.runs))
    new = paths.state_dir / "new.db"
    rebuild_database(paths, new)

    with closing(SqliteStore(new, synchronous="OFF")) as store:
        store.open("test")
        found = {(each.key, each.run_id) for each in store.load_idempotency(0)}

    keys = {(run.spec.idempotency_key, run.id) for run in was.runs.values()}
    assert found == {each for each in keys if each[0] is not None}


@pytest.mark.requirement("store:salvage", "schedule:once")
def test_schedules_are_kept_but_for_those_that_are_damaged(tmp_path: Path) -> None:
    database, new = tmp_path / "was.db", tmp_path / "new.db"
    kept, damaged = a_schedule("s-1", 1), a_schedule("s-2", 2)
    with closing(SqliteStore(database, synchronous="OFF")) as store:
        store.open("test")
        store.commit(Batch(schedules={kept.id: kept, damaged.id: damaged}))
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE schedule SET checksum = 1 WHERE schedule_id = 's-2'")
        connection.commit()
    with closing(SqliteStore(database, synchronous="OFF")) as store:
        store.open("test")
        assert list(store.load_schedules()) == [kept]
        assert [each.name for each in store.set_aside()] == ["s-2"]

    salvage(database, new, ())

    with closing(SqliteStore(new, synchronous="OFF")) as store:
        store.open("test")
        assert list(store.load_schedules()) == [kept]


@pytest.mark.requirement("store:salvage", "store:salvage:log")
def test_without_what_was_committed_last_nothing_goes_on(
    tmp_path: Path, before: tuple[Path, Told]
) -> None:
    original, was = before
    paths = home(tmp_path, original.read_bytes(), iter(was.runs))
    new = paths.state_dir / "new.db"

    repairs = rebuild_database(paths, new, is_cut=True)

    after = told(new)
    assert after.open == set()
    assert {each.run_id for each in repairs} == was.open


# -- checkpoints ----------------------------------------------------------------------------


@pytest.mark.requirement("store:checkpoints", "store:outbox")
def test_a_repair_keeps_what_a_run_that_is_over_has_to_do(tmp_path: Path) -> None:
    place, new = SqlitePlace(tmp_path), tmp_path / "new" / "subagents.db"
    new.parent.mkdir()
    run = over(a_run(1))
    tidy = OutboxEntry(run_id=run.id, seq=1, index=0, effect=CleanUp(delete=False))
    with opened(place) as store:
        batch = spawned(run, over(a_run(2)))
        batch.outbox.append(tidy)
        store.commit(batch)

    assert salvage(place.path, new, ()) == []
    for each in (place, SqlitePlace(new.parent)):
        with opened(each) as store:
            assert store.load_outbox() == [tidy]
            assert list(store.load_open()) == []
            assert store.runs(RunFilter()) == [over(a_run(2)), run]
            store.commit(Batch(performed=[(run.id, 1, 0)]))
        with opened(each) as store:
            assert store.load_outbox() == []
            assert store.run(run.id) == run


@pytest.mark.requirement("store:checkpoints", "store:salvage")
def test_a_repair_continues_an_open_run_from_its_checkpoint(tmp_path: Path) -> None:
    place, new = SqlitePlace(tmp_path), tmp_path / "new" / "subagents.db"
    new.parent.mkdir()
    with opened(place) as store:
        store.commit(spawned(a_run(1), a_run(2)))
        later, batch = changed(a_run(1), times=3)
        store.commit(batch)
        later, batch = granted(later)
        store.commit(batch)

    assert salvage(place.path, new, ()) == []

    with opened(SqlitePlace(new.parent)) as store:
        assert list(store.load_open()) == [later, a_run(2)]
        assert store.load_outbox() == batch.outbox


@pytest.mark.requirement("store:checkpoints", "store:salvage")
def test_a_repair_lets_nothing_go_on_whose_newest_events_may_be_missing(tmp_path: Path) -> None:
    place, new = SqlitePlace(tmp_path), tmp_path / "new" / "subagents.db"
    new.parent.mkdir()
    with opened(place) as store:
        store.commit(spawned(a_run(1), a_run(2)))
        later, batch = changed(a_run(1), times=3)
        store.commit(batch)
    assert place.execute("UPDATE journal SET at_ms = at_ms + 1 WHERE run = 1 AND seq = 4") == 1

    (found,) = salvage(place.path, new, ())

    assert (found.run_id, found.is_known, found.is_lost) == (later.id, True, True)
    assert found.found == "it is known up to event 3, and what came after may be missing"
    with opened(SqlitePlace(new.parent)) as store:
        assert [run.seq for run in store.load_open()] == [3, 1]
