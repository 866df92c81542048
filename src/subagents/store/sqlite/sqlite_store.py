"""The SQLite store: WAL, ``synchronous=FULL``, one writer, a few readers.

With group commit FULL costs one fsync of latency and nothing in throughput (measured, see
bench/README.md), so an acknowledged event survives a power cut and not only a crash.
"""

import fcntl
import logging
import os
import queue
import re
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

from subagents.domain.run.values import RunId
from subagents.errors import AlreadyRunning, CorruptState, Fenced, StoreUnavailable
from subagents.ports import Batch, RunFilter, SetAside, Settled
from subagents.store import rows
from subagents.store.batch_rows import ERASED_TYPES, Written, erased_rows, updated, written
from subagents.store.row_store import (
    CHECK_BYTES_MAX,
    EVENTS,
    RECORDS,
    STRAYS,
    WORK,
    Kinds,
    Parameters,
    RowStore,
    aside,
    raw,
    shown,
)
from subagents.store.run_filters import is_of_model, mentions
from subagents.store.sqlite import copies, identity
from subagents.store.sqlite.disk_reserve import DiskReserve
from subagents.store.sqlite.identity import APPLICATION_ID, read_only, require_ours
from subagents.store.sqlite.migrate import migrate, migrations, version_of
from subagents.store.sqlite.run_query import narrowed
from subagents.store.sqlite.statements import statements
from subagents.store.sqlite.wal_mark import WalMark
from subagents.text import counted
from subagents.version import __version__

log = logging.getLogger(__name__)

READERS_MAX: Final = 4
"""The most connections that read; more would wait for the same few cores."""

READER_CACHE_KB: Final = 2_048
"""The cache of each reader; pages are in the system's cache besides. The writer has 16 MiB."""

BUSY_TIMEOUT_MS: Final = 5_000
RESERVE_BYTES: Final = 8 * 1024 * 1024
"""New spawns are refused below this, so that the runs there are can still end on record."""

HELD_BYTES: Final = 24 * 1024 * 1024
"""Disk space that a daemon's store (``stores``) holds for the ends of the runs there are."""

FREE_FILES_MIN: Final = 256
"""New spawns are refused when the file system has room for fewer files."""

PROBE_BYTES: Final = 1024 * 1024
"""The least free space at which something is tried again after a failed commit."""

SHRINK_PAGES: Final = 256
"""How many pages one step gives back: commits wait for some milliseconds at most."""

FREE_SHARE: Final = 8
"""An eighth of the pages may be free, and 1 MiB: what comes next needs them."""

REBUILD_BYTES_MAX: Final = 256 * 1024 * 1024
"""The largest database of 0.1.0 that a start rewrites so that it can shrink: 100 MB take 1 s."""

WAL_PAGES_MAX: Final = 2_000
"""Checkpoint after about 8 MB of WAL."""

CHECKSUMS_SINCE: Final = 4
"""The schema in which rows have checksums."""

# What `integrity_check` found, and that a text is not UTF-8, SQLite says in words alone.
_INDEX_ONLY: Final = re.compile(
    r"row \d+ missing from index|wrong # of entries in index|non-unique entry in index"
    r"|row \d+ values differ from index"
)
_PLACE: Final = re.compile(r"\?\d*|:\w+")
_NO_TEXT: Final = "Could not decode to UTF-8"


