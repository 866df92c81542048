"""A schema that several homes share, each with a node of its own."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.extensions.cluster.pinned_nodes import SECRET
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace, PostgresServer

from subagents.domain.cluster.partitioning import PARTITIONS
from subagents.extensions.cluster.postgres.postgres_store import PostgresStore
from subagents.extensions.cluster.shared_store import Member, SharedStore
from subagents.extensions.cluster.trust.signing import Signer

LEASE_S = 60.0
ALL = range(PARTITIONS)


def member_called(name: str, lease_s: float = LEASE_S) -> Member:
    return Member(name, f"https://{name}.example:7337", ("linux",), 4, lease_s)


class SharedPlace:
    """The schema, and the nodes that were opened on it; all are closed at the end.

    Args:
        place: With the schema.
        directory: For the homes.
        stack: Closes what was opened.
    """

    def __init__(self, place: PostgresPlace, directory: Path, stack: ExitStack) -> None:
        self.place = place
        self.secret: bytes | None = None
        """Of nodes that are opened from now on; None = they are of the version before."""
        self._directory = directory
        self._stack = stack

    @property
    def server(self) -> PostgresServer:
        return self.place.server

    def lock(self, name: str) -> Path:
        """The file of the home of this name."""
        return self._directory / name / "postgres.lock"

    def node(
        self,
        name: str,
        *,
        host: Path | None = None,
        lease_s: float = LEASE_S,
        called: str | None = None,
    ) -> PostgresStore:
        """One more start of the home of this name, which is the node's, too; not opened yet."""
        url = self.place.url if host is None else self.server.url(self.place.schema, host=host)
        lock = self.lock(name)
        signer = None if self.secret is None else signer_of(lock, self.secret)
        member = member_called(called or name, lease_s)
        if signer is not None:
            member = member._replace(certificate=name.encode())
        store = PostgresStore(url, lock, member=member, signer=signer)
        self._stack.callback(store.close)
        return store

    def opened(self, name: str, *, host: Path | None = None) -> PostgresStore:
        """One that has held its right for longer than a lease, holds it for a minute more, and is
        known to all others, as they are to it.
        """
        store = self.started(name, host=host)
        long = (
            "UPDATE node SET since = since - interval '1 hour', until = until + interval '1 minute'"
            " WHERE name = ?"
        )
        self.place.execute(long, name)
        self.place.execute("UPDATE node SET peers = (SELECT array_agg(home) FROM node)")
        return store

    def started(self, name: str, *, host: Path | None = None) -> PostgresStore:
        """One that has just begun."""
        store = self.node(name, host=host)
        store.open(name)
        return store

    def alone(self, name: str) -> PostgresStore:
        """A daemon of this home that is no member."""
        store = PostgresStore(self.place.url, self.lock(name))
        self._stack.callback(store.close)
        return store

    def lose_lock(self, name: str) -> None:
        """As a kernel does when the process is killed; its store is not told."""
        lock = self.lock(name)
        text = lock.read_text("utf-8")
        lock.unlink()
        lock.write_text(text, "utf-8")

    def lapse(self, name: str) -> None:
        """The node did not renew in time."""
        past = "UPDATE node SET until = clock_timestamp() - interval '1 minute' WHERE name = ?"
        assert self.place.execute(past, name) == 1


@contextmanager
def shared(place: PostgresPlace, directory: Path) -> Iterator[SharedPlace]:
    """Until the block ends."""
    with ExitStack() as stack:
        yield SharedPlace(place, directory, stack)


class EagerMember(PostgresStore):
    """A member that claims all that is free as it opens: the store suite knows no partitions."""

    def open(self, owner: str) -> int:
        """See ``ports.Store.open``."""
        epoch = super().open(owner)
        self.claim(ALL)
        return epoch


class MemberPlace(PostgresPlace):
    """Where the store suite works while another node is there, which has no partitions."""

    def store(self) -> PostgresStore:
        """See ``StorePlace.store``."""
        signer = signer_of(self.lock, SECRET.encode())
        return EagerMember(self.url, self.lock, member=member_called("one"), signer=signer)


def signer_of(lock: Path, secret: bytes) -> Signer:
    """Of the home with that lock."""
    lock.parent.mkdir(exist_ok=True)
    return Signer(secret, lock.with_name("postgres.signed"))


def as_shared(store: PostgresStore) -> SharedStore:
    """The type checker looks here whether it is one."""
    return store
