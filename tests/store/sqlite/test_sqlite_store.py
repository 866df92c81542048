"""What only SQLite has: its file, its lock, and what can happen to them."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.store.sqlite.sqlite_place import a_store, filled

from subagents.errors import AlreadyRunning, CorruptState, StoreUnavailable
from subagents.ports import RunFilter
from subagents.store.sqlite.sqlite_store import KEPT_FREE_BYTES, SqliteStore
from subagents.testing.store_suite import a_run, over, spawned

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


@pytest.mark.requirement("store:full-disk", "disk:noisy-worker")
def test_on_a_disk_that_others_filled_what_ends_runs_can_still_be_written(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    path = small_disk / "subagents.db"
    with closing(SqliteStore(path, kept_free_bytes=KEPT_FREE_BYTES)) as store:
        store.open("one")
        reserve = small_disk / "subagents.db.reserve"
        assert (reserve.stat().st_size, reserve.stat().st_mode & 0o777) == (512 * 1024, 0o600)
        filler = small_disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        assert filler.stat().st_size > 1024 * 1024

        written = []
        for number in range(15):
            with suppress(StoreUnavailable):
                store.commit(spawned(over(a_run(number), result="x" * 4_000)))
                written.append(number)

        assert written[:8] == [*range(written[0], written[0] + 8)], "not in a row"
        assert written[0] <= 1  # the one that found the disk full may be lost
        assert not store.has_room()
        assert not reserve.exists()
        filler.unlink()
        store.has_room()
        assert reserve.exists()


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
