"""Which sessions and runs this node decides about, and who decides about the others.

Each session belongs, with all below it, to one partition, and each partition to one node at a time
(``domain.cluster.partitioning``, docs/decisions/0078). Whoever is about to decide, or to answer
from memory, asks here first; ``Elsewhere`` says whose it is.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from subagents.domain.cluster.partitioning import partition_of
from subagents.domain.run.run import OVER, Run
from subagents.domain.run.values import RunId, SessionKey, agent_of
from subagents.engine.kernel.partitions import Partitions
from subagents.errors import Elsewhere
from subagents.extensions.cluster.remote.node_health import NodeHealth
from subagents.extensions.cluster.shared_store import SeenNode, SharedStore, Survey
from subagents.ports import OffLoop

LOOK_MS: Final = 500
"""How long a follower may wait before it looks for what others wrote."""
LATE_S: Final = 0.001
"""What a node has left that is late when nobody may say that it is over."""
KNOWN_MAX: Final = 10_000
"""Runs whose partition is remembered; a run never changes it."""


class SharedPartitions(Partitions):
    """What is ours, as the engine has loaded it, and the newest look at the rest.

    Args:
        store: Of the cluster.
        off_loop: For questions to the store.
        health: Of this node.
    """

    is_shared = True
    look_ms = LOOK_MS

    def __init__(self, store: SharedStore, off_loop: OffLoop, health: NodeHealth) -> None:
        self._store = store
        self._off_loop = off_loop
        self._health = health
        self._known: OrderedDict[RunId, int] = OrderedDict()
        self.owned: frozenset[int] = frozenset()
        """Loaded: about these we decide."""
        self.survey = Survey({}, {})
        """Who had what when it was asked last."""
        self.peers: tuple[SeenNode, ...] = ()
        """All that may take over what is ours, with our word for it in the store."""
        self.is_proven: Callable[[], bool] = lambda: True
        """Whether we may say of others that they are over; see ``Ownership.is_proven``."""
        self._told: frozenset[str] = frozenset()

    @property
    def identity(self) -> str:
        """Ours in the cluster."""
        return self._store.identity

    def seen(self, number: int) -> int:
        """See ``Partitions.seen``: of others' events some may be missing in memory."""
        del number
        return self._store.seen_number

    async def look(self) -> None:
        """Ask the store who has what.

        Raises:
            StoreUnavailable: It cannot be asked.
        """
        store = self._store
        survey = await self._off_loop(store.survey)
        if not self.is_proven():
            survey = survey._replace(nodes=dict(map(self._given_time, survey.nodes.items())))
        self.survey = survey
        # Of a home that was started again there are two: the older one is over, or will be.
        alive = sorted(self.survey.nodes.values(), key=lambda each: each.left_s)
        found = {each.home: each for each in alive if each.home != store.home}
        # Nodes of before 0.2 look for their identity, which is of one start.
        names = frozenset(found).union(each.identity for each in found.values())
        if names != self._told:
            # Whoever is not asked any more learns first that it is not: from then on it waits.
            self.peers = (*self.peers, *found.values())
            await self._off_loop(lambda: store.tell_peers(names))
            self._told = names
        self.peers = tuple(found.values())

    def _given_time(self, seen: tuple[str, SeenNode]) -> tuple[str, SeenNode]:
        """After an outage nobody renewed its right: who is late may be at work all the same."""
        identity, node = seen
        is_late = node.left_s <= 0 and not node.is_over and identity != self._store.identity
        return identity, node._replace(left_s=LATE_S) if is_late else node

    async def forget(self, node: str) -> None:
        """See ``SharedStore.forget``; whoever looks next takes what it had."""
        store = self._store
        await self._off_loop(lambda: store.forget(node))

    async def load(self) -> None:
        """What is ours in the store is what the engine loads now.

        Raises:
            StoreUnavailable: It cannot be asked.
        """
        await self.look()
        self.owned = self.claimed

    @property
    def claimed(self) -> frozenset[int]:
        """What was ours in the store when it was asked last, loaded or not."""
        own = self.identity
        return frozenset(each for each, owner in self.survey.owners.items() if owner == own)

    async def has(self, session: SessionKey) -> bool:
        """Whether a session is ours."""
        return await self.partition_of_session(session) in self.owned

    def of_live(self, live: Mapping[RunId, Run], run: Run) -> int | None:
        """The partition of a run in memory; None = the tree above it is not there."""
        while (above := run.lineage.requester_run) is not None:
            found = live.get(above)
            if found is None:
                return self._known.get(run.id)
            run = found
        return partition_of(run.requester)

    def is_alive(self, node: str) -> bool:
        """Whether some start of the node with that name was, when the store was asked last."""
        return any(each.name == node and each.left_s > 0 for each in self.survey.nodes.values())

    def is_draining(self, node: str) -> bool:
        """Whether the start of that name that is alive gives back what it has."""
        nodes = self.survey.nodes.values()
        return any(each.name == node and each.left_s > 0 and not each.takes for each in nodes)

    @property
    def is_leaving(self) -> bool:
        """Whether we drain, or start nothing, and somebody takes what we give back: nothing is to
        begin here."""
        nodes = self.survey.nodes
        own = nodes.get(self.identity)
        goes = own is not None and not own.takes
        return goes and any(each.left_s > 0 and each.takes for each in nodes.values())

    @property
    def problem(self) -> str | None:  # type: ignore[override]  # it changes by itself
        """See ``Partitions.problem``."""
        return self._health.problem

    async def say_problem(self) -> None:
        """Look whether anything can be started here, and let the others know.

        Raises:
            StoreUnavailable, Fenced: See ``SharedStore.degrade``.
        """
        store, problem = self._store, await self._health.look(self._off_loop)
        own = self.survey.nodes.get(self.identity)
        if own is not None and own.degraded != problem:
            await self._off_loop(lambda: store.degrade(problem))
            await self.look()

    @property
    def labels(self) -> frozenset[str]:
        """Of all nodes that were alive when the store was asked last."""
        nodes = self.survey.nodes.values()
        return frozenset(label for each in nodes if each.left_s > 0 for label in each.labels)

    def owner_of(self, partition: int) -> SeenNode | None:
        """Who has a partition, as far as known; None = nobody, or nobody who is alive."""
        identity = self.survey.owners.get(partition)
        node = None if identity is None else self.survey.nodes.get(identity)
        return node if node is not None and node.left_s > 0 else None

    def require(self, partition: int) -> None:
        """Refuse what another node decides.

        Raises:
            Elsewhere: It is not ours; says whose it is.
        """
        if partition in self.owned:
            return
        owner = self.owner_of(partition)
        if owner is not None and owner.identity == self._store.identity:
            owner = None  # claimed, and not loaded yet
        raise Elsewhere(
            partition,
            url=None if owner is None else owner.url,
            node=None if owner is None else owner.name,
        )

    async def require_session(self, session: SessionKey) -> int:
        """The same for whoever decides about a session: what it spawns, and its inbox.

        Returns:
            Its partition.

        Raises:
            Elsewhere: See ``require``.
            StoreUnavailable: Nobody can say whose it is.
        """
        partition = await self.partition_of_session(session)
        self.require(partition)
        return partition

    async def require_run(self, run_id: RunId) -> None:
        """The same for a run; one that is nowhere is nobody's, and passes.

        Raises:
            Elsewhere: See ``require``.
            StoreUnavailable: Nobody can say whose it is.
        """
        partition = await self.partition_of_run(run_id)
        if partition is not None:
            self.require(partition)

    async def require_read(self, run: Run | None) -> None:
        """The same for whoever read a run that is not in memory: an open one is as its owner says.

        Raises:
            Elsewhere: See ``require``.
            StoreUnavailable: Nobody can say whose it is.
        """
        if run is not None and run.phase not in OVER:
            await self.require_run(run.id)

    async def partition_of_session(self, session: SessionKey) -> int:
        """The partition of a session: of the run whose agent speaks under it, else its own."""
        if is_workers(session):
            store = self._store
            found = await self._off_loop(lambda: store.partition_of_worker(session))
            if found is not None:
                return found
        return partition_of(session)

    @asynccontextmanager
    async def exclusively(self, what: str) -> AsyncIterator[None]:
        """See ``Partitions.exclusively``."""
        store = self._store
        release = await self._off_loop(lambda: store.lock(what))
        try:
            yield
        finally:
            await self._off_loop(release)

    def has_run(self, run_id: RunId) -> bool:
        """Whether a run is ours; one that is nowhere is. Blocking."""
        found = self._known.get(run_id)
        if found is None:
            found = self._store.partition(run_id)
        return found is None or found in self.owned

    async def partition_of_run(self, run_id: RunId) -> int | None:
        """The partition of a run; None = there is no such run."""
        store, known = self._store, self._known.get(run_id)
        if known is not None:
            return known
        found = await self._off_loop(lambda: store.partition(run_id))
        if found is not None:
            self._known[run_id] = found
            if len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)
        return found


def is_workers(session: SessionKey) -> bool:
    """Whether it may be the session of a run's agent, by its form."""
    return session.startswith(f"agent:{agent_of(session)}:subagent:")
