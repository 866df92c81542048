"""The PostgreSQL store: each commit is one packet, whose first statement asks for the epoch.

What is written is that of the SQLite store, row by row (``rows``, ``batch_rows``), and so is what
is read (``row_store``). Durable is what the server synced before it answered.
"""

import logging
import queue
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import psycopg

from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId
from subagents.errors import CorruptState, Fenced, StoreUnavailable
from subagents.ports import Batch, RunFilter, SetAside
from subagents.store import rows
from subagents.store.batch_rows import ERASED_TYPES, Written, erased_rows, updated, written
from subagents.store.postgres.database_url import parse_url
from subagents.store.postgres.home_lock import HomeLock
from subagents.store.postgres.link import Link, Lost
from subagents.store.postgres.postgres_migrations import migrate, require_known, scripts, statements
from subagents.store.postgres.postgres_query import SIEVED, narrowed
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
    shown,
)
from subagents.store.run_filters import is_of_model, mentions
from subagents.text import counted
from subagents.version import __version__

log = logging.getLogger(__name__)

T = TypeVar("T")

READERS_MAX: Final = 4
"""Connections that read; one more writes."""
READER_WAIT_S: Final = 5.0
SIEVE_ROWS: Final = 200
"""Looked at in one step by what only Python can ask."""
TAKE_OVER_TRIES: Final = 5
HOLDER_WAIT: Final = "1s"
"""So long whoever takes over waits for a commit of the one before; then it is ended."""
IDLE_MAX: Final = "2s"
SERVER_MIN: Final = 130_000
"""The first that ends an idle transaction, has stored procedures in pipelines and is maintained."""

FENCE_BROKEN: Final = "SUB01"
"""The SQLSTATE that the function ``fence`` raises."""

_NAMED: Final = re.compile(r"(?<!:):(\w+)")


