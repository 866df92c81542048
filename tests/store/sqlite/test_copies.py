"""What is in a copy of a database that is about to take a database's place."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.domain.schedules.test_schedule import a_schedule

from subagents.domain.run.values import replace
from subagents.domain.schedules.schedule import Schedule, ScheduleId
from subagents.store import rows
from subagents.store.sqlite.copies import foreign_code, schedule_ids, settle
from subagents.store.sqlite.migrate import migrate, migrations
from subagents.store.sqlite.statements import statements


def made(path: Path, *schedules: Schedule, version: int | None = None) -> Path:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, path, to=version)
        for each in schedules:
            connection.execute(statements()["put_schedule"], rows.schedule_put(each))
    return path


@pytest.mark.requirement("store:no-foreign-code")
@pytest.mark.parametrize("version", [number for number, _, _ in migrations()])
def test_the_triggers_of_every_schema_are_ours(tmp_path: Path, version: int) -> None:
    file = made(tmp_path / "a.db", version=version)
    with closing(sqlite3.connect(file)) as connection:
        assert foreign_code(connection) == []


@pytest.mark.requirement("store:no-foreign-code")
@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER x AFTER INSERT ON journal BEGIN DELETE FROM inbox; END",
        "CREATE TRIGGER x BEFORE UPDATE ON run BEGIN SELECT RAISE(ABORT, 'no'); END",
        "CREATE TRIGGER x AFTER DELETE ON schedule BEGIN DELETE FROM run; END",
        "CREATE TRIGGER run_tags_put2 AFTER INSERT ON run BEGIN DELETE FROM run_tag; END",
        (
            "DROP TRIGGER run_tags_remove;"
            "CREATE TRIGGER run_tags_remove AFTER DELETE ON run BEGIN DELETE FROM inbox; END"
        ),
        "CREATE TABLE theirs (a); CREATE TRIGGER x AFTER INSERT ON theirs BEGIN SELECT 1; END",
        (
            "CREATE VIEW v AS SELECT 1;"
            "CREATE TRIGGER x INSTEAD OF INSERT ON v BEGIN DELETE FROM run; END"
        ),
    ],
)
def test_a_trigger_that_is_not_ours_is_named(tmp_path: Path, sql: str) -> None:
    file = made(tmp_path / "a.db")
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(sql)
        (found,) = foreign_code(connection)
    assert found.startswith("the trigger ")
    assert "is not ours" in found


@pytest.mark.requirement("schedule:one-home")
def test_only_schedules_that_were_not_here_and_are_not_paused_are_paused(tmp_path: Path) -> None:
    ours, theirs, resting = (
        replace(a_schedule(), id=ScheduleId(f"s-{name}"), name=name)
        for name in ("ours", "theirs", "resting")
    )
    copy = made(tmp_path / "copy.db", ours, theirs, replace(resting, paused_at_ms=3))
    before = schedule_ids(made(tmp_path / "here.db", ours))

    assert before == {"s-ours"}
    assert settle(copy, before, 7) == (0, ("theirs",))
    with closing(sqlite3.connect(copy)) as connection:
        found = [
            rows.schedule_from(row) for row in connection.execute(statements()["all_schedules"])
        ]
    assert {each.name: each.paused_at_ms for each in found} == {
        "ours": None,
        "theirs": 7,
        "resting": 3,
    }
    assert settle(copy, (), 9).paused == ("ours",)


@pytest.mark.requirement("schedule:one-home")
def test_where_no_schedule_can_be_read_none_was_here(tmp_path: Path) -> None:
    junk = tmp_path / "junk.db"
    junk.write_bytes(b"junk" * 1000)
    old = made(tmp_path / "old.db", version=2)

    assert schedule_ids(tmp_path / "none.db") == frozenset()
    assert schedule_ids(junk) == frozenset()
    assert schedule_ids(old) == frozenset()
    assert settle(old, (), 1) == (0, ())
