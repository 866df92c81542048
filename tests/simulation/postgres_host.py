"""The simulated host with its store in a real PostgreSQL, whose line fails as the seed says."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg
from tests.extensions.cluster.postgres.postgres_server import PostgresServer
from tests.simulation.host import Crashed, Host, Life

from subagents.domain.run.values import RunId
from subagents.errors import Fenced, StoreUnavailable
from subagents.extensions.cluster.postgres.link import Link, Lost
from subagents.extensions.cluster.postgres.postgres_store import PostgresStore
from subagents.ports import Batch, Store
from subagents.store.batch_rows import Written


class FaultyLink(Link):
    """A real line; what was sent over it is made and nobody is told, or it never arrives."""

    host: Host

    def send(self, statements: Any) -> int | None:
        """See ``Link.send``."""
        if self.host.happens(self.host.faults.commit_unclear):
            if self.host.happens(0.5):
                super().send(statements)
            self.close()
            raise Lost("the line was cut (simulated)")
        return super().send(statements)


class FaultyPostgres(PostgresStore):
    """The real store on a real server; commits fail or are torn as the seed says."""

    def __init__(self, url: str, lock: Path, host: Host) -> None:
        super().__init__(url, lock)
        self._host = host
        self._is_injected = False

    def _connected(self) -> Link:
        if self._is_open and self._host.happens(self._host.faults.commit_unclear):
            self._is_injected = True
            raise StoreUnavailable("the server cannot be reached (simulated)")
        link = FaultyLink(self._url.conninfo)
        link.host = self._host
        return link

    def _write(self, found: Iterable[Written]) -> int | None:
        faults = self._host.faults
        if self._host.happens(faults.commit_fails):
            self._is_injected = True
            raise psycopg.errors.DiskFull("no space left on device (simulated)")
        if self._host.happens(faults.crash_in_commit):
            if self._host.happens(0.5):
                super()._write(found)
            raise Crashed
        return super()._write(found)

    def commit(self, batch: Batch) -> int:
        """See ``ports.Store.commit``."""
        self._is_injected = False
        try:
            return super().commit(batch)
        except (StoreUnavailable, Fenced) as error:
            if not self._is_injected:
                self._host.judge.fail("every commit can be written", error.message)
            raise

    def prune(self, run_ids: Iterable[RunId]) -> None:
        """See ``ports.Store.prune``."""
        ids = tuple(run_ids)
        self._host.judge.pruning(ids, self)
        super().prune(ids)


class PostgresHost(Host):
    """See ``Host``; nothing fails of the disk, which is not simulated here."""

    def __init__(self, server: PostgresServer, **given: Any) -> None:
        self._url = server.url(server.new_schema())
        self._lock: Path = given["directory"] / "postgres.lock"
        self._looking: PostgresStore | None = None
        super().__init__(**given)

    @property
    def can_start_fail(self) -> bool:
        """See ``Host.can_start_fail``: the server may be away."""
        return self.faults.commit_unclear > 0

    def new_store(self) -> Store:
        """See ``Host.new_store``."""
        return FaultyPostgres(self._url, self._lock, self)

    def old_store(self, life: Life) -> Store:
        """See ``Host.old_store``."""
        assert isinstance(life.store, FaultyPostgres)
        old = PostgresStore(self._url, self._lock)
        old._identity, old._made, old._is_open = "of an older start", life.store._made, True
        return old

    def reader(self) -> Store:
        """See ``Host.reader``."""
        if self._looking is None:
            self._looking = PostgresStore(self._url, self._lock)
        self._looking.open_readonly()
        return self._looking

    def close(self) -> None:
        """See ``Host.close``."""
        if self._looking is not None:
            self._looking.close()