class SqliteStore(RowStore):
    """One database file, held by one process (``<file>.lock``) under one epoch."""

    def __init__(
        self,
        path: Path,
        *,
        synchronous: str = "FULL",
        held_bytes: int = 0,
        belongings: Sequence[Path] = (),
    ) -> None:
        super().__init__(statements())
        self._path = path
        self._belongings = belongings
        self._reserve = DiskReserve(path, held_bytes)
        self._synchronous = synchronous
        self._writer: sqlite3.Connection | None = None
        self._readers: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        self._readers_made = 0
        self._is_closed = False
        self._lock: int | None = None
        self._mark: WalMark | None = None
        self._lending = threading.Lock()
        self._file = (0, 0)
        self._epoch = 0

    @property
    def _may_write(self) -> bool:
        return self._writer is not None

    # -- what it is ------------------------------------------------------------------------

    @property
    def place(self) -> str:
        """See ``ports.Database.place``."""
        return str(self._path)

    @property
    def schema(self) -> int:
        """See ``ports.Database.schema``."""
        return migrations()[-1][0]

    def size_bytes(self) -> int:
        """See ``ports.Database.size_bytes``."""
        files = (self._path, Path(f"{self._path}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    @property
    def ways_out(self) -> str:
        """See ``ports.Database.ways_out``."""
        return identity.ways_out(self._path)

    def found_schema(self) -> int | None:
        """See ``ports.StoreFile.found_schema``."""
        return identity.schema_of(self._path)

    def require_not_newer(self) -> None:
        """See ``ports.StoreFile.require_not_newer``."""
        identity.require_not_newer(self._path)

    # -- life ------------------------------------------------------------------------------

    def open(self, owner: str) -> int:
        """See ``ports.Store.open``; also applies missing migrations."""
        self._take_lock()
        self._is_closed = False
        self._reserve.give_back()
        try:
            if Path(f"{self._path}-journal").exists():
                # It was being made when the power went: only who may write can undo the half.
                with closing(sqlite3.connect(self._path)) as connection:
                    connection.execute(self._sql["select_tables"])
            require_ours(self._path, self._belongings)
            stale = self._verify()
            self._writer = self._connect()
            if stale:
                # Indexes only repeat what is in the rows; whether those are right is asked below.
                log.warning("%s: indexes are made again: %s", self._path, "; ".join(stale[:5]))
                self._writer.execute("REINDEX")
            migrate(self._writer, self._path)
            self._make_shrinkable(self._writer)
            self._writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._find_damaged(self._writer)
            with transaction(self._writer):
                epoch, pruned, _ = self._writer.execute(self._sql["read_node"]).fetchone()
                epoch += 1
                (self._left_by,) = self._writer.execute(self._sql["read_version"]).fetchone()
                taken = (owner, epoch, rows.checksum(epoch, pruned), __version__)
                self._writer.execute(self._sql["take_over"], taken)
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise self._opening_failed(error) from error
            if isinstance(error, UnicodeDecodeError):
                raise self._corrupt(f"its schema is no text: {error}") from error
            raise
        self._note_commit()
        self._epoch = epoch
        self._file = _identity(self._path)
        self._reserve.take()
        return self._epoch

    def renew(self) -> float | None:
        """See ``ports.Store.renew``: the kernel takes the lock from nobody who lives."""
        return None

    def open_readonly(self) -> None:
        """See ``ports.Database.open_readonly``."""
        try:
            require_ours(self._path, self._belongings)
        except sqlite3.DatabaseError as error:
            raise self._opening_failed(error) from error
        if not self._path.is_file():
            raise StoreUnavailable(f"there is no database at {self._path}")

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """See ``ports.StoreFile.locked``."""
        self._take_lock()
        try:
            yield self._is_cut()
        finally:
            self.close()

    def _is_cut(self) -> bool:
        try:
            with closing(sqlite3.connect(read_only(self._path), uri=True)) as connection:
                version_of(connection)
                return self._mark is not None and self._mark.lost() > 0
        except sqlite3.Error:
            return False

    def _take_lock(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A lock of the kernel's goes with its process, however that ends. It is on a file of its
        # own, since closing a descriptor of the database's would drop SQLite's locks on it.
        lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise AlreadyRunning(
                f"another process is using {self._path}",
                hint="talk to that daemon, or stop it first: subagents down",
            ) from error
        self._lock, self._mark = lock, WalMark(self._path, lock)

    def _connect(self) -> sqlite3.Connection:
        is_ours = self._lock is not None
        connection = sqlite3.connect(
            self._path if is_ours else read_only(self._path),
            isolation_level=None,
            check_same_thread=False,  # one commit at a time; readers are handed out one by one
            timeout=BUSY_TIMEOUT_MS / 1000,
            cached_statements=256,
            uri=not is_ours,
        )
        if not is_ours:
            return connection
        with _closed_by_failure(connection):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES_MAX}")
            connection.execute("PRAGMA cache_size = -16384")
            # What is deleted or overwritten is zeroed in the file. Most systems build SQLite so.
            connection.execute("PRAGMA secure_delete = ON")
        os.chmod(self._path, 0o600)  # noqa: PTH101 - tasks and results are nobody else's business
        return connection

    def _verify(self) -> list[str]:
        """What is wrong with indexes alone; anything else of the whole file refuses the start.

        Through a connection that cannot write: one that can would end the log when it is closed.
        """
        if not self._path.is_file() or not self._path.stat().st_size:
            return []
        with closing(sqlite3.connect(read_only(self._path), uri=True)) as connection:
            is_small = self._path.stat().st_size <= CHECK_BYTES_MAX
            problems = _problems(connection) if is_small else []
            if not all(_INDEX_ONLY.match(each) for each in problems):
                raise self._corrupt("; ".join(problems[:5]))
            version = version_of(connection)
            if lost := 0 if self._mark is None else self._mark.lost():
                raise CorruptState(
                    f"{self._path} is damaged: its log ends {counted(lost, 'page')} before the"
                    " last commit",
                    hint=f"{self.ways_out}, or delete {self._path}.lock to go on without"
                    " what was acknowledged last",
                )
            if version >= CHECKSUMS_SINCE:
                self._verify_work(connection)
            if version == migrations()[-1][0]:
                self._verify_schema(connection)
                if problems and (twice := connection.execute(self._sql["select_twice"]).fetchone()):
                    # An index of it cannot be made again: the row is wrong, and not the index.
                    raise self._corrupt(f"a row of {twice[0]} is there twice; {problems[0]}")
        if self._mark is not None:
            self._mark.close()
        return problems

    def _verify_schema(self, connection: sqlite3.Connection) -> None:
        """Let SQLite read each statement: one that it cannot is found before anything is done."""
        for sql in self._sql.values():
            connection.execute(f"EXPLAIN {_PLACE.sub('NULL', sql)}")

    def _verify_work(self, connection: sqlite3.Connection) -> None:
        """What cannot be set aside alone: the counters, and work of a run that is not there."""
        *counters, written = connection.execute(self._sql["read_node"]).fetchone()
        try:
            rows.verify(written, *counters)
        except rows.DAMAGE as error:
            raise self._corrupt(f"its epoch: {error}") from error
        for each in self._damaged(connection, *WORK):
            if connection.execute(self._sql["run_number"], (each.run_id,)).fetchone() is None:
                raise self._corrupt(f"work of a run that cannot be told: {each.reason}")

    def _find_damaged(self, connection: sqlite3.Connection) -> None:
        """Set aside what is damaged, as far as there is time for it at a start."""
        with transaction(connection):
            connection.execute(self._sql["take_back"])
        found = [*self._damaged(connection, *WORK)]
        if self._path.stat().st_size <= CHECK_BYTES_MAX:
            found += self._damaged(connection, *RECORDS)
            with _lenient(connection):
                for (run_id,) in connection.execute(self._sql["select_strays"]):
                    found.append(SetAside(name=run_id, run_id=run_id, reason=STRAYS))
        self._put_aside(found)

    def _damaged(self, connection: sqlite3.Connection, *kinds: Kinds) -> Iterator[SetAside]:
        for name, kind in kinds:
            with _lenient(connection):
                for row in connection.execute(self._sql[name]):
                    try:
                        kind.read(row)
                    except rows.DAMAGE as error:
                        yield from aside(kind, row, error)

    def _put_aside(self, found: Iterable[SetAside]) -> bool:
        """See ``RowStore``."""
        is_new = False
        if self._writer is None:
            return is_new
        try:
            with self._alone(), transaction(self._require_writer()) as connection:
                for each in found:
                    row = (raw(each.name), raw(each.run_id), each.reason)
                    if connection.execute(self._sql["put_aside"], row).rowcount:
                        log.error("%s is set aside: %s", shown(each.name), each.reason)
                        is_new = True
        except StoreUnavailable as error:
            log.warning("nothing can be set aside now: %s", error)
        return is_new

    def _make_shrinkable(self, connection: sqlite3.Connection) -> None:
        """Rewrite a new database, or one of 0.1.0, where that is quick and there is room."""
        # A file is given another mode only by `VACUUM`, which needs room for a second copy.
        (can_shrink,) = connection.execute("PRAGMA auto_vacuum").fetchone()
        size = self._path.stat().st_size
        if not can_shrink and size <= min(REBUILD_BYTES_MAX, self._reserve.bytes_free() // 4):
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("VACUUM")

    def _corrupt(self, detail: str) -> CorruptState:
        return CorruptState(f"{self._path} is damaged: {detail}", hint=self.ways_out)

    def _opening_failed(self, error: sqlite3.DatabaseError) -> CorruptState | StoreUnavailable:
        if _is_corruption(error):
            return self._corrupt(str(error))
        return StoreUnavailable(f"cannot open {self._path}: {error}")

    def checkpoint(self) -> None:
        """See ``ports.Store.checkpoint``."""
        if not (behind := self._open.behind()):
            return
        try:
            with self._alone():
                with self.transaction() as connection:
                    self._execute(connection, updated(behind))
                self._note_commit()
        except (StoreUnavailable, Fenced) as error:
            log.warning("%s runs are left to be folded at the next start: %s", len(behind), error)

    def close(self) -> None:
        """Release everything; safe to repeat. A write that has begun is waited for: a connection
        that is closed under a thread ends the process. One without end keeps the file.
        """
        self._open.forget()
        self._is_closed = True
        self._close_readers()
        if not self._writing.acquire(timeout=BUSY_TIMEOUT_MS / 1000):
            log.warning("%s is left open: a write of it does not end", self._path)
            return
        # The order matters: a mark that is closed under a connection drops SQLite's locks, the
        # reserve is for what SQLite leaves, and with the lock the next process comes in.
        try:
            for each in (self._writer, self._mark, self._reserve):
                if each is not None:
                    each.close()
            self._writer = self._mark = None
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None
        finally:
            self._writing.release()

    def _close_readers(self) -> None:
        # One that a thread still reads with is closed when it comes back.
        with suppress(queue.Empty):
            while True:
                self._readers.get_nowait().close()
                self._readers_made -= 1

    # -- writing ---------------------------------------------------------------------------

    def commit(self, batch: Batch) -> int:
        """See ``ports.Store.commit``."""
        try:
            self._require_writer()
            if not self._open.is_complete:
                self._load()  # what runs have to do is added to what they had to do
            with self._writing:
                self._commits += 1
                with self._open.committing(batch):
                    try:
                        number = self._commit(batch)
                    except sqlite3.OperationalError as error:
                        if _code_of(error) != sqlite3.SQLITE_FULL:
                            raise
                        # What is in the log has room in the file; then the log is rewritten.
                        self._require_writer().execute("PRAGMA wal_checkpoint(PASSIVE)")
                        number = self._commit(batch)
                self._note_commit()
                return number
        # Whatever it was: whether the commit was made, only the file knows now.
        except BaseException as error:
            self._open.forget()
            if not isinstance(error, sqlite3.Error):
                raise
            raise StoreUnavailable(
                f"the database refused a write: {error}",
                hint="free disk space; nothing acknowledged was lost",
            ) from error

    def _commit(self, batch: Batch) -> int:
        with self.transaction() as connection:
            number = self._write(connection, batch)
        self._reserve.keep()
        return number

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One that ends well only while the file and the epoch are ours."""
        with transaction(self._require_writer()) as connection:
            if _identity(self._path) != self._file:
                raise StoreUnavailable(
                    f"{self._path} was moved or deleted: nothing written now would be kept",
                    hint="put it back, or stop the daemon: subagents down",
                )
            # In the transaction, whose write lock keeps anybody from taking over meanwhile.
            self._require_epoch(connection)
            yield connection

    def _note_commit(self) -> None:
        if self._mark is not None:
            self._mark.note()

    def _write(self, connection: sqlite3.Connection, batch: Batch) -> int:
        """Returns the number of the newest event."""
        due = [now for now, is_due in self._open.after(batch) if is_due]

        first: dict[str, int] = {}

        def numbers(newest: str) -> Iterator[int]:
            first[newest] = self._newest(connection, newest) + 1
            return count(first[newest])

        def erased(run_id: RunId) -> Iterator[Written]:
            (number,) = connection.execute(self._sql["run_number"], (run_id,)).fetchone()
            events = connection.execute(self._sql["select_events"], (run_id, ERASED_TYPES))
            return erased_rows(number, batch.runs[run_id], events.fetchall())

        self._execute(connection, written(batch, due, numbers, erased))
        return first["newest_number"] + len(batch.journal) - 1

    def _newest(self, connection: sqlite3.Connection, name: str) -> int:
        """The highest number given out; in a transaction, so that no other is given meanwhile."""
        return int(connection.execute(self._sql[name]).fetchone()[0])

    def _execute(self, connection: sqlite3.Connection, statements: Iterable[Written]) -> None:
        for name, found in statements:
            connection.executemany(self._sql[name], found)

    def probe(self) -> None:
        """See ``ports.Store.probe``: a real, durable write of one page that changes nothing.

        One page can fit where a batch does not, so there must be some room besides.
        """
        if self._reserve.bytes_free() + self._reserve.bytes_left < PROBE_BYTES:
            raise StoreUnavailable(f"less than {PROBE_BYTES} bytes are free at {self._path}")
        with self._alone(), self.transaction() as connection:
            connection.execute(self._sql["probe"])

    def has_room(self) -> bool:
        """See ``ports.Store.has_room``."""
        self._reserve.top_up()
        if self._reserve.is_spent:
            return False
        found = os.statvfs(self._path.parent)
        # Some file systems count no files.
        has_files = not found.f_files or found.f_favail >= FREE_FILES_MIN
        return has_files and self._reserve.bytes_free() >= RESERVE_BYTES

    def prune(self, run_ids: Iterable[RunId]) -> None:
        """See ``ports.Store.prune``."""
        ids = [(run_id,) for run_id in run_ids]
        with self._alone():
            with self.transaction() as connection:
                newest = self._newest(connection, "newest_number")
                # Before the newest row may go: its number must not be given to another event.
                kept = (newest, rows.checksum(self._epoch, newest))
                connection.execute(self._sql["keep_number"], kept)
                for name in ("delete_journal", "delete_messages", "delete_run"):
                    connection.executemany(self._sql[name], ids)
            self._note_commit()

    def shrink(self) -> bool:
        """See ``ports.Store.shrink``."""
        with self._alone():
            connection = self._require_writer()
            (free,) = connection.execute("PRAGMA freelist_count").fetchone()
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            if free <= max(SHRINK_PAGES, pages // FREE_SHARE):
                return False
            # As a script: `execute` would step once, which gives back one page.
            connection.executescript(f"PRAGMA incremental_vacuum({SHRINK_PAGES})")
            (left,) = connection.execute("PRAGMA freelist_count").fetchone()
            return int(left) < int(free)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else writes meanwhile; what SQLite refuses is ``StoreUnavailable``."""
        with self._writing:
            try:
                yield
            except sqlite3.Error as error:
                raise StoreUnavailable(f"the database refused a write: {error}") from error

    def _require_epoch(self, connection: sqlite3.Connection) -> None:
        (epoch,) = connection.execute(self._sql["read_epoch"]).fetchone()
        if epoch != self._epoch:
            raise Fenced(
                f"epoch {self._epoch} is over: a newer process took {self._path} over",
                hint="call again: the newer one answers",
            )

    def _require_writer(self) -> sqlite3.Connection:
        if self._writer is None:
            raise StoreUnavailable(f"{self._path} is not open for writing")
        return self._writer

    # -- reading ---------------------------------------------------------------------------

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees committed state only; at most ``READERS_MAX`` are open."""
        connection = self._borrow()
        try:
            yield connection
        except sqlite3.DatabaseError as error:
            if _is_corruption(error):
                raise self._corrupt(str(error)) from error
            raise StoreUnavailable(f"the database cannot be read: {error}") from error
        finally:
            self._readers.put(connection)
            if self._is_closed:
                self._close_readers()

    def _borrow(self) -> sqlite3.Connection:
        with suppress(queue.Empty):
            return self._readers.get_nowait()
        with self._lending:
            is_new = self._readers_made < READERS_MAX
            self._readers_made += is_new
        try:
            if not is_new:
                return self._readers.get(timeout=BUSY_TIMEOUT_MS / 1000)
            connection = self._connect()
            with _closed_by_failure(connection):
                connection.execute("PRAGMA query_only = ON")
                connection.create_function("mentions", 4, mentions, deterministic=True)
                connection.create_function("is_of_model", 2, is_of_model, deterministic=True)
                connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KB}")
        except queue.Empty as error:
            raise StoreUnavailable("all readers of the database are busy") from error
        except BaseException as error:  # no memory, say: it counts as made by nobody
            self._readers_made -= 1
            if isinstance(error, sqlite3.DatabaseError):
                raise self._opening_failed(error) from error
            raise
        return connection

    def _fetched(self, statement: str, parameters: Parameters) -> list[rows.Row]:
        with self._reader() as connection:
            try:
                return connection.execute(statement, parameters).fetchall()
            except sqlite3.OperationalError as error:
                if _NO_TEXT not in str(error):
                    raise
            with _lenient(connection):
                return connection.execute(statement, parameters).fetchall()

    def _narrowed(self, name: str, where: RunFilter, far: int) -> tuple[str, dict[str, object]]:
        return narrowed(self._sql[name], where, self._open_runs, far=far)

    def check(self) -> Sequence[str]:
        """See ``ports.Database.check``."""
        try:
            with self._reader() as connection:
                found = [*_problems(connection), *copies.foreign_code(connection)]
                if version_of(connection) >= CHECKSUMS_SINCE:
                    damaged = [
                        *self._damaged(connection, *WORK, *RECORDS, EVENTS),
                        *self._fold_open(self._ours)[1],
                        *self.set_aside(),
                    ]
                    # The first reason of several for a name, in the order in which they were found.
                    reasons = {each.name: each.reason for each in reversed(damaged)}
                    found += [f"{name}: {reasons[name]}" for name in reversed(reasons)]
        except CorruptState as error:
            return [error.message]
        return found

    def schedule_ids(self) -> frozenset[str]:
        """See ``ports.StoreFile.schedule_ids``."""
        return copies.schedule_ids(self._path)

    def settle(self, own: Collection[str], at_ms: int) -> Settled:
        """See ``ports.StoreFile.settle``."""
        try:
            return copies.settle(self._path, own, at_ms)
        except (sqlite3.Error, *rows.DAMAGE) as error:
            raise StoreUnavailable(f"{self._path} cannot be made ready: {error}") from error

    def backup(self, target: str) -> None:
        """See ``ports.StoreFile.backup``."""
        try:
            with closing(sqlite3.connect(target)) as copy, self._reader() as connection:
                connection.backup(copy)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the copy cannot be written: {error}") from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All of the block is written, or nothing of it.

    It has the write lock from its beginning: one that begins by reading cannot wait for it later,
    and fails at once when somebody else wrote in between.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        # After some errors, such as a full disk, SQLite has rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _closed_by_failure(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


@contextmanager
def _lenient(connection: sqlite3.Connection) -> Iterator[None]:
    """Texts that are no text any more are read with surrogates for its bytes, not refused.

    One of them would hide all rows that are read along with it.
    """
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    try:
        yield
    finally:
        connection.text_factory = str


def _is_corruption(error: sqlite3.DatabaseError) -> bool:
    """Whether the file is damaged, or none of SQLite's."""
    return _code_of(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def _code_of(error: sqlite3.Error) -> int | None:
    # Errors that the module raises by itself, of a closed connection say, have none.
    return getattr(error, "sqlite_errorcode", None)


def _problems(connection: sqlite3.Connection) -> list[str]:
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
    return [] if found == ["ok"] else found


def _identity(path: Path) -> tuple[int, int]:
    """Device and inode; zeros when there is no such file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (found.st_dev, found.st_ino)
