"""The PostgreSQL store: each commit is one packet, whose first statement asks for our node's row.

What is written is that of the SQLite store, row by row (``rows``, ``batch_rows``), and so is what
is read (``row_store``). Durable is what the server synced before it answered. Alone a daemon has
all partitions; as a ``Member`` it has those that it claimed (docs/decisions/0078).
"""

import logging
import queue
import re
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
import psycopg

from subagents.domain.cluster.partitioning import PARTITIONS, partition_of, partition_of_new
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, SessionKey
from subagents.durable_files import replace_file
from subagents.errors import CorruptState, Elsewhere, Fenced, StoreUnavailable
from subagents.extensions.cluster.postgres.database_url import parse_url
from subagents.extensions.cluster.postgres.home_lock import HomeLock
from subagents.extensions.cluster.postgres.joining import (
    Cluster,
    joined,
    read_cluster,
    require_alone,
    require_shared,
    require_signed,
)
from subagents.extensions.cluster.postgres.link import Link, Lost
from subagents.extensions.cluster.postgres.open_elsewhere import OpenElsewhere
from subagents.extensions.cluster.postgres.postgres_migrations import (
    migrate,
    require_known,
    scripts,
    statements,
)
from subagents.extensions.cluster.postgres.postgres_query import SIEVED, narrowed
from subagents.extensions.cluster.postgres.signed_rows import SignedRows
from subagents.extensions.cluster.shared_store import WENT_BACK_FIX, Member, SeenNode, Survey
from subagents.ports import Batch, FeedEntry, JournalEntry, Loaded, RunFilter, SetAside
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
    by_run,
    in_order,
    json_list,
    shown,
)
from subagents.store.run_filters import is_of_model, mentions
from subagents.text import counted
from subagents.version import __version__

if TYPE_CHECKING:  # of an extra that a daemon alone does not need
    from subagents.extensions.cluster.trust.signing import Signer

log = logging.getLogger(__name__)

T = TypeVar("T")

READERS_MAX: Final = 4
"""Connections that read; one more writes, and that of a member's renewals is the last."""
READER_WAIT_S: Final = 5.0
SIEVE_ROWS: Final = 200
"""Looked at in one step by what only Python can ask."""
TAKE_OVER_TRIES: Final = 5
JOIN_TRIES: Final = 20
HOLDER_WAIT: Final = "1s"
"""How long whoever takes over waits for a commit of the one before; then it is ended."""
BLOCK_BITS: Final = 30
"""The bits of a row's number within its block."""
ORDINAL_BITS: Final = 16
"""The bits of an event's place within its commit."""
PLACE_MAX: Final = 2**63 - 1
ALL_PARTS: Final = [*range(PARTITIONS)]
KNOWN_MAX: Final = 10_000
"""Runs whose partition is remembered; it never changes."""
IDLE_MAX: Final = "2s"
LOCK_WAIT: Final = "10s"
"""How long a lock of ours waits for another node, which keeps it for ``LOCK_HELD_MAX`` at most."""
LOCK_HELD_MAX: Final = "30s"
EPOCH: Final = "postgres.epoch"
"""A file beside the lock: the newest epoch of this home, and of which database."""
SERVER_MIN: Final = 130_000
"""The first that ends an idle transaction, has stored procedures in pipelines and is maintained."""

FENCE_BROKEN: Final = "SUB01"
"""The SQLSTATE that the functions ``fence`` and ``join_cluster`` raise."""

SIGNED: Final = {
    "sign_run": (23, 24, 1, 2, 17),
    "sign_event": (8, 1, 2),
    "sign_schedule": (3, 0, 2),
}
"""Which columns of a stored row are its parameters: signatures, then what the row is known by."""

_NAMED: Final = re.compile(r"(?<!:):(\w+)")


def _placed(row: rows.Row) -> FeedEntry:
    place, *stored = row
    return FeedEntry(number=int(str(place)), entry=rows.EVENT.read((*stored,)).entry)


