"""The SQLite store: WAL, ``synchronous=FULL``, one writer, a few readers.

With group commit FULL costs one fsync of latency and nothing in throughput (measured, see
bench/README.md), so an acknowledged event survives a power cut and not only a crash.
"""

import contextlib
import fcntl
import os
import queue
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Final

import msgspec

from subagents.domain.lifecycle.erasure import BEARERS, erased_event
from subagents.domain.run.effects import decode_effect, encode_effect
from subagents.domain.run.events import decode_event, encode_event
from subagents.domain.run.run import Run
from subagents.domain.run.spec import IDEMPOTENCY_WINDOW_MS
from subagents.domain.run.values import MessageId, RunId, SessionKey
from subagents.errors import AlreadyRunning, CorruptState, StoreUnavailable
from subagents.ports import (
    Batch,
    FeedEntry,
    InboxRow,
    JournalEntry,
    Lease,
    OutboxEntry,
    RunFilter,
)
from subagents.store.sqlite import rows
from subagents.store.sqlite.migrate import migrate
from subagents.store.sqlite.statements import statements

READERS_MAX: Final = 4
"""More would only wait for the same two cores."""

BUSY_TIMEOUT_MS: Final = 5_000
CHECK_BYTES_MAX: Final = 64 * 1024 * 1024
"""Up to this size the whole file is checked at every start; a larger one by ``db check``."""

RESERVE_BYTES: Final = 8 * 1024 * 1024
"""New spawns are refused below this, so that the runs there are can still end on record."""

KEPT_FREE_BYTES: Final = 16 * 1024 * 1024
"""Held by a file that goes when a commit finds the disk full; for a daemon's store (``wiring``)."""

KEPT_FREE_SHARE: Final = 32
"""No more than this part of the disk, which is one in so many."""

AGAIN_SHARE: Final = 4
"""Kept free again once so many times as much is."""

FREE_FILES_MIN: Final = 256
"""New spawns are refused when the file system has room for fewer files."""

PROBE_BYTES: Final = 1024 * 1024
"""After a failed commit nothing is tried again below this."""

WAL_PAGES_MAX: Final = 2_000
"""Checkpoint after about 8 MB of WAL."""


