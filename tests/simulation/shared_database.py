"""A store that several nodes share, in virtual time: one SQLite file instead of a PostgreSQL.

Rows and statements are those of the real SQLite store. What only a cluster has is here, as
``ports.SharedStore`` says it: the nodes' rights on the database's clock, who has which partition,
and the fence in each transaction. Everything happens in one process and one thread, so that a
method is a transaction by itself.
"""

import os
import sqlite3
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from subagents.domain.cluster.partitioning import (
    OUTAGE_LEASES,
    PARTITIONS,
    partition_of_new,
)
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, SessionKey
from subagents.errors import AlreadyRunning, Fenced, StoreUnavailable
from subagents.extensions.cluster.shared_store import Member, SeenNode, SharedStore, Survey
from subagents.ports import Batch, Lease, Loaded, OutboxEntry
from subagents.store import rows
from subagents.store.row_store import Parameters
from subagents.store.sqlite.sqlite_store import SqliteStore
from subagents.version import __version__

T = TypeVar("T")

ONLY_OURS: Final = frozenset({"load_open", "load_pending", "load_leases", "load_open_keys"})
"""The statements that a start asks, and a claim: about our partitions alone."""
EVERY: Final = 1_000_000


@dataclass(slots=True, kw_only=True)
class NodeRow:
    """One start of a node, as the database has it."""

    identity: str
    home: str
    member: Member
    until_s: float
    """By the database's clock."""
    renewed_since_s: float
    """Since when it was renewed without a break."""
    commits: int = 0
    peers: frozenset[str] = frozenset()
    is_over: bool = False
    is_draining: bool = False
    degraded: str | None = None


@dataclass(slots=True)
class SharedDatabase:
    """What all nodes see: the rows of nodes and partitions beside the file.

    Args:
        path: Of the file.
        now_s: The database's clock.
    """

    path: Path
    now_s: Callable[[], float]
    nodes: dict[str, NodeRow] = field(default_factory=dict)
    owners: dict[int, str] = field(default_factory=dict)
    part_of: dict[RunId, int] = field(default_factory=dict)
    workers: dict[SessionKey, int] = field(default_factory=dict)
    """The partition of the run whose agent speaks under a session."""
    open_homes: set[str] = field(default_factory=set)
    """Whose lock is held."""
    is_away: bool = False
    """Nobody reaches it."""
    began_s: float = 0.0
    """When it could be reached again last."""
    on_end: Callable[[NodeRow, NodeRow], None] = lambda *_: None
    """Hears who is about to say of which other node that it is over."""
    on_claim: Callable[[NodeRow | None], None] = lambda *_: None
    """Hears from whom a partition is taken over."""
    on_write: Callable[[NodeRow, Batch], None] = lambda *_: None
    """Hears of each commit, in its transaction."""

    def is_alive(self, identity: str | None) -> bool:
        row = None if identity is None else self.nodes.get(identity)
        return row is not None and not row.is_over and row.until_s > self.now_s()

    def owned(self, identity: str) -> frozenset[int]:
        return frozenset(part for part, owner in self.owners.items() if owner == identity)


