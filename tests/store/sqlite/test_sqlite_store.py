"""What only SQLite has: its file, its lock, its schema, and what can happen to them."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from subagents.domain.run.events import CleanedUp, encode_event
from subagents.errors import AlreadyRunning, CorruptState, StoreUnavailable
from subagents.ports import Batch, RunFilter
from subagents.store.sqlite import rows
from subagents.store.sqlite.named_sql import migrations, statements
from subagents.store.sqlite.sqlite_store import SqliteStore
from subagents.testing.store_suite import (
    a_run,
    entry,
    message,
    over,
    spawned,
)


def a_store(path: Path) -> SqliteStore:
    return SqliteStore(path, synchronous="OFF")


def schema_of(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
        )
        return [" ".join(sql.split()) for (sql,) in found]


def filled(path: Path, runs: int = 200) -> None:
    with closing(a_store(path)) as store:
        store.open("one")
        batch = spawned(*(a_run(n) for n in range(runs)))
        batch.messages += [message(run) for run in batch.runs.values()]
        store.commit(batch)


# -- the file ------------------------------------------------------------------------------------


@pytest.mark.requirement("store:private-file")
def test_the_database_is_nobody_elses_business(tmp_path: Path) -> None:
    path = tmp_path / "new" / "subagents.db"
    with closing(a_store(path)) as store:
        store.open("one")

        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.requirement("store:one-holder")
def test_another_process_is_refused_while_the_first_one_lives(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    program = (
        "import sys; from pathlib import Path\n"
        "from subagents.store.sqlite.sqlite_store import SqliteStore\n"
        f"store = SqliteStore(Path({str(path)!r})); store.open('other')\n"
        "print('open', flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == b"open\n"
        with closing(a_store(path)) as store:
            with pytest.raises(AlreadyRunning, match="another process is using"):
                store.open("me")
            other.kill()
            other.wait(timeout=10)

            assert store.open("me") == 2


# -- damage --------------------------------------------------------------------------------------


@pytest.mark.requirement("store:corruption")
@pytest.mark.parametrize("where", [0.0, 0.3, 0.6, 0.9])
def test_flipped_bytes_are_noticed_and_the_way_out_is_named(tmp_path: Path, where: float) -> None:
    path = tmp_path / "subagents.db"
    filled(path)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(int(size * where) // 4096 * 4096)
        file.write(os.urandom(2 * 4096))
    damaged = path.read_bytes()

    store = a_store(path)
    with pytest.raises(CorruptState) as refused:
        store.open("two")

    assert str(path) in refused.value.message
    assert refused.value.hint is not None
    assert "restore a copy made by `subagents db backup`" in refused.value.hint
    assert path.read_bytes() == damaged
    shutil.copy(path, tmp_path / "evidence")
    path.unlink()
    with closing(a_store(path)) as fresh:
        assert fresh.open("two") == 1, "the lock was let go"


@pytest.mark.requirement("store:corruption")
@pytest.mark.parametrize("content", [b"not a database at all" * 50, b"\0" * 8192])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "subagents.db"
    path.write_bytes(content)

    with pytest.raises(CorruptState):
        a_store(path).open("one")
    assert path.read_bytes() == content


@pytest.mark.requirement("store:backup")
def test_a_backup_is_opened_like_the_original_and_has_everything(tmp_path: Path) -> None:
    path, copy = tmp_path / "subagents.db", tmp_path / "copy.db"
    with closing(a_store(path)) as store:
        store.open("one")
        runs = [a_run(n) for n in range(5)]
        store.commit(spawned(*runs))
        store.backup(str(copy))
        store.commit(spawned(a_run(9)))

    with closing(a_store(copy)) as restored:
        restored.open("two")
        assert list(restored.load_open()) == runs
        assert restored.check() == []


# -- schema --------------------------------------------------------------------------------------


@pytest.mark.requirement("store:newer-schema")
def test_a_file_of_a_newer_version_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=1)
    newest = migrations("sqlite")[-1][0]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {newest + 1}")
        connection.commit()
    before = path.read_bytes()

    with pytest.raises(CorruptState, match=f"has schema {newest + 1}, this version knows"):
        a_store(path).open("two")

    assert path.read_bytes() == before


@pytest.mark.requirement("store:migrations")
def test_migrations_are_numbered_without_gaps_and_described() -> None:
    steps = migrations("sqlite")

    assert [number for number, _, _ in steps] == list(range(1, len(steps) + 1))
    for number, name, script in steps:
        assert script.startswith(f"-- {number:04} {name.replace('_', ' ')}")


@pytest.mark.requirement("store:migrations")
def test_migrating_from_every_version_gives_the_schema_of_a_fresh_file(tmp_path: Path) -> None:
    fresh = tmp_path / "fresh.db"
    filled(fresh, runs=0)
    steps = migrations("sqlite")
    for version in range(1, len(steps) + 1):
        path = tmp_path / f"from{version}.db"
        with closing(sqlite3.connect(path)) as connection:
            for _, _, script in steps[:version]:
                connection.executescript(script)
            connection.execute(f"PRAGMA user_version = {version}")
            connection.commit()
        with closing(a_store(path)) as store:
            store.open("two")

        assert schema_of(path) == schema_of(fresh)


@pytest.mark.requirement("store:migrations")
def test_a_copy_is_kept_before_a_file_is_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=3)
    steps = migrations("sqlite")
    newest = steps[-1][0]
    extra = (newest + 1, "more", "CREATE TABLE more (x INTEGER) STRICT;")
    monkeypatch.setattr(
        "subagents.store.sqlite.migrate.migrations", lambda _dialect: (*steps, extra)
    )

    with closing(a_store(path)) as store:
        store.open("two")
        assert store.count(RunFilter()) == 3

    copy = path.with_name(f"subagents.db.schema-{newest}.bak")
    assert "more" not in " ".join(schema_of(copy))
    assert any("CREATE TABLE more" in sql for sql in schema_of(path))


@pytest.mark.requirement("store:migrations")
def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=3)
    before, steps = schema_of(path), migrations("sqlite")
    bad = (len(steps) + 1, "bad", "CREATE TABLE half (x INTEGER) STRICT; INSERT INTO nowhere;")
    monkeypatch.setattr("subagents.store.sqlite.migrate.migrations", lambda _dialect: (*steps, bad))

    with pytest.raises(StoreUnavailable, match="cannot open"):
        a_store(path).open("two")

    assert schema_of(path) == before
    monkeypatch.undo()
    with closing(a_store(path)) as store:
        store.open("three")
        assert store.count(RunFilter()) == 3


# -- the order over all runs ---------------------------------------------------------------------


def of_version_1(path: Path) -> list[tuple[object, ...]]:
    """A database as the first version made it, with runs whose events lie mixed; its journal."""
    (number, _, script), *_ = migrations("sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"{script}\nPRAGMA user_version = {number};")
        for run in (a_run(1), a_run(2)):
            connection.execute(statements("sqlite")["insert_run"], rows.inserted(run))
        for seq, number in ((1, 2), (1, 1), (2, 2), (2, 1), (3, 2)):
            connection.execute(
                "INSERT INTO journal (run, run_id, seq, at_ms, type, key, data)"
                " VALUES (?, ?, ?, ?, 'CleanedUp', ?, ?)",
                (
                    *(number, a_run(number).id, seq, seq),
                    *(f"key{seq}", encode_event(CleanedUp(at_ms=seq))),
                ),
            )
        # As after a prune: gaps, which the order must survive.
        connection.execute("DELETE FROM journal WHERE run = 1 AND seq = 1")
        connection.commit()
        found = connection.execute("SELECT run_id, seq, key FROM journal ORDER BY rowid").fetchall()
    path.chmod(0o600)
    return found


@pytest.mark.requirement("store:feed:migrated")
def test_a_database_of_the_first_version_gets_its_events_numbered_in_their_order(
    tmp_path: Path,
) -> None:
    path = tmp_path / "subagents.db"
    before = of_version_1(path)

    with closing(a_store(path)) as store:
        store.open("two")
        feed = store.feed(after=0)

        assert [(e.entry.run_id, e.entry.seq, e.entry.key) for e in feed] == before
        numbers = [each.number for each in feed]
        assert numbers == sorted(set(numbers))
        assert store.newest_number() == numbers[-1]
        assert [each.seq for each in store.journal(a_run(2).id)] == [1, 2, 3]
        store.commit(Batch(journal=[entry(a_run(1), seq=3)]))
        assert store.newest_number() == numbers[-1] + 1
        with pytest.raises(StoreUnavailable):
            store.commit(Batch(journal=[entry(a_run(1), seq=4, key="key2")]))


@pytest.mark.requirement("store:feed:never-backwards")
def test_a_vacuum_renumbers_nothing(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    with closing(a_store(path)) as store:
        store.open("one")
        runs = [over(a_run(n)) for n in range(1, 5)]
        store.commit(spawned(*runs))
        store.prune([runs[0].id, runs[2].id])
        before = [(each.number, each.entry.run_id) for each in store.feed(after=0)]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")

    with closing(a_store(path)) as store:
        store.open("two")
        assert [(each.number, each.entry.run_id) for each in store.feed(after=0)] == before
        assert [number for number, _ in before] == [2, 4]


# -- the statements ------------------------------------------------------------------------------


@pytest.mark.requirement("store:named-statements")
def test_every_named_statement_is_used_and_every_used_one_exists() -> None:
    named = set(statements("sqlite"))
    modules = (sys.modules[SqliteStore.__module__].__file__, rows.__file__)
    text = "".join(Path(module).read_text("utf-8") for module in modules if module is not None)

    unused = {name for name in named if f'"{name}"' not in text}

    assert unused == set()


@pytest.mark.requirement("store:named-statements")
def test_every_statement_is_understood_by_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=1)
    with closing(sqlite3.connect(path)) as connection:
        for name, sql in statements("sqlite").items():
            places = max(sql.count("?"), 1)
            try:
                connection.execute(f"EXPLAIN {sql}", (None,) * places)
            except sqlite3.ProgrammingError:
                numbered = {part[0] for part in sql.split("?")[1:] if part[:1].isdigit()}
                connection.execute(f"EXPLAIN {sql}", (None,) * (len(numbered) or 0))
            assert sql.strip(), name


@pytest.mark.requirement("store:indexed")
@pytest.mark.parametrize(
    "name",
    [
        *("load_open", "load_keys", "load_open_keys", "select_run", "select_journal"),
        *("select_unread", "select_message", "find_runs", "update_run", "select_archivable"),
        *("select_feed", "newest_number"),
    ],
)
def test_what_is_asked_all_the_time_scans_no_table(tmp_path: Path, name: str) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=1)
    sql = statements("sqlite")[name]
    numbered = {part[0] for part in sql.split("?")[1:] if part[:1].isdigit()}
    places = len(numbered) or sql.count("?")
    with closing(sqlite3.connect(path)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", (None,) * places).fetchall()

    steps = [str(row[3]) for row in plan]
    assert not [step for step in steps if step.startswith("SCAN") and "INDEX" not in step], steps


# -- a full disk ---------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB of its own."""
    place = tmp_path / "small"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.requirement("store:full-disk")
def test_a_full_disk_refuses_commits_whole_until_there_is_room(small_disk: Path) -> None:
    path = small_disk / "subagents.db"
    stored = []
    with closing(a_store(path)) as store:
        store.open("one")
        assert not store.has_room()

        def fill() -> None:
            for number in range(100):
                store.commit(spawned(over(a_run(number), result="x" * 100_000)))
                stored.append(a_run(number).id)

        with pytest.raises(StoreUnavailable, match="refused a write") as refused:
            fill()
        assert refused.value.hint is not None
        assert "free disk space" in refused.value.hint
        assert stored, "nothing fitted"
        assert store.run(stored[-1]) is not None
        assert store.count(RunFilter()) == len(stored)
        subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
        store.probe()
        store.commit(spawned(a_run(999)))
        assert store.run(a_run(999).id) is not None
        assert store.check() == []
