"""What a node of a cluster has in its engine besides; see ``engine.engine.Sharing``."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from subagents.engine.attempts.placement import Placement
from subagents.engine.attempts.provider_gate import ProviderGates
from subagents.engine.attempts.shared_spending import SharedSpending
from subagents.engine.engine import Engine
from subagents.engine.kernel.kernel import Kernel
from subagents.extensions.cluster.engine.cluster_placement import ClusterPlacement, ClusterPlaces
from subagents.extensions.cluster.engine.membership import Membership
from subagents.extensions.cluster.engine.moves import Moves
from subagents.extensions.cluster.engine.permit_desk import PermitDesk
from subagents.extensions.cluster.engine.shared_partitions import SharedPartitions
from subagents.extensions.cluster.node_permits import Permits
from subagents.extensions.cluster.shared_store import SeenNode, SharedStore
from subagents.ports import EngineClock, OffLoop, Runtime, Workplace

PeersPromise = Callable[[Sequence[SeenNode]], Awaitable[bool]]
"""Whether each of these nodes, asked now, promises what ``Ownership.promise`` says."""


async def no_peers(peers: Sequence[SeenNode]) -> bool:
    """There are none to ask."""
    return not peers


class ClusterSharing:
    """See ``engine.engine.Sharing``.

    Args:
        store: Of the cluster.
        off_loop: For the store.
        clock: Of the engine.
        permits: What its nodes count together; None = nothing.
        peers_promise: Asks the other nodes.
        places: The other places for attempts.
    """

    def __init__(
        self,
        store: SharedStore,
        off_loop: OffLoop,
        clock: EngineClock,
        *,
        places: ClusterPlaces,
        permits: Permits | None = None,
        peers_promise: PeersPromise = no_peers,
    ) -> None:
        self._store, self._off_loop, self._clock = store, off_loop, clock
        self._permits, self._peers_promise, self._places = permits, peers_promise, places
        self.partitions = SharedPartitions(store, off_loop, places.health)
        """What is ours."""

    async def all_promise(self) -> bool:
        """See ``Sharing.all_promise``."""
        return await self._peers_promise(self.partitions.peers)

    def permit_desk(
        self,
        kernel: Kernel,
        gates: ProviderGates,
        spending: SharedSpending,
        on_answer: Callable[[], None],
    ) -> PermitDesk | None:
        """See ``Sharing.permit_desk``."""
        if self._permits is None:
            return None
        return PermitDesk(
            self._permits, kernel, self.partitions, gates, spending, on_answer=on_answer
        )

    def placement(
        self,
        kernel: Kernel,
        runtimes: Mapping[str, Runtime],
        workplace: Workplace,
        node: str | None,
    ) -> Placement:
        """See ``Sharing.placement``."""
        del node  # as the other places are told it
        return ClusterPlacement(kernel, runtimes, workplace, self._places, self.partitions)

    def membership(self, engine: Engine, memory: asyncio.Lock) -> Membership:
        """See ``Sharing.membership``."""
        self.partitions.is_proven = lambda: engine.ownership.is_proven
        moves = Moves(self._store, engine, self.partitions, self._off_loop, memory)
        return Membership(
            self._store,
            self.partitions,
            engine.ownership,
            self._off_loop,
            self._clock,
            moves=moves,
        )