class SharedSqlite(SqliteStore):
    """What one start of a node has of a ``SharedDatabase``; see ``ports.SharedStore``.

    Args:
        database: All nodes have the same.
        home: Of this node: its next start has its partitions back at once.
        member: What it says of itself.
        identity: Of this start.
    """

    def __init__(
        self, database: SharedDatabase, *, home: str, member: Member, identity: str
    ) -> None:
        super().__init__(database.path)
        self._shared, self.home, self._member = database, home, member
        self.has_workers = lambda: False
        self.identity = identity
        self._sees_all = False
        self._holds_home = False

    # -- life ------------------------------------------------------------------------------

    def open(self, owner: str) -> int:
        """See ``ports.SharedStore``."""
        self._require_reached()
        epoch = super().open(owner)
        shared, now_s = self._shared, self._shared.now_s()
        before = {each.identity for each in shared.nodes.values() if each.home == self.home}
        for identity in before:
            shared.nodes[identity].is_over = True
        shared.nodes[self.identity] = NodeRow(
            identity=self.identity,
            home=self.home,
            member=self._member,
            until_s=now_s + self._member.lease_s,
            renewed_since_s=now_s,
        )
        for part, had in shared.owners.items():
            if had in before:
                shared.owners[part] = self.identity
        return epoch

    def _take_lock(self) -> None:
        if self.home in self._shared.open_homes:
            raise AlreadyRunning(f"another process is using the home {self.home}")
        self._shared.open_homes.add(self.home)
        self._holds_home = True
        # Several write this file, so its lock is nobody's; a descriptor says that we may.
        self._lock = os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        """See ``ports.Store.close``."""
        super().close()
        if self._holds_home:
            self._shared.open_homes.discard(self.home)
            self._holds_home = False

    def _require_reached(self) -> None:
        if self._shared.is_away:
            raise StoreUnavailable("the database cannot be reached (simulated)")

    def _row(self) -> NodeRow:
        """Our row.

        Raises:
            StoreUnavailable: The database is away, or this store is not open.
            Fenced: It is over.
        """
        self._require_reached()
        row = self._shared.nodes.get(self.identity)
        if row is None or not self._may_write:
            raise StoreUnavailable("it is not open for writing")
        if row.is_over:
            raise Fenced(
                f"node {self._member.name} is over: others took its partitions",
                hint="call again: their new owners answer",
            )
        return row

    def _require_epoch(self, connection: sqlite3.Connection) -> None:
        self._row().commits += 1
        # Of the file, whose row of it has a checksum; what fences here is the node's row.
        (self._epoch,) = connection.execute(self._sql["read_epoch"]).fetchone()

    def renew(self) -> float | None:
        """See ``ports.Store.renew``."""
        row, now_s = self._row(), self._shared.now_s()
        if now_s > row.until_s:
            row.renewed_since_s = now_s
        row.until_s = now_s + self._member.lease_s
        return self._member.lease_s

    def keep(self) -> bool:
        """As ``KeptNode.renew``: while the daemon is gone; False = it is over."""
        self._require_reached()
        row, now_s = self._shared.nodes.get(self.identity), self._shared.now_s()
        if row is None or row.is_over or row.until_s <= now_s:
            return False
        row.until_s = now_s + self._member.lease_s
        return True

    # -- partitions ------------------------------------------------------------------------

    @property
    def seen_number(self) -> int:
        """See ``ports.SharedStore.seen_number``: nothing is under way while this is asked."""
        return self.newest_number()

    has_unsigned = False

    def sign_all(self) -> None:
        """See ``ports.SharedStore.sign_all``: nobody has a secret."""

    def survey(self) -> Survey:
        """See ``ports.SharedStore.survey``."""
        self._require_reached()
        shared, now_s = self._shared, self._shared.now_s()
        has_some = set(shared.owners.values())
        outage_s = OUTAGE_LEASES * self._member.lease_s
        nodes = {
            row.identity: SeenNode(
                identity=row.identity,
                home=row.home,
                name=row.member.name,
                url=row.member.url,
                labels=row.member.labels,
                slots=row.member.slots,
                version=__version__,
                left_s=min(row.until_s - now_s, 0.0) if row.is_over else row.until_s - now_s,
                is_draining=row.is_draining,
                degraded=row.degraded,
                is_over=row.is_over,
            )
            for row in shared.nodes.values()
            if row.identity in has_some or (not row.is_over and row.until_s > now_s - outage_s)
        }
        return Survey(nodes, dict(shared.owners))

    def tell_peers(self, names: Collection[str]) -> None:
        """See ``ports.SharedStore.tell_peers``."""
        self._row().peers = frozenset(names)

    def lock(self, what: str) -> Callable[[], None]:
        """See ``ports.SharedStore.lock``: nobody here does at once what needs one."""
        del what
        return lambda: None

    def forget(self, node: str) -> None:
        """See ``ports.SharedStore.forget``."""
        now_s = self._shared.now_s()
        for row in self._shared.nodes.values():
            row.is_over |= row.member.name == node and row.until_s < now_s

    def claim(self, partitions: Collection[int]) -> frozenset[int]:
        """See ``ports.SharedStore.claim``."""
        ours, shared, taken = self._row(), self._shared, set()
        for part in sorted(partitions):
            had = shared.owners.get(part)
            if had == self.identity:
                taken.add(part)
                continue
            if shared.is_alive(had):
                continue
            before = None if had is None else shared.nodes[had]
            if before is not None and not before.is_over:
                long_ago_s = shared.now_s() - OUTAGE_LEASES * self._member.lease_s
                is_known = self.home in before.peers or before.until_s < long_ago_s
                if not (is_known and self._is_proven(ours)):
                    continue
                shared.on_end(ours, before)
                before.is_over = True
            shared.on_claim(before)
            shared.owners[part] = self.identity
            taken.add(part)
        self._open.forget()
        return frozenset(taken)

    def _is_proven(self, row: NodeRow) -> bool:
        now_s = self._shared.now_s()
        return row.until_s > now_s and now_s - row.renewed_since_s >= self._member.lease_s

    def release(self, partitions: Collection[int]) -> None:
        """See ``ports.SharedStore.release``."""
        self._row()
        for part in partitions:
            if self._shared.owners.get(part) == self.identity:
                del self._shared.owners[part]
        self._open.forget()

    def degrade(self, why: str | None) -> None:
        """See ``ports.SharedStore.degrade``."""
        self._row().degraded = why

    def drain(self, *, is_on: bool) -> None:
        """See ``ports.SharedStore.drain``."""
        self._row().is_draining = is_on

    def partition(self, run_id: RunId) -> int | None:
        """See ``ports.SharedStore.partition``."""
        self._require_reached()
        return self._shared.part_of.get(run_id)

    def partition_of_worker(self, session: SessionKey) -> int | None:
        """See ``ports.SharedStore.partition_of_worker``."""
        self._require_reached()
        return self._shared.workers.get(session)

    def load_partitions(self, partitions: Collection[int]) -> Loaded:
        """See ``ports.SharedStore.load_partitions``."""
        self._require_reached()

        def here(run_id: RunId) -> bool:
            return self._shared.part_of.get(run_id) in partitions

        # A claim changed what is ours, so all of it is read anew.
        self._open.forget()
        keys = self.load_keys()
        return Loaded(
            runs=[run for run in self.load_open() if here(run.id)],
            outbox=[each for each in self.load_outbox() if here(each.run_id)],
            leases=[each for each in self.load_leases() if here(each.run_id)],
            keys={run_id: found for run_id, found in keys.items() if here(run_id)},
        )

    # -- rows ------------------------------------------------------------------------------

    def _write(self, connection: object, batch: Batch) -> int:
        # As PostgreSQL's statement has it: the owner's lease takes the place of that of any node,
        # also of one that joined later and has the higher epoch.
        owned = self._shared.owned(self.identity)
        ours = [(each,) for each in batch.leases if self._shared.part_of.get(each) in owned]
        connection.executemany("DELETE FROM lease WHERE run_id = ?", ours)  # type: ignore[attr-defined]  # as the class above has it
        number = super()._write(connection, batch)  # type: ignore[arg-type]  # as the class above has it
        for run_id in (each for each in batch.runs if each in batch.created):
            run = batch.runs[run_id]
            part = partition_of_new(run, self._shared.part_of.__getitem__)
            assert 0 <= part < PARTITIONS
            self._shared.part_of[run_id] = part
            self._shared.workers[run.session_key] = part
        self._shared.on_write(self._row(), batch)
        return number

    def archivable(self, ended_before_ms: int, limit: int) -> Sequence[RunId]:
        """See ``ports.Store.archivable``; of ours."""
        return self._own(super().archivable(ended_before_ms, EVERY))[:limit]

    def prunable(self, ended_before_ms: int, limit: int) -> Sequence[RunId]:
        """See ``ports.Store.prunable``; of ours."""
        return self._own(super().prunable(ended_before_ms, EVERY))[:limit]

    def _own(self, run_ids: Sequence[RunId]) -> Sequence[RunId]:
        owned = self._shared.owned(self.identity)
        return [run_id for run_id in run_ids if self._shared.part_of[run_id] in owned]

    def load_open(self) -> Sequence[Run]:
        """See ``ports.Store.load_open``."""
        return [now.run for now in self._load()[0]]

    def _read(self, name: str, kind: rows.Kind[T], parameters: Parameters = ()) -> list[T]:
        found = super()._read(name, kind, parameters)
        if name not in ONLY_OURS or self._sees_all or not self._may_write:
            return found
        ours = self._shared.owned(self.identity)
        return [each for each in found if self._shared.part_of.get(_run_id(each)) in ours]

    def _fetched(self, statement: str, parameters: Parameters) -> list[rows.Row]:
        self._require_reached()
        return super()._fetched(statement, parameters)

    def _open_runs(self) -> Sequence[Run]:
        """Of all nodes: what a list looks through."""
        self._sees_all = True
        try:
            return [now.run for now, _ in self._fold_open(())[0]]
        finally:
            self._sees_all = False


def _run_id(found: object) -> RunId:
    match found:
        case rows.Checkpoint(run=run):
            return run.id
        case Lease(run_id=run_id) | OutboxEntry(run_id=run_id):
            return run_id
        case (run_id, _):
            return RunId(str(run_id))
        case _:
            raise AssertionError(found)


def as_shared(store: SharedSqlite) -> SharedStore:
    """The type checker looks here whether it is one."""
    return store
