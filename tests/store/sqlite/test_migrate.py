"""Migrations: numbered, forward only, whole or not at all."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from tests.store.sqlite.sqlite_place import a_store, filled, schema_of

from subagents.domain.run.events import CleanedUp, encode_event
from subagents.domain.run.run import Run
from subagents.domain.run.values import replace
from subagents.errors import CorruptState, StoreUnavailable
from subagents.extensions.testing.stored_values import ME, NOW_MS, a_run, entry, over
from subagents.ports import Batch, RunFilter
from subagents.store import rows
from subagents.store.sqlite.migrate import migrate, migrations, version_of


@pytest.mark.requirement("store:newer-schema")
def test_a_file_of_a_newer_version_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=1)
    newest = migrations()[-1][0]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {newest + 1}")
        connection.commit()
    before = path.read_bytes()

    with pytest.raises(CorruptState, match=f"has schema {newest + 1}, this version knows"):
        a_store(path).open("two")

    assert path.read_bytes() == before


@pytest.mark.requirement("store:migrations")
def test_migrations_are_numbered_without_gaps_and_described() -> None:
    steps = migrations()

    assert [number for number, _, _ in steps] == list(range(1, len(steps) + 1))
    for number, name, script in steps:
        assert script.startswith(f"-- {number:04} {name.replace('_', ' ')}")


@pytest.mark.requirement("store:migrations")
def test_migrating_from_every_version_gives_the_schema_of_a_fresh_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = tmp_path / "fresh.db"
    filled(fresh, runs=0)
    steps = migrations()
    for version in range(1, len(steps) + 1):
        path = tmp_path / f"from{version}.db"
        with monkeypatch.context() as older, closing(sqlite3.connect(path)) as connection:
            known = steps[:version]
            older.setattr("subagents.store.sqlite.migrate.migrations", lambda known=known: known)
            migrate(connection, path)
            assert version_of(connection) == version
        with closing(a_store(path)) as store:
            store.open("two")

        assert schema_of(path) == schema_of(fresh)


@pytest.mark.requirement("store:migrations")
def test_a_copy_is_kept_before_a_file_is_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=3)
    steps = migrations()
    newest = steps[-1][0]
    extra = (newest + 1, "more", "CREATE TABLE more (x INTEGER) STRICT;")
    monkeypatch.setattr("subagents.store.sqlite.migrate.migrations", lambda: (*steps, extra))

    with closing(a_store(path)) as store:
        store.open("two")
        assert store.count(RunFilter(), most=10_000) == 3

    copy = path.with_name(f"subagents.db.schema-{newest}.bak")
    assert "more" not in " ".join(schema_of(copy))
    assert any("CREATE TABLE more" in sql for sql in schema_of(path))


@pytest.mark.requirement("store:migrations")
def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=3)
    before, steps = schema_of(path), migrations()
    bad = (len(steps) + 1, "bad", "CREATE TABLE half (x INTEGER) STRICT; INSERT INTO nowhere;")
    monkeypatch.setattr("subagents.store.sqlite.migrate.migrations", lambda: (*steps, bad))

    with pytest.raises(StoreUnavailable, match="cannot open"):
        a_store(path).open("two")

    assert schema_of(path) == before
    monkeypatch.undo()
    with closing(a_store(path)) as store:
        store.open("three")
        assert store.count(RunFilter(), most=10_000) == 3


@pytest.mark.requirement("store:migrations", "spawn:idempotency-conflict")
def test_keys_of_before_there_were_digests_are_kept_without_one(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        migrate(connection, path, to=4)
        row = (ME, "once", a_run(1).id, NOW_MS)
        connection.execute(
            "INSERT INTO idempotency (requester, key, run_id, created_at_ms, checksum)"
            " VALUES (?, ?, ?, ?, ?)",
            rows.with_checksum(*row),
        )
        connection.commit()

    with closing(a_store(path)) as store:
        store.open("new")
        assert list(store.load_idempotency(0)) == [(*row, None)]
        assert store.check() == []


@pytest.mark.requirement("store:migrations", "store:outbox")
def test_what_was_in_the_outbox_is_in_the_rows_and_what_is_damaged_takes_its_run_aside(
    tmp_path: Path,
) -> None:
    path = tmp_path / "old.db"
    runs = [a_run(1), over(a_run(2)), a_run(3), a_run(4)]
    left = [(runs[0].id, 10, 0), (runs[0].id, 2, 1), (runs[1].id, 1, 0), (runs[2].id, 1, 0)]
    with closing(sqlite3.connect(path)) as connection:
        migrate(connection, path, to=10)
        for number, run in enumerate(runs, start=1):
            row = rows.inserted(number, rows.Checkpoint(run))[:-1]
            places = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO run VALUES ({places})", row)  # noqa: S608
        effect = b'{"type":"CleanUp","delete":true}'
        for key in left:
            connection.execute(
                "INSERT INTO outbox VALUES (?, ?, ?, ?, ?)", rows.with_checksum(*key, effect)
            )
        damage = "UPDATE outbox SET effect = x'7b7d' WHERE run_id = ?"
        connection.execute(damage, (runs[2].id,))
        connection.commit()

    with closing(a_store(path)) as store:
        store.open("new")

        found = [(each.run_id, each.seq, each.index) for each in store.load_outbox()]
        assert found == sorted(left[:3])
        assert list(store.load_open()) == [runs[0], runs[3]]
        assert {each.name for each in store.set_aside()} == {runs[2].id}


def old_state(run: Run) -> bytes:
    """The state of a queued run, as the versions up to schema 2 wrote it."""
    old = {
        "id": run.id,
        "seq": run.seq,
        "spec": {"task": ""},
        "resolved": msgspec.to_builtins(run.resolved),
        "requester": run.requester,
        "depth": run.lineage.depth,
        "createdAtMs": run.times.created_at_ms,
        "phase": run.phase,
        "phaseSinceMs": run.times.phase_since_ms,
        "firstSessionKey": run.session.first_key,
    }
    return msgspec.json.encode(old)


def of_version_1(path: Path) -> list[tuple[object, ...]]:
    """A database as the first version made it, with runs whose events lie mixed; its journal."""
    (number, _, script), *_ = migrations()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"{script}\nPRAGMA user_version = {number};")
        for number in (1, 2):
            run = replace(a_run(number), seq=3)
            # Without the newest state and the checksums, which came later.
            row = (*rows.inserted(number, rows.Checkpoint(run))[:15], old_state(run))
            places = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO run VALUES ({places})", row)  # noqa: S608
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

        assert store.run(a_run(1).id) == replace(a_run(1), seq=3)
        assert [(e.entry.run_id, e.entry.seq, e.entry.key) for e in feed] == before
        numbers = [each.number for each in feed]
        assert numbers == sorted(set(numbers))
        assert store.newest_number() == numbers[-1]
        assert [each.seq for each in store.journal(a_run(2).id)] == [1, 2, 3]
        store.commit(Batch(journal=[entry(a_run(1), seq=3)]))
        assert store.newest_number() == numbers[-1] + 1
        with pytest.raises(StoreUnavailable):
            store.commit(Batch(journal=[entry(a_run(1), seq=4, key="key2")]))