PLACED: Final = rows.Kind(
    _placed, lambda row: rows.EVENT.names(row[1:]), lambda row: rows.EVENT.run_id(row[1:])
)
"""An event with its place before it."""


class PostgresStore(RowStore):
    """One schema of a database: of one daemon, or of several, each with partitions of its own.

    It is a ``ports.SharedStore`` where it is a member's.

    Args:
        url: See ``database_url``.
        lock: The file of the home's lock.
        belongings: Directories with an entry for each run.
        member: What this node says of itself; None = it is alone.
        signer: Signs what work is started from; None = nothing is signed.
    """

    _feed_kind = PLACED

    def __init__(
        self,
        url: str,
        lock: Path,
        *,
        belongings: Sequence[Path] = (),
        member: Member | None = None,
        signer: "Signer | None" = None,
    ) -> None:
        self._url = parse_url(url)
        super().__init__(statements(self._url.schema))
        self._lock = HomeLock(lock)
        self._belongings = belongings
        self._member = member
        self._signer = signer
        self._signed = SignedRows(signer)
        self._forged: set[str] = set()
        """Identities in rows of nodes that nobody signed who has the secret; told once each."""
        # Alone we write one thing after the other: what is there has nothing missing before it.
        self._upto = (PLACE_MAX if member is None else None,)
        self._identity = ""
        self.home = ""
        """See ``ports.SharedStore.home``."""
        self._epoch = 0
        self._writer: Link | None = None
        self._renewer: Link | None = None
        self._is_open = False
        self._made = 0
        """The number of the newest commit."""
        self._went_back: str | None = None
        """See ``Survey.went_back``; said once."""
        self._unsure: int | None = None
        """The number of one that may have been made, or may still be."""
        self._number: int | None = None
        """The number of the newest row; None = the next one begins a block."""
        self._place = 0
        """The place of the newest event of our own."""
        self._seen = 0
        self._owned: frozenset[int] | None = frozenset(ALL_PARTS)
        """Changed by who writes; None = the database is asked."""
        self._parts: dict[RunId, int] = {}
        """The partitions of some runs; at most ``KNOWN_MAX`` are remembered."""
        self._elsewhere = OpenElsewhere()
        self._readers: queue.SimpleQueue[Link] = queue.SimpleQueue()
        self._readers_made = 0
        self._lending = threading.Lock()
        self.has_workers: Callable[[], bool] = lambda: False
        """Whether something works on this machine, whoever decides about it."""

    @property
    def _ours(self) -> Sequence[object]:
        return (sorted(self._owned_now() if self._owned is None else self._owned),)

    def _has(self, run_id: RunId) -> bool:
        owned = self._owned_now() if self._owned is None else self._owned
        return self.partition(run_id) in owned

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
            link = self._connected()
            try:
                self._require_usable(link)
                migrate(link, self._url.schema)
                self._begin(owner, link)
            finally:
                link.close()
        except psycopg.Error as error:
            self.close()
            raise StoreUnavailable(f"cannot open {self._url.shown}: {_words(error)}") from error
        except BaseException:
            self.close()
            raise
        return self._epoch

    def _begin(self, owner: str, link: Link) -> None:
        # Nodes that are started at the same moment join one after the other.
        for _ in range(1 if self._member is None else JOIN_TRIES):
            cluster = self._require_free(link)
            if self._member is None or not [*cluster.others(self._lock.home())]:
                self._find_damaged(link)
            if self._join(owner, cluster):
                return
        raise StoreUnavailable(f"somebody else is taking {self._url.shown} over")

    def renew(self) -> float | None:
        """See ``ports.Store.renew``: alone, of the home's lock, as of a file's."""
        if self._member is None:
            return None
        self._require_open()
        made = self._made
        if self._renewer is None or self._renewer.is_lost:
            self._renewer = self._connected()
        try:
            found = self._renewer.ask(self._sql["renew_node"], (self._identity,))
        except psycopg.Error as error:
            raise StoreUnavailable(f"the lease is not renewed: {_words(error)}") from error
        if not found:
            raise self._fenced()
        self._seen = int(str(found[0][0]))
        self._note_newest(int(str(found[0][1])), made)
        return self._member.lease_s

    def open_readonly(self) -> None:
        """For looking at a database that a daemon owns, or checking one: no lock, no writes.

        Raises:
            StoreUnavailable: There is none, or it cannot be reached.
            CorruptState: It is of a newer version.
        """
        with self._reader() as link:
            if not self._require_usable(link):
                raise StoreUnavailable(f"there is no schema of ours at {self._url.shown}")
            require_known(link, self._url.schema)

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

    def _require_free(self, link: Link) -> Cluster:
        """Who is there, if this home may be there, too."""
        cluster = read_cluster(link, self._sql, self._url.shown)
        require_signed(cluster, self._signer, self._url.shown, self._lock)
        home = self._lock.home()
        if self._member is None:
            require_alone(cluster, home, self._url.shown, self._lock.path)
        else:
            shown, lock = self._url.shown, self._lock.path
            require_shared(cluster, home, shown, lock, self._member.name)
        if not cluster.epoch:
            for directory in self._belongings:
                if number := _entries(directory):
                    raise CorruptState(
                        f"{self._url.shown} is empty, but {directory} has files of"
                        f" {counted(number, 'run')}",
                        hint="name the database that they belong to, or start with another"
                        " SUBAGENTS_HOME",
                    )
        versions = {each.version for each in cluster.nodes} - {__version__}
        self._left_by = next(iter(versions), None)
        return cluster

    def _join(self, owner: str, cluster: Cluster) -> bool:
        """Begin; False = somebody was faster, and nothing was done."""
        identity = uuid.uuid4().hex
        home = self._lock.home()
        written = joined(
            cluster, identity, home, owner=owner, member=self._member, signer=self._signer
        )
        waits: Written = ("set_waits", [(HOLDER_WAIT, IDLE_MAX)])
        packet = [(self._sql[name], [*each]) for name, each in (waits, *written)]
        before = [each.identity for each in cluster.nodes]
        try:
            self._with_holders_ended(before, lambda: self._joining().send(packet))
        except Lost as error:
            raise StoreUnavailable(f"{self._url.shown} went away: {error}") from error
        except psycopg.Error as error:
            if error.sqlstate != FENCE_BROKEN:
                raise
            return False
        self._identity, self._epoch = identity, cluster.epoch + 1
        self.home = self._lock.home()
        self._compare_epoch(cluster.epoch)
        self._made, self._unsure, self._number = 0, None, None
        self._place = self._seen = self.newest_number()
        self._owned = self._owned_now()
        self._is_open = True
        return True

    def _compare_epoch(self, found: int) -> None:
        """Whether the home has seen more of the database than there is; and keep ours for that."""
        file = self._lock.path.with_name(EPOCH)
        with suppress(OSError, ValueError):
            kept, of = file.read_text("utf-8").split(maxsplit=1) if file.exists() else ("0", "")
            # Without any it is a new one, whatever its name.
            if found and of == self._url.shown and int(kept) > found:
                self._say_went_back(f"this home saw start {kept} of a node, and it knows {found}")
            replace_file(file, f"{self._epoch} {self._url.shown}".encode())

    def _joining(self) -> Link:
        if self._writer is None or self._writer.is_lost:
            self._writer = self._connected()
        return self._writer

    def _with_holders_ended(self, identities: Iterable[str], write: Callable[[], T]) -> T:
        """Do it; whoever stands still in the middle of writing to these nodes' rows is ended."""
        for _ in range(TAKE_OVER_TRIES):
            try:
                return write()
            except psycopg.errors.LockNotAvailable:
                log.warning("a commit of the one before stands still, and is ended")
                with self._reader() as link:
                    link.ask(self._sql["end_holders"], (json_list(identities),))
        raise StoreUnavailable(f"{self._url.shown} is locked by somebody who cannot be ended")

    def _owned_now(self) -> frozenset[int]:
        return frozenset(int(str(part)) for (part,) in self._all("select_parts", (self._identity,)))

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
        for name, plain in kinds:
            kind = self._signed.kind(plain)
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
                # What another node of another version cannot be read by us may be sound.
                if self._member is not None and not self._has(each.run_id):
                    log.warning("%s of another node is left out: %s", each.name, each.reason)
                elif self._all("put_aside", (each.name, each.run_id, each.reason)):
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
        """Release everything; safe to repeat.

        A member of a cluster keeps what it did not give back until its right ends, or until the
        next start of this home: its workers go on until then, and nobody may begin them again.
        """
        self._leave()
        self._open.forget()
        self._is_open = False
        while not self._readers.empty():
            self._readers.get().close()
            self._readers_made -= 1
        for link in (self._writer, self._renewer):
            if link is not None:
                link.close()
        self._writer = self._renewer = None
        self._lock.release()

    def _leave(self) -> None:
        """Say in our row that we go, if that can be done at once."""
        if not self._is_open or self._unsure is not None or not self._writing.acquire(timeout=0):
            return
        try:
            if self._writer is not None and not self._writer.is_lost:
                everything = [] if self._member else [("release_parts", (self._identity, None))]
                statements: tuple[tuple[str, rows.Row], ...] = (
                    ("set_waits", (HOLDER_WAIT, IDLE_MAX)),
                    ("fence", (self._identity, self._made + 1)),
                    *everything,
                    ("end_node", (self._identity, int(self.has_workers()))),
                )
                self._writer.send([(self._sql[name], [row]) for name, row in statements])
        except (psycopg.Error, Lost) as error:
            log.info("our row is left to its end: %s", _words(error))
        finally:
            self._writing.release()

    # -- writing ---------------------------------------------------------------------------

    def commit(self, batch: Batch) -> int:
        """See ``ports.Store.commit``."""
        try:
            self._require_open()
            with self._writing:
                # A commit whose answer was lost is asked about first: it may have been made.
                self._settle()
            if not self._open.is_complete:
                self._load()  # what runs have to do is added to what they had to do
            with self._writing:
                new = {run_id: self._partition_of(run_id, batch) for run_id in batch.created}
                self._require_ours(batch, new)
                self._commits += 1
                with self._open.committing(batch):
                    number = self._write(self._written(batch, new))
                if len(self._parts) > KNOWN_MAX:
                    self._parts.clear()
                self._parts |= new
                if batch.journal:
                    self._place = self._place_of(number, batch.journal)
                return self._place
        except BaseException as error:
            self._open.forget()
            if not isinstance(error, psycopg.Error):
                raise
            raise StoreUnavailable(f"the database refused a write: {_words(error)}") from error

    def _partition_of(self, run_id: RunId, batch: Batch) -> int:
        """Of a run that the batch creates."""
        run = batch.runs[run_id]

        def of_run(above: RunId) -> int:
            if above in batch.created:
                return self._partition_of(above, batch)
            found = self.partition(above)
            return partition_of(run.requester) if found is None else found

        return partition_of_new(run, of_run)

    def _require_ours(self, batch: Batch, new: Mapping[RunId, int]) -> None:
        """Refuse what another node decides: a partition may have been given back meanwhile."""
        if self._member is None:
            return
        owned = self._owned = self._owned_now() if self._owned is None else self._owned
        for run_id in batch.runs:
            part = new.get(run_id)
            if part is None:
                part = self.partition(run_id)
            if part is not None and part not in owned:
                raise Elsewhere(part)

    def _place_of(self, number: int | None, journal: Sequence[JournalEntry]) -> int:
        """Of the last of these events, which a transaction with this number wrote."""
        if number is not None:
            return (number << ORDINAL_BITS) + len(journal)
        last = journal[-1]
        ((place,),) = self._all("event_place", (last.run_id, last.seq))
        return int(str(place))

    def _written(self, batch: Batch, new: Mapping[RunId, int]) -> Iterator[Written]:
        due = [now for now, is_due in self._open.after(batch) if is_due]
        if len(batch.journal) >= 1 << ORDINAL_BITS:
            raise StoreUnavailable(f"{len(batch.journal)} events are too many for one commit")

        def erased(run_id: RunId) -> Iterator[Written]:
            # Nobody else writes: what is read before the packet is what it overwrites.
            for (number,) in self._all("run_number", (run_id,)):
                told = self._all("select_events", (run_id, ERASED_TYPES))
                for name, each in erased_rows(int(str(number)), batch.runs[run_id], told):
                    # A number alone leads to no event: it has no index.
                    is_event = name == "update_event"
                    yield name, ((*row, number) for row in each) if is_event else each

        for name, each in written(batch, due, lambda _newest: self._numbers(), erased):
            is_new = name == "insert_run"
            yield name, ((*row, new[RunId(str(row[1]))]) for row in each) if is_new else each

    def _numbers(self) -> Iterator[int]:
        """Of the next rows, which nobody else gives."""
        while True:
            if self._number is None or not (self._number + 1) % (1 << BLOCK_BITS):
                ((block,),) = self._all("next_block")
                self._number = int(str(block)) << BLOCK_BITS
            self._number += 1
            yield self._number

    def _write(self, found: Iterable[Written]) -> int | None:
        """One durable transaction of our node.

        Returns:
            The number of the transaction; None = it was made, and did not say.

        Raises:
            psycopg.Error, StoreUnavailable: Nothing was written, or nobody can say yet.
            Fenced: Nothing was written.
        """
        signed = self._signed.written
        packet = [
            (self._sql[name], [signed(name, row) for row in some])
            for name, each in found
            if (some := [*each])
        ]
        for is_last in (False, True):
            self._settle()
            number = self._made + 1
            fence = (self._sql["fence"], [(self._identity, number)])
            try:
                transaction = self._writing_link().send([fence, *packet])
            except Lost as error:
                self._unsure = number
                if self._settle():
                    return None
                if is_last:
                    raise StoreUnavailable(f"the database went away: {error}") from error
            except psycopg.Error as error:
                if error.sqlstate != FENCE_BROKEN:
                    raise
                self._made = self._note_newest(self._newest_commit(), self._made)
                raise StoreUnavailable("another commit than was known is the newest") from error
            else:
                self._made = number
                return transaction
        raise AssertionError("unreachable")

    def _settle(self) -> bool:
        """Find out what became of a commit without an answer; whether it was made.

        Where it was not, it never will be: what is on its way to the server has a number that is
        over then.
        """
        if self._unsure is None:
            return False
        number = self._unsure
        try:
            burned = self._writing_link().ask(self._sql["burn_commit"], (self._identity, number))
            newest = number + 1 if burned else self._newest_commit()
            self._made = self._note_newest(newest, self._made)
        except psycopg.Error as error:
            raise StoreUnavailable(
                f"the database went away during a commit, and cannot be asked: {_words(error)}"
            ) from error
        self._unsure = None
        # What it was not in the database that went back in time was not made either.
        return not burned and newest >= number

    def _note_newest(self, newest: int, made: int) -> int:
        """Take note of the newest commit of ours that is there, when ``made`` was acknowledged."""
        if newest < made:
            self._say_went_back(f"{counted(made - newest, 'commit')} of this node gone")
        return newest

    def _say_went_back(self, how: str) -> None:
        if self._went_back is None:
            self._went_back = how
            log.error("%s went back in time: %s; %s", self._url.shown, how, WENT_BACK_FIX)

    def _newest_commit(self) -> int:
        found = self._writing_link().ask(self._sql["read_commits"], (self._identity,))
        if not found:
            raise self._fenced()
        return int(str(found[0][0]))

    def _fenced(self) -> Fenced:
        return Fenced(
            f"epoch {self._epoch} is over: another process took over what it had of"
            f" {self._url.shown}",
            hint="ask again: the newer one answers",
        )

    def _writing_link(self) -> Link:
        self._require_open()
        return self._joining()

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
        try:
            with self._writing:
                self._settle()
                if self._member is not None:
                    owned = self._owned_now()
                    run_ids = [each for each in run_ids if self.partition(each) in owned]
                ids = [(run_id,) for run_id in run_ids]
                gone = ("delete_journal", "delete_messages", "delete_run")
                self._write([(name, ids) for name in gone])
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

    def _rows(
        self,
        statement: str,
        kind: rows.Kind[T],
        parameters: Parameters,
        reading: Callable[[Sequence[rows.Row]], Callable[[rows.Row], T]] | None = None,
    ) -> list[T]:
        if reading is None:
            return super()._rows(statement, self._signed.kind(kind), parameters)

        def signed(fetched: Sequence[rows.Row]) -> Callable[[rows.Row], T]:
            read = reading(fetched)
            return lambda row: read(self._signed.run(row))

        return super()._rows(statement, kind, parameters, signed)

    def checkpoint_of(self, row: rows.Row) -> rows.Checkpoint:
        """See ``open_elsewhere.Asked``."""
        return self._signed.kind(rows.CHECKPOINT).read(row)

    def folded(self, kept: rows.Checkpoint, tail: Sequence[rows.Row]) -> rows.Checkpoint:
        """See ``open_elsewhere.Asked``."""
        return self._folded(kept, tail)

    def _folded(self, checkpoint: rows.Checkpoint, tail: Sequence[rows.Row]) -> rows.Checkpoint:
        return super()._folded(checkpoint, [self._signed.event(row) for row in tail])

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
        found = [*damaged, *self._fold_open([ALL_PARTS])[1], *self.set_aside()]
        reasons = {each.name: each.reason for each in reversed(found)}
        return [f"{name}: {reasons[name]}" for name in reversed(reasons)]

    def newest_number(self) -> int:
        """See ``ports.Store.newest_number``: followers miss nothing that comes behind it."""
        ((number,),) = self._all("newest_number", (int(self._member is not None),))
        self._seen = int(str(number))
        return self._seen

    def ids_elsewhere(self) -> Iterator[RunId]:
        """See ``open_elsewhere.Asked``."""
        ids = (RunId(str(run_id)) for (run_id,) in self._all("select_open_ids"))
        return (run_id for run_id in ids if run_id not in self._open)

    def rows_of(self, ids: Collection[RunId]) -> Sequence[rows.Row]:
        """See ``open_elsewhere.Asked``."""
        return self._all("select_these", (json_list(ids), 0)) if ids else ()

    def tails(self, heads: Mapping[str, object]) -> Mapping[str, Sequence[rows.Row]]:
        """The journals of runs behind the ``seq`` that is given of each, in one question."""
        found: dict[str, list[rows.Row]] = {}
        if heads:
            asked = [{"id": run_id, "seq": seq} for run_id, seq in heads.items()]
            for row in self._all("select_tails", (msgspec.json.encode(asked).decode(),)):
                found.setdefault(str(row[1]), []).append(row)
        return found

    def _open_runs(self) -> Sequence[Run]:
        ours = super()._open_runs()
        if self._member is None:
            return ours
        elsewhere = self._elsewhere.runs(self)
        return [*ours, *(run for run in elsewhere if run.id not in self._open)]

    # -- what is shared --------------------------------------------------------------------

    @property
    def identity(self) -> str:
        """See ``ports.SharedStore.identity``."""
        return self._identity

    @property
    def seen_number(self) -> int:
        """See ``ports.SharedStore.seen_number``."""
        return self._seen

    @property
    def has_unsigned(self) -> bool:
        """See ``ports.SharedStore.has_unsigned``."""
        return self._signer is not None and not self._signer.is_required

    def sign_all(self) -> None:
        """See ``ports.SharedStore.sign_all``."""
        if self._signer is None:
            return
        with self._reader() as link, self._refused_in_words():
            # Who begins now signs, or is refused; so what is read after this is all there is.
            if not self._is_agreed(link, "need_signatures", ()):
                return
            number = 0
            while found := link.ask(self._sql["page_of_runs"], (number, SIEVE_ROWS)):
                number = int(str(found[-1][0]))
                self._sign(link, "sign_run", "insert_run", rows.CHECKPOINT, found)
            self._sign(
                *(link, "sign_event", "insert_event", rows.EVENT),
                link.ask(self._sql["events_to_sign"]),
            )
            self._sign(
                *(link, "sign_schedule", "put_schedule", rows.SCHEDULE),
                link.ask(self._sql["all_schedules"]),
            )
            if self._is_agreed(link, "sign_cluster", (self._signer.check, 1)):
                self._signer.require()
                log.info("all of %s is signed: what is not is refused now", self._url.shown)

    def _is_agreed(self, link: Link, name: str, parameters: rows.Row) -> bool:
        """Say it, unless a node of the version before is at work."""
        with link.connection.transaction():
            link.ask(self._sql["hold_cluster"])
            if link.ask(self._sql["older_nodes"]):
                return False
            link.ask(self._sql[name], parameters)
        return True

    def _sign(
        self, link: Link, name: str, as_in: str, kind: rows.Kind[T], found: Iterable[rows.Row]
    ) -> None:
        signed = [now for row in found if (now := self._signed.again(as_in, kind, row))]
        places = SIGNED[name]
        if signed:
            link.send([(self._sql[name], [tuple(row[at] for at in places) for row in signed])])

    def _certificate(self, identity: str, name: str, row: rows.Row) -> bytes | None:
        """What a node's row has, if it is signed."""
        certificate, signature = row
        if self._signer is None or not isinstance(certificate, bytes):
            return None
        if self._signer.is_ours(signature, "node", identity, name, certificate):
            return certificate
        if identity not in self._forged:
            self._forged.add(identity)
            log.error("the row of node %s is not signed with this cluster's secret", name)
        return None

    def survey(self) -> Survey:
        """See ``ports.SharedStore.survey``."""
        nodes: dict[str, SeenNode] = {}
        owners: dict[int, str] = {}
        has_offers: object = False
        for row in self._all("survey_nodes"):
            (
                identity,
                home,
                name,
                url,
                labels,
                slots,
                version,
                *shown,
                left_s,
                is_draining,
                degraded,
                is_over,
                has_offers,
                parts,
            ) = row
            nodes[str(identity)] = SeenNode(
                identity=str(identity),
                home=str(home),
                name=str(name),
                url=None if url is None else str(url),
                labels=msgspec.json.decode(str(labels), type=tuple[str, ...]),
                slots=None if slots is None else int(str(slots)),
                version=str(version),
                left_s=float(str(left_s)),
                is_draining=bool(is_draining),
                certificate=self._certificate(str(identity), str(name), (*shown,)),
                degraded=None if degraded is None else str(degraded),
                is_over=bool(is_over),
            )
            if parts is not None:
                owners |= dict.fromkeys(
                    msgspec.json.decode(str(parts), type=list[int]), str(identity)
                )
        return Survey(nodes, owners, len(self._forged), bool(has_offers), self._went_back)

    def claim(self, partitions: Collection[int]) -> frozenset[int]:
        """See ``ports.SharedStore.claim``."""
        asked = _json(partitions)
        packet: list[Written] = [
            ("set_waits", [(HOLDER_WAIT, IDLE_MAX)]),
            ("end_lapsed", [(asked, self._identity)]),
            ("claim_parts", [(self._identity, asked)]),
        ]
        with self._writing, self._refused_in_words():
            owners = self.survey().owners
            before = {owners[part] for part in partitions if part in owners}
            self._owned = None
            self._with_holders_ended(before - {self._identity}, lambda: self._write(packet))
            # What they wrote last has smaller numbers than what we write next, and whoever is
            # loading what was ours before begins again.
            self._number = None
            self._commits += 1
            owned = self._owned = self._owned_now()
        return owned & frozenset(partitions)

    def release(self, partitions: Collection[int]) -> None:
        """See ``ports.SharedStore.release``."""
        with self._writing, self._refused_in_words():
            theirs = self._all("kept_of_parts", (sorted(partitions),))
            self._owned = None
            self._commits += 1
            try:
                self._write([("release_parts", [(self._identity, _json(partitions))])])
            except BaseException:
                self._open.forget()
                raise
            self._open.drop(RunId(str(run_id)) for (run_id,) in theirs)
            self._elsewhere.forget()  # a list has them still

    def load_partitions(self, partitions: Collection[int]) -> Loaded:
        """See ``ports.SharedStore.load_partitions``."""
        theirs = (sorted(partitions),)
        found, bad = self._fold_open(theirs)
        others = self._read("load_pending", rows.CHECKPOINT, theirs)
        self._put_aside(bad)
        with self._writing:
            if self._open.is_complete:
                self._open.add((*found, *((each, each.run.seq) for each in others)))
        if self._left_by is not None:
            # What this version makes of another one's events is decided once.
            self.checkpoint()
        runs = [now for now, _ in found]
        loaded = {now.run.id: now for now in (*runs, *others)}
        return Loaded(
            runs=[now.run for now in runs],
            outbox=in_order(each for now in loaded.values() for each in now.pending),
            leases=self._read("load_leases", rows.LEASE, theirs),
            keys=by_run(self._read("load_open_keys", rows.APPLIED, theirs)),
        )

    def partition(self, run_id: RunId) -> int | None:
        """See ``ports.SharedStore.partition``."""
        found = self._parts.get(run_id)
        if found is None:
            for (part,) in self._all("run_part", (run_id,)):
                found = self._parts[run_id] = int(str(part))
        return found

    def partition_of_worker(self, session: SessionKey) -> int | None:
        """See ``ports.SharedStore.partition_of_worker``."""
        for (part,) in self._all("session_part", (session,)):
            return int(str(part))
        for run in self._open_runs():  # a later attempt's, which its row does not say
            if session in run.session_keys:
                return self.partition(run.id)
        return None

    def tell_peers(self, names: Collection[str]) -> None:
        """See ``ports.SharedStore.tell_peers``."""
        if not self._all("tell_peers", (self._identity, json_list(names))):
            raise self._fenced()

    def lock(self, what: str) -> Callable[[], None]:
        """See ``ports.SharedStore.lock``: of a transaction, which ends with its connection."""
        link = self._connected()
        try:
            link.connection.execute("BEGIN")
            link.ask(self._sql["set_waits"], (LOCK_WAIT, LOCK_HELD_MAX))
            link.ask(self._sql["lock"], (what,))
        except psycopg.Error as error:
            link.close()
            raise StoreUnavailable(f"{what} is being changed: {_words(error)}") from error
        return link.close

    def forget(self, node: str) -> None:
        """See ``ports.SharedStore.forget``."""
        with self._writing, self._refused_in_words():
            self._write([("forget_node", [(node,)])])

    def degrade(self, why: str | None) -> None:
        """See ``ports.SharedStore.degrade``."""
        with self._writing, self._refused_in_words():
            self._write([("degrade_node", [(self._identity, why)])])

    def drain(self, *, is_on: bool) -> None:
        """See ``ports.SharedStore.drain``."""
        with self._writing, self._refused_in_words():
            self._write([("drain_node", [(self._identity, int(is_on))])])

    @contextmanager
    def _refused_in_words(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.Error, Lost) as error:
            raise StoreUnavailable(f"the database refused a write: {_words(error)}") from error


def _json(partitions: Collection[int]) -> str:
    return msgspec.json.encode(sorted(partitions)).decode()


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
