"""Several engines on one shared database, in time that a test moves."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from tests.engine.fake_clock import FakeClock
from tests.engine.world import Ids, Troubled, World
from tests.extensions.cluster.postgres.permit_places import MemoryPlace
from tests.simulation.shared_database import SharedDatabase, SharedSqlite

from subagents.domain.cluster.partitioning import partition_of
from subagents.domain.run.values import AttemptId, SessionKey
from subagents.engine.engine import Engine
from subagents.errors import StoreUnavailable
from subagents.extensions.cluster.engine.cluster_placement import ClusterPlaces
from subagents.extensions.cluster.engine.cluster_sharing import ClusterSharing
from subagents.extensions.cluster.engine.shared_partitions import SharedPartitions
from subagents.extensions.cluster.node_permits import Demand, Settlement
from subagents.extensions.cluster.node_ports import Offer
from subagents.extensions.cluster.remote.node_health import NodeHealth
from subagents.extensions.cluster.remote.slots import Slots
from subagents.extensions.cluster.shared_store import Member
from subagents.ports import Launch, Runtime, StartedInfo

T = TypeVar("T")
LEASE_S: Final = 6.0


class SharedPermits(MemoryPlace):
    """What the nodes of a ``SharedDatabase`` count together."""

    def __init__(self, database: SharedDatabase) -> None:
        super().__init__(lambda: int(database.now_s() * 1000))
        self._database = database

    def is_alive(self, identity: str) -> bool:
        row = self._database.nodes.get(identity)
        return row is not None and not row.is_over

    def owner(self, partition: int) -> str | None:
        return self._database.owners.get(partition)

    def settle(self, me: str, demand: Demand) -> Settlement:
        if self._database.is_away:
            raise StoreUnavailable("the database cannot be reached (simulated)")
        return super().settle(me, demand)


class TroubledShared(SharedSqlite, Troubled):
    """What one start of a node has of the database, with the troubles that a test wants."""

    is_frozen = False
    """Nothing of ours reaches the database."""

    def _require_reached(self) -> None:
        super()._require_reached()
        if self.is_frozen:
            raise StoreUnavailable("nothing of this node arrives")


class AtNode:
    """The runtime of another node, which starts what has a slot there; see ``AttemptHost``."""

    def __init__(self, node: "Node") -> None:
        self._node = node

    async def start(self, launch: Launch) -> StartedInfo:
        with self._node.slots.starting(launch):
            return await self._node.runtime.start(launch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node.runtime, name)


class AnyNode:
    """Finds a node that has a slot, the asking one first."""

    def __init__(self, node: "Node", cluster: "Cluster") -> None:
        self._node, self._cluster = node, cluster

    async def place(self, offer: Offer) -> str:
        while True:
            for each in (self._node, *self._cluster.nodes):
                if each.slots.keep(offer.attempt_id):
                    return each.directory.name
            await self._node.clock.sleep(0.1)

    async def settle(self, attempt_id: AttemptId) -> None:
        """Nothing is offered."""


class Machines:
    """The runtimes of all nodes; of one that is gone, nothing is found anywhere."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster

    def at(self, node: str, runtime: Runtime) -> Runtime:
        assert runtime.name == "scripted"
        found = self._cluster.node(node)
        return AtNode(found) if found in self._cluster.nodes else runtime


class Node(World):
    """One node: it boots, is killed and starts again as a world of its own does."""

    def __init__(self, directory: Path, cluster: "Cluster", **defaults: Any) -> None:
        super().__init__(directory, **defaults)
        self.path = cluster.database.path
        self.clock, self.ids = cluster.clock, cluster.ids
        self.runtime._clock = cluster.clock
        self._cluster, self._database, self._permits = cluster, cluster.database, cluster.permits
        self.health = NodeHealth(self.runtime.require_machine, self.clock.elapsed_ms)
        self.slots = Slots(directory / "attempts", None, self.clock.elapsed_ms, self.health)

    store: TroubledShared

    async def start(self) -> None:
        """As a new process of its home."""
        name = self.directory.name
        store = TroubledShared(
            self._database,
            home=name,
            member=Member(name, f"https://{name}", (), None, LEASE_S),
            identity=f"{name}-{self.boots}",
        )
        permits = self._permits.join(store.identity)
        sharing = ClusterSharing(
            store, self.off_loop, self.clock, permits=permits, places=self._places()
        )
        await self.boot(store=store, sharing=sharing)

    def _places(self) -> ClusterPlaces:
        """A worker is found on the machine on which it is."""
        cluster = self._cluster
        return ClusterPlaces(
            node=self.directory.name,
            labels=(),
            slots=self.slots,
            places=AnyNode(self, cluster),
            remote=Machines(cluster).at,
            workplaces=lambda name: cluster.node(name).engine.workplace,
            health=self.health,
        )

    @property
    def owned(self) -> frozenset[int]:
        return owned_by(self.engine)


def owned_by(engine: Engine) -> frozenset[int]:
    """The partitions that this node of a cluster has."""
    partitions = engine.partitions
    assert isinstance(partitions, SharedPartitions)
    return partitions.owned


class Cluster:
    """Its nodes, and the clock of all."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.clock, self.ids = FakeClock(), Ids()
        self.database = SharedDatabase(
            directory / "subagents.db", lambda: self.clock.steady_ms() / 1000
        )
        self.permits = SharedPermits(self.database)
        self.nodes: list[Node] = []
        self._known: dict[str, Node] = {}

    async def join(self, **defaults: Any) -> Node:
        """One more node; its first look is done."""
        directory = self._directory / f"node{len(self.nodes)}"
        directory.mkdir()
        node = Node(directory, self, **defaults)
        self._known[directory.name] = node
        await node.start()
        self.nodes.append(node)
        return node

    def node(self, name: str) -> Node:
        """One that joined, alive or not."""
        return self._known[name]

    def session_of(self, node: Node) -> SessionKey:
        """A session that this node decides about."""
        return self.sessions_of(node)[0]

    def sessions_of(self, node: Node) -> tuple[SessionKey, SessionKey]:
        """Two of different partitions."""
        found: dict[int, SessionKey] = {}
        for number in range(10_000):
            session = SessionKey(f"agent:main:session{number}")
            if partition_of(session) in node.owned:
                found[partition_of(session)] = session
            if len(found) == 2:
                first, second = found.values()
                return first, second
        raise AssertionError("it has no partitions")


def in_cluster(directory: Path, scenario: Callable[[Cluster], Awaitable[T]]) -> T:
    """Play the scenario and take all nodes down again."""

    async def play() -> T:
        cluster = Cluster(directory)
        try:
            return await scenario(cluster)
        finally:
            for node in cluster.nodes:
                await node.crash()

    return asyncio.run(play())