class PostgresStore(RowStore):
    """One schema of a database, held by one process of one home under one epoch.

    Args:
        url: See ``database_url``.
        lock: The file of the home's lock.
        belongings: Directories with an entry for each run.
    """

    def __init__(self, url: str, lock: Path, *, belongings: Sequence[Path] = ()) -> None:
        self._url = parse_url(url)
        super().__init__(statements(self._url.schema))
        self._lock = HomeLock(lock)
        self._belongings = belongings
        self._epoch = 0
        self._writer: Link | None = None
        self._is_open = False
        self._made = 0
        """The number of the newest commit."""
        self._unsure: int | None = None
        """The number of one that may have been made, or may still be."""
        self._newest: dict[str, int] = {}
        """Numbers of rows, as far as they are known."""
        self._readers: queue.SimpleQueue[Link] = queue.SimpleQueue()
        self._readers_made = 0
        self._lending = threading.Lock()

    @property
    def _may_write(self) -> bool:
        return self._is_open

    # -- what it is ------------------------------------------------------------------------

    @property
    def place(self) -> str:
        """See ``ports.Database.place``."""
        return self._url.shown

    @property
    def schema(self) -> int:
        """See ``ports.Database.schema``."""
        return scripts()[-1][0]

    @property
    def ways_out(self) -> str:
        """See ``ports.Database.ways_out``."""
        return f"restore the schema {self._url.schema} from a dump: pg_restore"

    def size_bytes(self) -> int:
        """See ``ports.Database.size_bytes``: of our schema, without the log of the server."""
        ((size,),) = self._all("database_bytes")
        return int(str(size))

    # -- life ------------------------------------------------------------------------------

    def open(self, owner: str) -> int:
        """See ``ports.Store.open``; also applies missing migrations."""
        self._lock.take()
        try:
            self._writer = link = self._connected()
            self._require_usable(link)
            migrate(link, self._url.schema)
            epoch, pruned = self._require_ours(link)
            self._find_damaged(link)
            self._take_over(link, owner, epoch + 1, rows.checksum(epoch + 1, pruned))
        except psycopg.Error as error:
            self.close()
            raise StoreUnavailable(f"cannot open {self._url.shown}: {_words(error)}") from error
        except BaseException:
            self.close()
            raise
        self._epoch = epoch + 1
        self._is_open = True
        return self._epoch

    def renew(self) -> float | None:
        """See ``ports.Store.renew``: of the home's lock, as of a file's."""
        return None

    def open_readonly(self) -> None:
        """For looking at a database that a daemon owns, or checking one: no lock, no writes.

        Raises:
            StoreUnavailable: There is none, or it cannot be reached.
            CorruptState: It is of a newer version.
        """
        with self._reader() as link:
            if not self._require_usable(link):
                raise StoreUnavailable(f"there is no schema of ours at {self._url.shown}")
            ((version,),) = link.ask(self._sql["select_migrations"])
            require_known(self._url.schema, int(str(version)))

    def _connected(self) -> Link:
        try:
            return Link(self._url.conninfo)
        except psycopg.Error as error:
            raise StoreUnavailable(
                f"{self._url.shown} cannot be reached: {_words(error)}"
            ) from error

    def _require_usable(self, link: Link) -> bool:
        """Whether there is a schema of ours; refuses a server that cannot have one."""
        ((is_there, encoding, version, is_durable),) = link.ask(self._sql["read_schema"])
        if encoding != "UTF8":
            raise CorruptState(
                f"{self._url.shown} has the encoding {encoding}; nothing was changed",
                hint="make another database: createdb --encoding=UTF8 --template=template0 NAME",
            )
        if int(str(version)) < SERVER_MIN:
            major = int(str(version)) // 10_000
            raise CorruptState(
                f"{self._url.shown} is PostgreSQL {major}; nothing was changed",
                hint=f"use PostgreSQL {SERVER_MIN // 10_000} or later",
            )
        if not is_durable:
            log.warning("%s has fsync off: a crash of its machine loses runs", self._url.shown)
        return bool(is_there)

    def _require_ours(self, link: Link) -> tuple[int, int]:
        """Epoch and pruned number of a database that this home may use."""
        ((epoch, pruned, checksum, _, version, home),) = link.ask(self._sql["read_node"])
        try:
            rows.verify(checksum, epoch, pruned)
        except rows.DAMAGE as error:
            raise CorruptState(f"{self._url.shown} is damaged: its epoch: {error}") from error
        self._left_by = None if version is None else str(version)
        ours = self._lock.home()
        if home not in {"", ours}:
            raise CorruptState(
                f"{self._url.shown} belongs to another home; nothing was changed",
                hint="name another schema (?schema=NAME), or, if that home is no more, let this"
                f" one have it: echo {home} > {self._lock.path}",
            )
        if not home:
            for directory in self._belongings:
                if number := _entries(directory):
                    raise CorruptState(
                        f"{self._url.shown} is empty, but {directory} has files of"
                        f" {counted(number, 'run')}",
                        hint="name the database that they belong to, or start with another"
                        " SUBAGENTS_HOME",
                    )
        return int(str(epoch)), int(str(pruned))

    def _take_over(self, link: Link, owner: str, epoch: int, checksum: int) -> None:
        sql, taken = self._sql, (owner, epoch, checksum, __version__, self._lock.home())
        for _ in range(TAKE_OVER_TRIES):
            try:
                with link.connection.pipeline(), link.connection.transaction():
                    link.connection.execute(sql["set_waits"], (HOLDER_WAIT, IDLE_MAX))
                    cursor = link.connection.execute(sql["take_over"], taken)
            except psycopg.errors.LockNotAvailable:
                log.warning("a commit of the one before stands still, and is ended")
                link.ask(sql["end_holders"])
                continue
            found = cursor.fetchone()
            if found is None:
                raise StoreUnavailable(f"somebody else is taking {self._url.shown} over")
            self._made, self._unsure = int(str(found[0])), None
            return
        raise StoreUnavailable(f"{self._url.shown} is locked by somebody who cannot be ended")

    def _find_damaged(self, link: Link) -> None:
        """Set aside what is damaged, as far as there is time for it at a start."""
        link.ask(self._sql["take_back"])
        found = [*self._damaged(link, *WORK)]
        for each in found:
            if not link.ask(self._sql["run_number"], (each.run_id,)):
                raise CorruptState(
                    f"{self._url.shown} is damaged: work of a run that cannot be told:"
                    f" {each.reason}"
                )
        if self.size_bytes() <= CHECK_BYTES_MAX:
            found += [*self._damaged(link, *RECORDS), *self._strays(link)]
        for each in found:
            link.ask(self._sql["put_aside"], (each.name, each.run_id, each.reason))
            log.error("%s is set aside: %s", each.name, each.reason)

    def _strays(self, link: Link) -> Iterator[SetAside]:
        for (run_id,) in link.ask(self._sql["select_strays"]):
            yield SetAside(name=str(run_id), run_id=RunId(str(run_id)), reason=STRAYS)

    def _damaged(self, link: Link, *kinds: Kinds) -> Iterator[SetAside]:
        for name, kind in kinds:
            with link.connection.transaction(), link.stream() as cursor:
                cursor.execute(self._sql[name], binary=True)
                for row in cursor:
                    try:
                        kind.read(row)
                    except rows.DAMAGE as error:
                        yield from aside(kind, row, error)

    def _put_aside(self, found: Iterable[SetAside]) -> bool:
        is_new = False
        if not self._may_write:
            return is_new
        try:
            for each in found:
                if self._all("put_aside", (each.name, each.run_id, each.reason)):
                    log.error("%s is set aside: %s", shown(each.name), each.reason)
                    is_new = True
        except StoreUnavailable as error:
            log.warning("nothing can be set aside now: %s", error)
        return is_new

    def checkpoint(self) -> None:
        """See ``ports.Store.checkpoint``."""
        behind = self._open.behind()
        if not behind:
            return
        try:
            with self._writing:
                self._write(updated(behind))
        except (psycopg.Error, StoreUnavailable, Fenced) as error:
            log.warning("%s runs are left to be folded at the next start: %s", len(behind), error)

    def close(self) -> None:
        """Release everything; safe to repeat."""
        self._open.forget()
        self._newest.clear()
        self._is_open = False
        while not self._readers.empty():
            self._readers.get().close()
            self._readers_made -= 1
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._lock.release()

    # -- writing ---------------------------------------------------------------------------

    def commit(self, batch: Batch) -> None:
        """See ``ports.Store.commit``."""
        try:
            self._require_open()
            with self._writing:
                self._settle()
            if not self._open.is_complete:
                self._load()  # what runs have to do is added to what they had to do
            with self._writing:
                self._commits += 1
                self._write(self._written(batch))
                self._open.committed(batch)
        except BaseException as error:
            self._open.forget()
            self._newest.clear()
            if not isinstance(error, psycopg.Error):
                raise
            raise StoreUnavailable(f"the database refused a write: {_words(error)}") from error

    def _written(self, batch: Batch) -> Iterator[Written]:
        due = [now for now, is_due in self._open.after(batch) if is_due]

        def erased(run_id: RunId) -> Iterator[Written]:
            # Nobody else writes: what is read before the packet is what it overwrites.
            for (number,) in self._all("run_number", (run_id,)):
                told = self._all("select_events", (run_id, ERASED_TYPES))
                yield from erased_rows(int(str(number)), batch.runs[run_id], told)

        return written(batch, due, self._numbers, erased)

    def _numbers(self, newest: str) -> Iterator[int]:
        """Of the next rows, which nobody else gives."""
        if newest not in self._newest:
            self._newest[newest] = int(str(self._all(newest)[0][0]))
        while True:
            self._newest[newest] += 1
            yield self._newest[newest]

    def _write(self, found: Iterable[Written]) -> None:
        """One durable transaction, in this epoch.

        Raises:
            psycopg.Error, StoreUnavailable: Nothing was written, or nobody can say yet.
            Fenced: Nothing was written.
        """
        packet = [(self._sql[name], some) for name, each in found if (some := [*each])]
        for is_last in (False, True):
            self._settle()
            number = self._made + 1
            try:
                self._writing_link().send([(self._sql["fence"], [(self._epoch, number)]), *packet])
            except Lost as error:
                self._unsure = number
                if self._settle():
                    return
                if is_last:
                    raise StoreUnavailable(f"the database went away: {error}") from error
            except psycopg.Error as error:
                if error.sqlstate != FENCE_BROKEN:
                    raise
                self._made = self._newest_commit()
                raise StoreUnavailable("another commit than was known is the newest") from error
            else:
                self._made = number
                return

    def _settle(self) -> bool:
        """Find out what became of a commit without an answer; whether it was made.

        Where it was not, it never will be: what is on its way to the server has a number that is
        over then.
        """
        if self._unsure is None:
            return False
        number = self._unsure
        try:
            burned = self._writing_link().ask(self._sql["burn_commit"], (self._epoch, number))
            self._made = number + 1 if burned else self._newest_commit()
        except psycopg.Error as error:
            raise StoreUnavailable(
                f"the database went away during a commit, and cannot be asked: {_words(error)}"
            ) from error
        self._unsure = None
        return not burned

    def _newest_commit(self) -> int:
        ((epoch, _, _, commits, _, _),) = self._writing_link().ask(self._sql["read_node"])
        if epoch != self._epoch:
            raise Fenced(
                f"epoch {self._epoch} is over: a newer process took {self._url.shown} over",
                hint="ask again: the newer one answers",
            )
        return int(str(commits))

    def _writing_link(self) -> Link:
        self._require_open()
        if self._writer is None or self._writer.is_lost:
            self._writer = self._connected()
        return self._writer

    def _require_open(self) -> None:
        if not self._is_open:
            raise StoreUnavailable(f"{self._url.shown} is not open for writing")

    def probe(self) -> None:
        """See ``ports.Store.probe``: a real, durable commit of nothing."""
        try:
            with self._writing:
                self._write(())
        except psycopg.Error as error:
            raise StoreUnavailable(f"the database cannot be written: {_words(error)}") from error

    def has_room(self) -> bool:
        """See ``ports.Store.has_room``: how full the server's disk is, the server does not tell."""
        return True

    def prune(self, run_ids: Iterable[RunId]) -> None:
        """See ``ports.Store.prune``."""
        ids = [(run_id,) for run_id in run_ids]
        try:
            with self._writing:
                newest = self.newest_number()
                kept = (newest, rows.checksum(self._epoch, newest))
                gone = ("delete_journal", "delete_messages", "delete_run")
                self._write([("keep_number", [kept]), *((name, ids) for name in gone)])
        except psycopg.Error as error:
            raise StoreUnavailable(f"the database refused a write: {_words(error)}") from error

    def shrink(self) -> bool:
        """See ``ports.Store.shrink``: the server's autovacuum does it."""
        return False

    # -- reading ---------------------------------------------------------------------------

    @contextmanager
    def _reader(self) -> Iterator[Link]:
        """A connection that sees committed state only; at most ``READERS_MAX`` are open."""
        link = self._borrow()
        try:
            yield link
        except psycopg.Error as error:
            raise StoreUnavailable(f"the database cannot be read: {_words(error)}") from error
        finally:
            if link.is_lost:
                self._forget_reader()
            else:
                self._readers.put(link)

    def _borrow(self) -> Link:
        with suppress(queue.Empty):
            return self._readers.get_nowait()
        with self._lending:
            is_new = self._readers_made < READERS_MAX
            self._readers_made += is_new
        try:
            return self._connected() if is_new else self._readers.get(timeout=READER_WAIT_S)
        except queue.Empty as error:
            raise StoreUnavailable("all connections that read are busy") from error
        except BaseException:
            self._forget_reader()
            raise

    def _forget_reader(self) -> None:
        with self._lending:
            self._readers_made -= 1

    def _fetched(self, statement: str, parameters: Parameters) -> list[rows.Row]:
        if isinstance(parameters, Mapping):
            statement, parameters = numbered(statement, parameters)
        for _ in range(READERS_MAX):
            with self._reader() as link:
                try:
                    return link.ask(statement, parameters)
                except psycopg.OperationalError:
                    # After a restart of the server, say. What only reads is asked again.
                    if not link.is_lost:
                        raise
        with self._reader() as link:
            return link.ask(statement, parameters)

    def _narrowed(self, name: str, where: RunFilter, far: int) -> tuple[str, Mapping[str, object]]:
        return narrowed(self._sql, name, where, self._open_runs, far=far)

    def runs(self, where: RunFilter) -> Sequence[Run]:
        """See ``ports.Store.runs``."""
        if not _is_sieved(where):
            return super().runs(where)
        found = list(self._sieved(where, where.offset + where.limit))[where.offset :]
        return self._runs(self._sql["select_numbers"], (found,))

    def count(self, where: RunFilter, *, most: int) -> int:
        """See ``ports.Store.count``."""
        if not _is_sieved(where):
            return super().count(where, most=most)
        return sum(1 for _ in self._sieved(where, most))

    def _sieved(self, where: RunFilter, most: int) -> Iterator[int]:
        """Numbers of runs that fit in what only Python can ask, too, in the order of the list."""
        passed, left = None, most
        while left > 0:
            statement, parameters = narrowed(
                *(self._sql, "sieve_runs", where, self._open_runs), far=SIEVE_ROWS, passed=passed
            )
            found = self._fetched(statement, parameters)
            for number, at_ms, run_id, label, origin in found:
                passed = (int(str(at_ms)), int(str(number)))
                is_wanted = where.text is None or mentions(run_id, label, origin, where.text)
                if is_wanted and (where.model is None or is_of_model(origin, where.model)):
                    yield passed[1]
                    left -= 1
                    if not left:
                        return
            if len(found) < SIEVE_ROWS:
                return

    def check(self) -> Sequence[str]:
        """See ``ports.Database.check``."""
        with self._reader() as link:
            damaged = [*self._damaged(link, *WORK, *RECORDS, EVENTS), *self._strays(link)]
        found = [*damaged, *self._fold_open()[1], *self.set_aside()]
        reasons = {each.name: each.reason for each in reversed(found)}
        return [f"{name}: {reasons[name]}" for name in reversed(reasons)]


def _is_sieved(where: RunFilter) -> bool:
    return any(getattr(where, name) is not None for name in SIEVED)


def numbered(statement: str, parameters: Mapping[str, object]) -> tuple[str, Sequence[object]]:
    """The statement with numbers in the place of names, and the values that it has."""
    places: dict[str, int] = {}

    def place(found: re.Match[str]) -> str:
        return f"${places.setdefault(found[1], len(places) + 1)}"

    return _NAMED.sub(place, statement), [parameters[name] for name in places]


def _words(error: Exception) -> str:
    return " ".join(str(error).split())


def _entries(directory: Path) -> int:
    try:
        return sum(1 for _ in directory.iterdir())
    except OSError:
        return 0
