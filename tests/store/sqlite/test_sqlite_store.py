"""What only SQLite has: its file, its lock, and what can happen to them."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import pytest
from tests.store.sqlite.sqlite_place import a_store, filled

from subagents.domain.run.values import RunId
from subagents.errors import AlreadyRunning, CorruptState, StoreUnavailable
from subagents.extensions.testing.stored_values import a_run, over, spawned
from subagents.ports import RunFilter
from subagents.store.sqlite import sqlite_store
from subagents.store.sqlite.sqlite_store import (
    HELD_BYTES,
    READERS_MAX,
    SHRINK_PAGES,
    SqliteStore,
)

# -- the file ------------------------------------------------------------------------------------


@pytest.mark.requirement("store:private-file")
def test_the_database_is_nobody_elses_business(tmp_path: Path) -> None:
    path = tmp_path / "new" / "subagents.db"
    with closing(a_store(path)) as store:
        store.open("one")

        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.requirement("store:readers")
def test_connections_that_could_not_be_made_leave_room_for_those_that_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory() -> sqlite3.Connection:
        raise MemoryError

    with closing(a_store(tmp_path / "subagents.db")) as store:
        store.open("one")
        with monkeypatch.context() as patch:
            patch.setattr(store, "_connect", no_memory)
            for _ in range(READERS_MAX):
                with pytest.raises(MemoryError):
                    store.run(RunId("r-none"))

        assert store.run(RunId("r-none")) is None


@pytest.mark.requirement("store:place")
def test_the_size_of_the_database_counts_its_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    store = a_store(path)
    assert (store.place, store.size_bytes(), store.found_schema()) == (str(path), 0, None)

    path.write_bytes(b"x" * 100)
    assert store.size_bytes() == 100
    path.with_name(f"{path.name}-wal").write_bytes(b"x" * 23)
    assert store.size_bytes() == 123


@pytest.mark.requirement("store:place")
def test_a_store_brings_its_file_to_the_schema_that_it_names(tmp_path: Path) -> None:
    with closing(a_store(tmp_path / "subagents.db")) as store:
        store.open("one")
        assert store.found_schema() == store.schema


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


@pytest.mark.requirement("store:place")
def test_no_connection_outlives_the_store_that_made_it(tmp_path: Path) -> None:
    store = a_store(tmp_path / "subagents.db")
    store.open("me")
    with store._reader() as connection:
        store.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


@pytest.mark.requirement("store:place")
def test_a_write_that_has_begun_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = a_store(tmp_path / "subagents.db")
    store.open("me")
    closing_too = threading.Thread(target=store.close)
    lock = AskedLock()
    monkeypatch.setattr(store, "_writing", lock)
    newest = store._newest

    def read(connection: sqlite3.Connection, name: str) -> int:
        closing_too.start()
        assert lock.asked.wait(10), "closed under a thread that writes"
        return newest(connection, name)

    monkeypatch.setattr(store, "_newest", read)
    store.prune([RunId("r-1")])
    closing_too.join(10)
    with pytest.raises(StoreUnavailable, match="not open for writing"):
        store.prune([RunId("r-1")])


@pytest.mark.requirement("store:place")
def test_a_write_that_never_ends_keeps_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sqlite_store, "BUSY_TIMEOUT_MS", 10)
    with closing(a_store(tmp_path / "subagents.db")) as store:
        store.open("me")
        with store._writing:
            store.close()
        assert "a write of it does not end" in caplog.text
        with pytest.raises(AlreadyRunning):
            a_store(tmp_path / "subagents.db").open("another")


class AskedLock:
    """The lock of who writes; it notes when somebody waits for it."""

    def __init__(self) -> None:
        self._lock, self.asked = threading.Lock(), threading.Event()

    def acquire(self, timeout: float) -> bool:
        self.asked.set()
        return self._lock.acquire(timeout=timeout)

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


# -- damage --------------------------------------------------------------------------------------


@pytest.mark.requirement("store:corruption")
def test_a_row_that_is_there_twice_refuses_the_start_and_nothing_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=2)
    # As by a flipped bit: the row is another one's, and the index over it knows nothing of that.
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        found = connection.execute("SELECT * FROM sqlite_schema WHERE name = 'journal_order'")
        index = found.fetchone()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_schema WHERE name = 'journal_order'")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE journal SET run = 1 WHERE run = 2")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", index)
    before = path.read_bytes()

    twice = pytest.raises(CorruptState, match="a row of journal is there twice")
    with closing(a_store(path)) as store, twice:
        store.open("two")
    assert path.read_bytes() == before


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
        with pytest.raises(StoreUnavailable, match="the copy cannot be written"):
            store.backup(str(tmp_path / "nowhere" / "copy.db"))

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


# -- the size of the file --------------------------------------------------------------------


def free_pages(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


@pytest.mark.requirement("store:shrinks")
def test_a_prune_gives_its_room_back_in_small_steps(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=2_000)
    full = path.stat().st_size
    with closing(a_store(path)) as store:
        store.open("two")
        store.prune([a_run(n).id for n in range(2_000)])
        free, steps = free_pages(path), 0
        assert free > 2 * SHRINK_PAGES
        while store.shrink():
            steps += 1
            assert free - free_pages(path) == SHRINK_PAGES
            free = free_pages(path)

    assert steps >= 2
    assert path.stat().st_size < full / 2
    assert free_pages(path) <= SHRINK_PAGES


@pytest.mark.requirement("store:shrinks")
def test_room_that_is_soon_needed_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=100)
    with closing(a_store(path)) as store:
        store.open("two")
        store.prune([a_run(n).id for n in range(50)])
        before = free_pages(path)

        assert not store.shrink()
        assert free_pages(path) == before > 0


@pytest.mark.requirement("store:shrinks", "store:migrations")
def test_a_database_that_could_not_shrink_can_after_its_next_start(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=2_000)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("VACUUM")

    with closing(a_store(path)) as store:
        store.open("two")
        assert store.count(RunFilter(), most=10_000) == 2_000
        store.prune([a_run(n).id for n in range(2_000)])
        assert store.shrink()


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
def test_on_a_disk_without_a_free_byte_what_ends_runs_can_still_be_written(
    small_disk: Path,
) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    path = small_disk / "subagents.db"
    with closing(SqliteStore(path, held_bytes=HELD_BYTES)) as store:
        store.open("one")
        filler = fill(small_disk)

        for number in range(100):
            store.commit(spawned(over(a_run(number), result="x" * 4_000)))

        assert not store.has_room()
        for number in count(100):
            try:
                store.commit(spawned(over(a_run(number), result="x" * 4_000)))
            except StoreUnavailable:  # in the end it is spent
                break
        filler.unlink()
        assert store.has_room()


@pytest.mark.requirement("store:full-disk", "disk:noisy-worker")
@pytest.mark.parametrize("is_killed", [True, False])
def test_on_a_full_disk_it_opens_with_what_the_one_before_left(
    small_disk: Path, *, is_killed: bool
) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    path = small_disk / "subagents.db"
    leaves = "import os; os._exit(9)" if is_killed else "store.close()"
    program = (
        "import sys; from pathlib import Path\n"
        "from subagents.store.sqlite.sqlite_store import HELD_BYTES, SHRINK_PAGES, SqliteStore\n"
        "store = SqliteStore(Path(sys.argv[1]), held_bytes=HELD_BYTES); store.open('one')\n"
    )
    subprocess.run([sys.executable, "-c", program + leaves, str(path)], check=is_killed is False)
    filler = fill(small_disk)

    with closing(SqliteStore(path, held_bytes=HELD_BYTES)) as store:
        store.open("two")
        store.commit(spawned(over(a_run(1), result="x" * 4_000)))
        assert store.run(a_run(1).id) is not None
    filler.unlink()


def fill(disk: Path) -> Path:
    """A file that has every byte there is."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1024 * 1024, 512):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))
    assert os.statvfs(disk).f_bavail == 0
    return filler


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
        assert store.count(RunFilter(), most=10_000) == len(stored)
        subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
        store.probe()
        store.commit(spawned(a_run(999)))
        assert store.run(a_run(999).id) is not None
        assert store.check() == []