class SqliteStore:
    """One database file, held by one process (``<file>.lock``) under one epoch."""

    def __init__(self, path: Path, *, synchronous: str = "FULL", kept_free_bytes: int = 0) -> None:
        self._path = path
        self._kept_free_bytes = kept_free_bytes
        self._reserve = path.with_name(f"{path.name}.reserve")
        self._synchronous = synchronous
        self._sql = statements()
        self._writer: sqlite3.Connection | None = None
        self._readers: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        self._readers_made = 0
        self._lock: IO[bytes] | None = None
        self._writing = threading.Lock()
        self._lending = threading.Lock()
        self._file = (0, 0)
        self._epoch = 0

    # -- life ------------------------------------------------------------------------------

    def open(self, owner: str) -> int:
        """See ``ports.Store.open``; also applies missing migrations."""
        self._take_lock()
        self._keep_free()
        try:
            self._writer = self._connect()
            self._verify(self._writer)
            migrate(self._writer, self._path)
            with _transaction(self._writer):
                self._writer.execute(self._sql["take_over"], (owner,))
                (epoch,) = self._writer.execute(self._sql["read_epoch"]).fetchone()
        except sqlite3.DatabaseError as error:
            self.close()
            raise self._opening_failed(error) from error
        except CorruptState:
            self.close()
            raise
        self._epoch = epoch
        self._file = _identity(self._path)
        return self._epoch

    def open_readonly(self) -> None:
        """For looking at a database that a daemon owns, or checking one: no lock, no writes."""
        if not self._path.is_file():
            raise StoreUnavailable(f"there is no database at {self._path}")

    def _take_lock(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A lock of the kernel's goes with its process, however that ends. It is on a file of its
        # own, since closing a descriptor of the database's would drop SQLite's locks on it.
        lock = self._path.with_name(f"{self._path.name}.lock").open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise AlreadyRunning(
                f"another process is using {self._path}",
                hint="talk to that daemon, or stop it first: subagents down",
            ) from error
        self._lock = lock

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            isolation_level=None,
            check_same_thread=False,  # one commit at a time; readers are handed out one by one
            timeout=BUSY_TIMEOUT_MS / 1000,
            cached_statements=256,
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES_MAX}")
        connection.execute("PRAGMA cache_size = -16384")
        # What is deleted or overwritten is zeroed in the file. Most systems build SQLite so.
        connection.execute("PRAGMA secure_delete = ON")
        os.chmod(self._path, 0o600)  # noqa: PTH101 - tasks and results are nobody else's business
        return connection

    def _verify(self, connection: sqlite3.Connection) -> None:
        if self._path.stat().st_size > CHECK_BYTES_MAX:
            return
        problems = [row[0] for row in connection.execute("PRAGMA quick_check(5)")]
        if problems != ["ok"]:
            raise self._corrupt("; ".join(problems))

    def _corrupt(self, detail: str) -> CorruptState:
        return CorruptState(
            f"{self._path} is damaged: {detail}",
            hint=(
                f"nothing was changed; restore a copy made by `subagents db backup` to {self._path}"
                ", or move the file away to start empty"
            ),
        )

    def _opening_failed(self, error: sqlite3.DatabaseError) -> CorruptState | StoreUnavailable:
        if _is_corruption(error):
            return self._corrupt(str(error))
        return StoreUnavailable(f"cannot open {self._path}: {error}")

    def close(self) -> None:
        """Release everything; safe to repeat."""
        while not self._readers.empty():
            self._readers.get().close()
            self._readers_made -= 1
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # -- writing ---------------------------------------------------------------------------

    def commit(self, batch: Batch) -> None:
        """See ``ports.Store.commit``."""
        try:
            with self._writing, _transaction(self._require_writer()) as connection:
                if _identity(self._path) != self._file:
                    raise StoreUnavailable(
                        f"{self._path} was moved or deleted: nothing written now would be kept",
                        hint="put it back, or stop the daemon: subagents down",
                    )
                # In the transaction, whose write lock keeps anybody from taking over meanwhile.
                self._require_epoch(connection)
                self._write(connection, batch)
        except sqlite3.Error as error:
            self._keep_free()
            raise StoreUnavailable(
                f"the database refused a write: {error}",
                hint="free disk space; nothing acknowledged was lost",
            ) from error

    def _write(self, connection: sqlite3.Connection, batch: Batch) -> None:
        sql = self._sql
        many = connection.executemany
        # Runs before their events, which refer to them by number; messages before what became of
        # them, since one commit may write, move and consume the same one.
        many(
            sql["insert_run"],
            (rows.inserted(run) for run in batch.runs.values() if run.id in batch.created),
        )
        many(
            sql["update_run"],
            (rows.updated(run) for run in batch.runs.values() if run.id not in batch.created),
        )
        many(
            sql["insert_event"],
            map(rows.event_inserted, self._numbers(connection), batch.journal),
        )
        self._erase(connection, batch)
        many(
            sql["insert_effect"],
            ((e.run_id, e.seq, e.index, encode_effect(e.effect)) for e in batch.outbox),
        )
        many(sql["delete_effect"], batch.performed)
        many(sql["insert_message"], map(rows.message_inserted, batch.messages))
        many(sql["move_messages"], ((target, source) for source, target in batch.moved))
        many(sql["readdress_message"], ((target, each) for each, target in batch.readdressed))
        many(
            sql["consume_message"],
            ((at_ms, reader, message_id) for message_id, at_ms, reader in batch.consumed),
        )
        many(sql["reopen_message"], ((target, each) for each, target in batch.reopened.items()))
        many(
            sql["outdate_alerts"],
            ((at_ms, reader, run_id) for run_id, at_ms, reader in batch.outdated),
        )
        many(
            sql["put_lease"],
            (
                (run_id, held.attempt, held.owner, held.epoch, held.until_ms, held.cursor)
                for run_id, held in batch.leases.items()
                if held is not None
            ),
        )
        many(
            sql["release_lease"],
            ((run_id,) for run_id, held in batch.leases.items() if held is None),
        )
        many(sql["put_idempotency"], batch.idempotency)
        if batch.idempotency:
            newest_ms = max(at_ms for *_, at_ms in batch.idempotency)
            connection.execute(sql["forget_idempotency"], (newest_ms - IDEMPOTENCY_WINDOW_MS,))

    def _erase(self, connection: sqlite3.Connection, batch: Batch) -> None:
        """Overwrite what the workers of these runs were told; see ``domain.lifecycle.erasure``."""
        types = msgspec.json.encode([bearer.__name__ for bearer in BEARERS]).decode()
        for run_id in batch.erased:
            connection.execute(
                self._sql["update_origin"], (rows.origin_of(batch.runs[run_id]), run_id)
            )
            found = connection.execute(self._sql["select_events"], (run_id, types)).fetchall()
            connection.executemany(
                self._sql["update_event"],
                (
                    (encode_event(erased_event(decode_event(data))), number)
                    for number, data in found
                ),
            )

    def _numbers(self, connection: sqlite3.Connection) -> Iterator[int]:
        """Of the next events; read in the transaction, so that nothing can go between."""
        (newest,) = connection.execute(self._sql["newest_number"]).fetchone()
        return count(newest + 1)

    def probe(self) -> None:
        """See ``ports.Store.probe``: a real, durable write of one page that changes nothing.

        One page can fit where a batch does not, so there must be some room besides.
        """
        self._keep_free()
        if self._free_bytes() < PROBE_BYTES:
            raise StoreUnavailable(f"less than {PROBE_BYTES} bytes are free at {self._path}")
        try:
            with self._writing, _transaction(self._require_writer()) as connection:
                connection.execute(self._sql["probe"])
                if _identity(self._path) != self._file:
                    raise StoreUnavailable(f"{self._path} was moved or deleted")
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the database cannot be written: {error}") from error

    def has_room(self) -> bool:
        """See ``ports.Store.has_room``."""
        self._keep_free()
        if self._kept_free_bytes and not self._reserve.exists():
            return False
        found = os.statvfs(self._path.parent)
        # Some file systems count no files.
        has_files = not found.f_files or found.f_favail >= FREE_FILES_MIN
        return has_files and self._free_bytes() >= RESERVE_BYTES

    def _free_bytes(self) -> int:
        found = os.statvfs(self._path.parent)
        return found.f_bavail * found.f_frsize

    def _keep_free(self) -> None:
        """Hold some of the disk back while it has room, and give that up when it has none.

        So what ends runs can still be committed on a disk that somebody filled.
        """
        if not self._kept_free_bytes:
            return
        with contextlib.suppress(OSError):
            found = os.statvfs(self._path.parent)
            disk, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
            kept = min(self._kept_free_bytes, disk // KEPT_FREE_SHARE)
            if free < min(PROBE_BYTES, kept):
                self._reserve.unlink(missing_ok=True)
            elif free >= AGAIN_SHARE * kept and not self._reserve.exists():
                descriptor = os.open(self._reserve, os.O_CREAT | os.O_WRONLY, 0o600)
                try:
                    os.posix_fallocate(descriptor, 0, kept)
                finally:
                    os.close(descriptor)

    def prune(self, run_ids: Iterable[RunId]) -> None:
        """See ``ports.Store.prune``."""
        ids = [(run_id,) for run_id in run_ids]
        try:
            with self._writing, _transaction(self._require_writer()) as connection:
                self._require_epoch(connection)
                connection.execute(self._sql["keep_number"])
                for name in ("delete_journal", "delete_messages", "delete_run"):
                    connection.executemany(self._sql[name], ids)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the database refused a write: {error}") from error

    def _require_epoch(self, connection: sqlite3.Connection) -> None:
        (epoch,) = connection.execute(self._sql["read_epoch"]).fetchone()
        if epoch != self._epoch:
            raise StoreUnavailable(
                f"epoch {self._epoch} is over: a newer process took {self._path} over"
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
        except (sqlite3.DatabaseError, msgspec.DecodeError) as error:
            if isinstance(error, msgspec.DecodeError) or _is_corruption(error):
                raise self._corrupt(str(error)) from error
            raise StoreUnavailable(f"the database cannot be read: {error}") from error
        finally:
            self._readers.put(connection)

    def _borrow(self) -> sqlite3.Connection:
        try:
            return self._readers.get_nowait()
        except queue.Empty:
            pass
        with self._lending:
            is_new = self._readers_made < READERS_MAX
            self._readers_made += is_new
        try:
            if not is_new:
                return self._readers.get(timeout=BUSY_TIMEOUT_MS / 1000)
            connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
        except queue.Empty as error:
            raise StoreUnavailable("all readers of the database are busy") from error
        except sqlite3.DatabaseError as error:
            self._readers_made -= 1
            raise self._opening_failed(error) from error
        return connection

    def _all(self, name: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        with self._reader() as connection:
            return connection.execute(self._sql[name], parameters).fetchall()

    def _runs(self, name: str, parameters: Sequence[object] = ()) -> list[Run]:
        with self._reader() as connection:
            found = connection.execute(self._sql[name], parameters)
            return [rows.run_from(origin, state) for origin, state in found]

    def load_open(self) -> Sequence[Run]:
        """See ``ports.Store.load_open``."""
        return self._runs("load_open")

    def load_outbox(self) -> Sequence[OutboxEntry]:
        """See ``ports.Store.load_outbox``."""
        with self._reader() as connection:
            return [
                OutboxEntry(
                    run_id=RunId(run_id), seq=seq, index=index, effect=decode_effect(effect)
                )
                for run_id, seq, index, effect in connection.execute(self._sql["load_outbox"])
            ]

    def load_leases(self) -> Sequence[Lease]:
        """See ``ports.Store.load_leases``."""
        with self._reader() as connection:
            return [
                Lease(
                    run_id=RunId(run_id),
                    attempt=attempt,
                    owner=owner,
                    epoch=epoch,
                    until_ms=until_ms,
                    cursor=cursor,
                )
                for run_id, attempt, owner, epoch, until_ms, cursor in connection.execute(
                    self._sql["load_leases"]
                )
            ]

    def load_keys(self, run_ids: Iterable[RunId] | None = None) -> Mapping[RunId, set[str]]:
        """See ``ports.Store.load_keys``; None = of every open run, in one pass."""
        keys: dict[RunId, set[str]] = {}
        with self._reader() as connection:
            if run_ids is None:
                for run_id, key in connection.execute(self._sql["load_open_keys"]):
                    keys.setdefault(RunId(run_id), set()).add(key)
                return keys
            for run_id in run_ids:
                found = connection.execute(self._sql["load_keys"], (run_id,))
                keys[run_id] = {key for (key,) in found}
        return keys

    def load_idempotency(self, since_ms: int) -> Sequence[tuple[SessionKey, str, RunId, int]]:
        """See ``ports.Store.load_idempotency``."""
        with self._reader() as connection:
            return [
                (SessionKey(requester), key, RunId(run_id), at_ms)
                for requester, key, run_id, at_ms in connection.execute(
                    self._sql["load_idempotency"], (since_ms,)
                )
            ]

    def run(self, run_id: RunId) -> Run | None:
        """See ``ports.Store.run``."""
        found = self._runs("select_run", (run_id,))
        return found[0] if found else None

    def runs(self, where: RunFilter) -> Sequence[Run]:
        """See ``ports.Store.runs``."""
        return self._runs(rows.selection(where), (*rows.filters(where), where.limit, where.offset))

    def count(self, where: RunFilter) -> int:
        """How many runs the filter matches, without its window."""
        with self._reader() as connection:
            row = connection.execute(self._sql["count_runs"], rows.filters(where)).fetchone()
        return int(row[0])

    def find(self, prefix: str) -> Sequence[RunId]:
        """See ``ports.Store.find``."""
        found = self._all("find_runs", (prefix, f"{prefix}\U0010ffff"))
        return [RunId(str(run_id)) for (run_id,) in found]

    def journal(
        self, run_id: RunId, *, after_seq: int = 0, limit: int = 500
    ) -> Sequence[JournalEntry]:
        """See ``ports.Store.journal``."""
        with self._reader() as connection:
            return [
                JournalEntry(run_id=run_id, seq=seq, at_ms=at_ms, key=key, event=decode_event(data))
                for seq, at_ms, key, data in connection.execute(
                    self._sql["select_journal"], (run_id, after_seq, limit)
                )
            ]

    def feed(self, *, after: int, limit: int = 500) -> Sequence[FeedEntry]:
        """See ``ports.Store.feed``."""
        with self._reader() as connection:
            found = connection.execute(self._sql["select_feed"], (after, limit))
            return [rows.feed_entry_from(row) for row in found]

    def newest_number(self) -> int:
        """See ``ports.Store.newest_number``."""
        with self._reader() as connection:
            return int(connection.execute(self._sql["newest_number"]).fetchone()[0])

    def inbox(
        self, session: SessionKey | None, *, unconsumed: bool, limit: int = 1000
    ) -> Sequence[InboxRow]:
        """See ``ports.Store.inbox``; consumed ones too: newest ``limit``, oldest first."""
        if not unconsumed:
            found = self._all("select_inbox", (session, limit))[::-1]
        elif session is None:
            found = self._all("select_all_unread", (limit,))
        else:
            found = self._all("select_unread", (session, limit))
        return [rows.inbox_row_from(row) for row in found]

    def unread(self, session: SessionKey, limit: int) -> Sequence[MessageId]:
        """See ``ports.Store.unread``."""
        found = self._all("select_unread_ids", (session, limit))
        return [MessageId(str(message_id)) for (message_id,) in found]

    def unread_total(self) -> int:
        """See ``ports.Store.unread_total``."""
        with self._reader() as connection:
            return int(connection.execute(self._sql["count_unread"]).fetchone()[0])

    def message(self, message_id: str) -> InboxRow | None:
        """See ``ports.Store.message``."""
        found = self._all("select_message", (message_id,))
        return rows.inbox_row_from(found[0]) if found else None

    def archivable(self, ended_before_ms: int, limit: int) -> Sequence[RunId]:
        """See ``ports.Store.archivable``."""
        found = self._all("select_archivable", (ended_before_ms, limit))
        return [RunId(str(run_id)) for (run_id,) in found]

    def prunable(self, ended_before_ms: int, limit: int) -> Sequence[RunId]:
        """See ``ports.Store.prunable``."""
        found = self._all("select_prunable", (ended_before_ms, limit))
        return [RunId(str(run_id)) for (run_id,) in found]

    def check(self) -> Sequence[str]:
        """See ``ports.Store.check``."""
        try:
            with self._reader() as connection:
                found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
        except CorruptState as error:
            return [error.message]
        return [] if found == ["ok"] else found

    def backup(self, target: str) -> None:
        """See ``ports.Store.backup``."""
        copy = sqlite3.connect(target)
        try:
            with self._reader() as connection:
                connection.backup(copy)
        finally:
            copy.close()


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    # A transaction that begins by reading cannot wait for the write lock later: it fails at once
    # when somebody else wrote in between.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        # After some errors, such as a full disk, SQLite has rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _identity(path: Path) -> tuple[int, int]:
    """Device and inode; zeros when there is no such file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def _is_corruption(error: sqlite3.DatabaseError) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
