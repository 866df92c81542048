"""A file that is not our database is refused and stays as it is."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.sqlite.sqlite_place import filled

from subagents.errors import CorruptState
from subagents.store.sqlite.identity import APPLICATION_ID, require_ours
from subagents.store.sqlite.migrate import migrations
from subagents.store.sqlite.sqlite_store import SqliteStore


def executed(statement: str) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(statement)

    return run


def emptied(path: Path) -> None:
    path.unlink(missing_ok=True)
    executed("VACUUM")(path)


FOREIGN = {
    "another program's tables": executed("CREATE TABLE bookmark (x)"),
    "another application id": executed("PRAGMA application_id = 1"),
    "another program's version": executed("PRAGMA user_version = 1"),
}
EMPTY = {
    "missing": lambda path: path.unlink(missing_ok=True),
    "no byte": lambda path: path.write_bytes(b""),
    "no table": emptied,
}


@pytest.mark.requirement("store:foreign")
@pytest.mark.parametrize("made", FOREIGN.values(), ids=FOREIGN)
def test_a_database_of_another_program_is_refused_unchanged(
    tmp_path: Path, made: Callable[[Path], None]
) -> None:
    path = tmp_path / "subagents.db"
    made(path)
    before = path.read_bytes()

    for look in (SqliteStore.open_readonly, lambda store: store.open("two")):
        with pytest.raises(CorruptState, match="of another program"):
            look(SqliteStore(path))

    assert path.read_bytes() == before


@pytest.mark.requirement("store:never-empty")
@pytest.mark.parametrize("emptied", EMPTY.values(), ids=EMPTY)
def test_an_empty_database_beside_files_of_runs_is_refused_with_the_ways_out(
    tmp_path: Path, emptied: Callable[[Path], None]
) -> None:
    path, attempts = tmp_path / "subagents.db", tmp_path / "attempts"
    (attempts / "r-1").mkdir(parents=True)
    emptied(path)

    with pytest.raises(CorruptState, match="has files of 1 run") as refused:
        SqliteStore(path, belongings=[attempts]).open("one")

    assert "subagents db repair --empty" in (refused.value.hint or "")
    assert not path.exists() or path.stat().st_size in {0, 4096}


@pytest.mark.requirement("store:never-empty")
@pytest.mark.parametrize("emptied", EMPTY.values(), ids=EMPTY)
def test_an_empty_database_where_nothing_ran_is_filled(
    tmp_path: Path, emptied: Callable[[Path], None]
) -> None:
    path = tmp_path / "subagents.db"
    emptied(path)
    (tmp_path / "attempts").mkdir()

    with closing(SqliteStore(path, belongings=[tmp_path / "attempts", tmp_path / "none"])) as store:
        assert store.open("one") == 1


@pytest.mark.requirement("store:never-empty")
def test_a_database_whose_tables_are_still_in_its_log_is_not_empty(tmp_path: Path) -> None:
    path, copy = tmp_path / "subagents.db", tmp_path / "copy.db"
    (tmp_path / "attempts" / "r-1").mkdir(parents=True)
    with closing(SqliteStore(path)) as store:
        store.open("one")
        for each, name in ((path, "copy.db"), (tmp_path / "subagents.db-wal", "copy.db-wal")):
            (tmp_path / name).write_bytes(each.read_bytes())

    with closing(SqliteStore(copy, belongings=[tmp_path / "attempts"])) as store:
        assert store.open("two") == 2


@pytest.mark.requirement("store:application-id")
def test_a_database_says_whose_it_is(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=1)

    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    require_ours(path)


@pytest.mark.requirement("store:newer-schema")
def test_a_newer_database_is_only_looked_at_to_say_so(tmp_path: Path) -> None:
    path, newest = tmp_path / "subagents.db", migrations()[-1][0]
    filled(path, runs=1)
    executed(f"PRAGMA user_version = {newest + 1}")(path)
    before = path.read_bytes()

    with pytest.raises(CorruptState, match=f"has schema {newest + 1}, this version knows"):
        SqliteStore(path).open_readonly()

    assert path.read_bytes() == before


@pytest.mark.requirement("store:readonly")
def test_reading_without_the_lock_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=3)
    path.chmod(0o400)
    before = path.read_bytes()

    with closing(SqliteStore(path)) as store:
        store.open_readonly()
        assert store.check() == []

    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o400