# -- what was damaged ----------------------------------------------------------------------


@pytest.mark.requirement("store:set-aside")
def test_indexes_that_changed_are_made_again_from_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "subagents.db"
    filled(path, runs=3)
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'run_label'"
        ).fetchone()
    content = bytearray(path.read_bytes())
    found = content.index(b"label1", (root - 1) * 4096)
    assert found < root * 4096
    content[found + 5] ^= 1
    path.write_bytes(content)

    with closing(a_store(path)) as store:
        store.open("two")

        assert store.check() == []
        assert [run.id for run in store.runs(RunFilter(label="label1"))] == [a_run(1).id]
        assert not store.set_aside()


@pytest.mark.requirement("store:power-loss")
def test_a_database_whose_making_was_cut_off_is_opened(tmp_path: Path) -> None:
    path, left = tmp_path / "subagents.db", tmp_path / "left.db"
    filled(path, runs=3)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("UPDATE run SET origin = zeroblob(20000)")
        connection.execute("UPDATE journal SET data = zeroblob(20000)")
        for suffix in ("", "-journal"):
            shutil.copy(f"{path}{suffix}", f"{left}{suffix}")
        connection.execute("ROLLBACK")

    with closing(a_store(left)) as store:
        store.open("two")
        assert len(store.load_open()) == 3
