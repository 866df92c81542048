"""What was acknowledged is missed when the log that had it ends too early."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.sqlite.sqlite_place import a_store

from subagents.errors import CorruptState
from subagents.extensions.testing.stored_values import a_run, spawned
from subagents.store.sqlite.sqlite_store import SqliteStore

SUFFIXES = ("", "-wal", ".lock")
FRAME = 4096 + 24


def killed(path: Path, into: Path) -> Path:
    """The files as a process that is killed now leaves them."""
    into.mkdir()
    for suffix in SUFFIXES:
        shutil.copy(f"{path}{suffix}", into / f"subagents.db{suffix}")
    return into / "subagents.db"


def with_runs(path: Path, number: int) -> SqliteStore:
    store = a_store(path)
    store.open("one")
    for each in range(number):
        store.commit(spawned(a_run(each)))
    return store


@pytest.mark.requirement("store:log-damaged")
@pytest.mark.parametrize("where", [2, 10, 17, 26, 32 + 8, 0.3, 0.6, 0.999])
def test_a_log_with_a_flipped_bit_refuses_the_start_and_nothing_is_changed(
    tmp_path: Path, where: float
) -> None:
    with closing(with_runs(tmp_path / "subagents.db", 20)) as store:
        path = killed(tmp_path / "subagents.db", tmp_path / "copy")
        assert store.run(a_run(19).id) is not None
    log = Path(f"{path}-wal")
    content = bytearray(log.read_bytes())
    content[where if isinstance(where, int) else int(len(content) * where)] ^= 4
    log.write_bytes(content)
    before = path.read_bytes()

    with pytest.raises(CorruptState, match=r"its log ends .* before the last commit") as refused:
        a_store(path).open("two")

    with a_store(path).locked() as is_cut:
        assert is_cut
    assert refused.value.hint is not None
    assert f"or delete {path}.lock to go on without" in refused.value.hint
    assert (path.read_bytes(), log.read_bytes()) == (before, bytes(content))
    Path(f"{path}.lock").unlink()
    with closing(a_store(path)) as store:
        store.open("two")
        assert len(store.load_open()) < 20


@pytest.mark.requirement("store:log-damaged")
def test_a_log_that_ends_with_commits_nobody_was_told_of_is_no_damage(tmp_path: Path) -> None:
    with closing(with_runs(tmp_path / "subagents.db", 20)) as store:
        path = killed(tmp_path / "subagents.db", tmp_path / "copy")
        # As the power would have left it: a commit that was under way, half of it in the log.
        store.commit(spawned(a_run(99)))
        log = Path(f"{tmp_path / 'subagents.db'}-wal").read_bytes()
    size = Path(f"{path}-wal").stat().st_size
    Path(f"{path}-wal").write_bytes(log[: size + FRAME - 100])

    with a_store(path).locked() as is_cut:
        assert not is_cut
    with closing(a_store(path)) as store:
        store.open("two")
        assert len(store.load_open()) == 20


@pytest.mark.requirement("store:log-damaged")
@pytest.mark.parametrize("mode", ["PASSIVE", "RESTART", "TRUNCATE"])
def test_a_log_that_was_begun_anew_is_no_damage(tmp_path: Path, mode: str) -> None:
    place = tmp_path / "subagents.db"
    with closing(with_runs(place, 20)) as store:
        with closing(sqlite3.connect(place)) as connection:
            connection.execute(f"PRAGMA wal_checkpoint({mode})")
        begun = killed(place, tmp_path / "begun")
        store.commit(spawned(a_run(20)))
        gone_on = killed(place, tmp_path / "gone on")

    for path, number in ((begun, 20), (gone_on, 21)):
        with closing(a_store(path)) as store:
            store.open("two")
            assert len(store.load_open()) == number


@pytest.mark.requirement("store:log-damaged")
def test_a_backup_in_the_place_of_a_database_that_was_closed_is_opened(tmp_path: Path) -> None:
    path, copy = tmp_path / "subagents.db", tmp_path / "copy.db"
    with closing(with_runs(path, 3)) as store:
        store.backup(str(copy))
        store.commit(spawned(a_run(7)))
    shutil.copy(copy, path)

    with closing(a_store(path)) as store:
        store.open("two")
        assert len(store.load_open()) == 3
