"""A node's part in its cluster: what nobody has it takes, what is above its share it gives back.

One look at the store in each quarter of a lease. What has no owner is taken at once; what belongs
to a node that did not renew its right, only by one that renewed its own without a break for a whole
lease: after an outage of the database nobody did, so nobody takes anything (docs/decisions/0078).

Partitions that are idle here are given back first, and those with a worker are kept until it has
ended. A node that drains gives everything back, also what is at work: the workers go on here, and
another node decides about them. So does one whose machine can start nothing, where another can.
"""

import contextlib
import logging
from collections import Counter
from collections.abc import Collection, Mapping
from math import ceil
from typing import TYPE_CHECKING, Final

from subagents.domain.cluster.partitioning import PARTITIONS
from subagents.engine.kernel.ownership import Ownership
from subagents.errors import Fenced, StoreUnavailable
from subagents.extensions.cluster.engine.shared_partitions import SharedPartitions
from subagents.extensions.cluster.shared_store import SharedStore
from subagents.ports import EngineClock, OffLoop

if TYPE_CHECKING:
    from subagents.extensions.cluster.engine.moves import Moves

log = logging.getLogger(__name__)

LOOKS: Final = 4
"""How many looks there are in the length of a lease."""
EVERY: Final = frozenset(range(PARTITIONS))


class Membership:
    """The task that looks.

    Args:
        store: Of the cluster.
        partitions: What is ours.
        ownership: Of our node's right.
        off_loop: For the store.
        clock: Of the engine.
        moves: Takes partitions into the engine, and lets them go.
    """

    def __init__(
        self,
        store: SharedStore,
        partitions: SharedPartitions,
        ownership: Ownership,
        off_loop: OffLoop,
        clock: EngineClock,
        *,
        moves: "Moves",
    ) -> None:
        self._store = store
        self._partitions = partitions
        self._ownership = ownership
        self._off_loop = off_loop
        self._clock = clock
        self._moves = moves
        self._seen_free: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
        """The free partitions at the two looks before, the older one first."""
        self._was_above = False
        self._drained_for = 0
        """How many looks ago it began to drain."""

    async def run(self, right_s: float) -> None:
        """Look until cancelled, ``LOOKS`` times while a right of so many seconds holds."""
        while True:
            try:
                await self.look()
            except StoreUnavailable as error:
                log.warning("the cluster cannot be looked at: %s", error)
                self._seen_free, self._was_above = (frozenset(), frozenset()), False
            except Fenced:
                return  # the renewal, or the next commit, says the same
            await self._clock.sleep(right_s / LOOKS)

    async def drain(self, *, is_on: bool) -> None:
        """See ``Engine.drain``."""
        await self._off_loop(lambda: self._store.drain(is_on=is_on))
        await self.look()

    async def leave(self) -> None:
        """The node stops: others have at once what nothing of is under way here.

        The rest stays ours until our right ends. Its workers go on, and are adopted by the next
        daemon of this home, or end before anybody else may begin again.
        """
        with contextlib.suppress(StoreUnavailable, Fenced):
            await self._moves.give_back(self._moves.idle())

    async def look(self) -> None:
        """One look, and what follows from it.

        Raises:
            StoreUnavailable: It cannot be asked now.
            Fenced: We are over.
        """
        await self._partitions.look()
        await self._partitions.say_problem()
        if self._store.has_unsigned:
            await self._off_loop(self._store.sign_all)
        survey, identity = self._partitions.survey, self._store.identity
        own = self._partitions.claimed
        if missing := own - self._partitions.owned:
            await self._moves.adopt(missing)  # claimed, and not loaded: that failed
        owned = Counter(survey.owners.values())
        alive = [e for e in survey.nodes.values() if e.left_s > 0 and not e.is_draining]
        # Where no machine can start anything, each keeps what it has until it can.
        well = [each for each in alive if each.takes] or alive
        takers = Counter({each.identity: owned[each.identity] for each in well})
        if identity not in takers:
            own_row = survey.nodes.get(identity)
            if own_row is not None and (own_row.is_draining or self._partitions.is_leaving):
                await self._give_all_back()
            return  # else our right was not renewed in time, and may be: what is ours stays
        self._drained_for = 0
        free = EVERY - survey.owners.keys()
        over = {each for each in owned if self._is_over(each) and self._ownership.is_proven}
        if over:
            free |= {part for part, owner in survey.owners.items() if owner in over}
        # What lay there at the looks before has to be taken by somebody, whatever is fair.
        overdue = free & self._seen_free[0] & self._seen_free[1]
        self._seen_free = (self._seen_free[1], free)
        taken = overdue or set(wanted(free, takers, identity))
        if taken:
            self._ownership.is_taking = True
            try:
                await self._moves.adopt(taken)
            finally:
                self._ownership.is_taking = False
        above = 0 if free else excess(takers, identity)
        # Twice in a row: while a node comes or goes, partitions do not wander to and fro.
        if above and self._was_above:
            await self._give_back_some(-(-above // 2))
        self._was_above = above > 0

    def _is_over(self, identity: str) -> bool:
        node = self._partitions.survey.nodes.get(identity)
        return node is None or node.left_s <= 0

    async def _give_all_back(self) -> None:
        """What is idle now; what is at work where somebody takes it, soon with all that it does."""
        await self._give_back_some(PARTITIONS)
        if not self._partitions.is_leaving:
            return
        # A start, or a message that is handed over, is done in a moment, as a rule. What takes
        # longer, such as a check or the wait for a place, is begun anew by whoever goes on.
        self._drained_for += 1
        if some := self._moves.movable(in_effect=self._drained_for > LOOKS):
            await self._moves.give_back(some, at_work=True)

    async def _give_back_some(self, number: int) -> None:
        idle = self._moves.idle()
        some = sorted(idle, key=lambda part: (idle[part], part))[:number]
        if some:
            await self._moves.give_back(some)


def excess(owned: Mapping[str, int], node: str) -> int:
    """How many partitions a node has above its fair share.

    Args:
        owned: The number of partitions of each node that is alive and takes some.
        node: One of them.
    """
    return max(owned[node] - _share(owned), 0)


def wanted(free: Collection[int], owned: Mapping[str, int], node: str) -> list[int]:
    """Which of the partitions without an owner a node takes, up to its fair share.

    Nodes that ask at the same time begin at different places.

    Args:
        free: Partitions without an owner, or whose owner is over.
        owned: See ``excess``; the node is in it.
        node: One of them.
    """
    names = sorted(owned)
    begin = PARTITIONS * names.index(node) // len(names)
    in_turn = sorted(free, key=lambda part: (part - begin) % PARTITIONS)
    return in_turn[: max(_share(owned) - owned[node], 0)]


def _share(owned: Mapping[str, int]) -> int:
    return ceil(PARTITIONS / len(owned))
