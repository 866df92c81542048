"""Where attempts run: here, or on another node of the cluster.

Who decides about a run is not where its worker runs. A run that asks for no place works where its
owner is, as long as that has a free slot, and else on any node that has one and its directory. The
place of an attempt is in its journal before anything is started there, and never changes.
"""

import asyncio
import errno
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from subagents.domain.rules.places import is_bound_to_files
from subagents.domain.run.events import AttemptPlaced
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, attempt_id
from subagents.engine.attempts.placement import Placement
from subagents.engine.kernel.kernel import Kernel
from subagents.errors import NodeOver, RuntimeUnavailable, StoreUnavailable
from subagents.extensions.cluster.engine.shared_partitions import SharedPartitions
from subagents.extensions.cluster.node_ports import SURE, Offer, Places
from subagents.extensions.cluster.remote.node_health import NodeHealth
from subagents.extensions.cluster.remote.slots import Slots
from subagents.ports import Batch, Launch, Runtime, StartedInfo, Workplace

log = logging.getLogger(__name__)

LOOK_S: Final = 0.1
"""The pause between two looks for a slot here, of a run that can work nowhere else."""
AGAIN_S: Final = 1.0
"""The pause after nobody could say who took an offer."""


@dataclass(kw_only=True)
class ClusterPlaces:
    """What a node of a cluster knows of places.

    Args:
        node: Our name.
        labels: Of this node.
        slots: What is free here.
        places: Finds other nodes.
        remote: The runtime of the same name, as it is on the node that is named.
        workplaces: Where files are, by the name of a node.
        health: Whether anything can be started here.
    """

    node: str
    labels: tuple[str, ...]
    slots: Slots
    places: Places
    remote: Callable[[str, Runtime], Runtime]
    workplaces: Callable[[str], Workplace]
    health: NodeHealth

    def may_run_here(self, run: Run) -> bool:
        """Whether this node has what the run asks for."""
        label = run.resolved.place
        return label is None or label in self.labels


class ClusterPlacement(Placement):
    """Decides and records where attempts run.

    Args:
        kernel: The engine's.
        runtimes: The runtimes of this node, by their names.
        workplace: The files of this node.
        cluster: The other places.
        partitions: Know which nodes are alive, and which of them begin nothing new.
    """

    def __init__(
        self,
        kernel: Kernel,
        runtimes: Mapping[str, Runtime],
        workplace: Workplace,
        cluster: ClusterPlaces,
        partitions: SharedPartitions,
    ) -> None:
        super().__init__(runtimes, workplace, cluster.node)
        self._ledger, self._clock = kernel.ledger, kernel.clock
        self._cluster = cluster
        self._is_alive, self._is_draining = partitions.is_alive, partitions.is_draining
        self._placing: dict[RunId, asyncio.Task[str]] = {}
        self._untold: dict[RunId, str | None] = {}
        """Tokens of attempts that we placed elsewhere, where nobody was told to start them."""
        self._ledger.on_commit(self._withdraw)

    def at_grant(self, run: Run) -> str | None:
        """The place of the attempt that is granted a slot now; None = it is not decided yet."""
        cluster = self._cluster
        goes_on = not run.attempts and run.session.continues is not None
        if goes_on or not cluster.may_run_here(run):
            return None
        next_one = attempt_id(run.id, len(run.attempts) + 1)
        bound = self._judged_node(run) or self._session_node(run)
        is_here = bound in {None, cluster.node} and cluster.slots.keep(next_one)
        return cluster.node if is_here else None

    def runtime_of(self, run: Run, number: int | None = None) -> Runtime | None:
        """See ``Placement.runtime_of``."""
        runtime = super().runtime_of(run, number)
        if runtime is None or not run.attempts:
            return runtime
        node = run.attempts[(number or len(run.attempts)) - 1].node
        if node is None or node == self._cluster.node:
            return runtime
        return self._cluster.remote(node, runtime)

    def workplace_of(self, run: Run) -> Workplace:
        """See ``Placement.workplace_of``."""
        node = run.attempts[-1].node if run.attempts else None
        if node is None or node == self._cluster.node:
            return super().workplace_of(run)
        return self._cluster.workplaces(node)

    def _withdraw(self, batch: Batch) -> None:
        """A run that is to end waits for no place any more."""
        if self._placing or self._untold:
            for run in filter(_is_ending, batch.runs.values()):
                self._untold.pop(run.id, None)
                if (placing := self._placing.get(run.id)) is not None:
                    placing.cancel()

    async def place(self, run: Run) -> Run:
        """See ``Placement.place``."""
        cluster, node = self._cluster, run.attempt.node
        token = self._ledger.tokens.get(run.id, run.attempt.number)
        if node is not None and node != cluster.node:
            if self._is_alive(node):
                return run
            # One that another owner had meanwhile has another token.
            if token is None or self._untold.get(run.id) != token:
                raise RuntimeUnavailable(
                    f"node {node} is over, which was to start it; whether it did, nobody knows"
                )
        elif node is not None and cluster.may_run_here(run) and cluster.slots.keep(run.attempt_id):
            return run
        placing = asyncio.ensure_future(self._found(cluster, run))
        self._placing[run.id] = placing
        try:
            if _is_ending(self._ledger.live.get(run.id, run)):
                placing.cancel()
            await asyncio.wait({placing})
            found = None if placing.cancelled() else placing.result()
        finally:
            placing.cancel()
            del self._placing[run.id]
        if found is not None and found != cluster.node:
            self._untold[run.id] = token
        if found is not None and found != node:
            run = await self._placed(run, found)
        try:
            # Also where nobody took it: whoever has a slot later would keep it for that.
            await cluster.places.settle(run.attempt_id)
        except StoreUnavailable as error:
            log.warning("the offer of %s stays for a while: %s", run.attempt_id, error)
        if found is None:
            raise RuntimeUnavailable("it was ended before it had a place")
        return run

    async def start(self, run: Run, runtime: Runtime, launch: Launch) -> StartedInfo:
        """See ``Placement.start``; what runs here uses a slot of ours.

        Where a node cannot start it for a reason of its own, or is over before it was told, it gets
        another place when it is tried again (docs/decisions/0110).
        """
        cluster = self._cluster
        if run.attempt.node == cluster.node:
            with cluster.slots.starting(launch):
                return await runtime.start(launch)
        untold = self._untold.pop(run.id, None)
        try:
            return await runtime.start(launch)
        except NodeOver as error:
            if untold is None or not error.details.get(SURE):
                raise RuntimeUnavailable(error.message) from error
            self._untold[run.id] = untold
            raise RuntimeUnavailable(error.message) from OSError(errno.EHOSTDOWN, error.message)
        except RuntimeUnavailable as error:
            if error.details.get(SURE):
                await self._placed(run, cluster.node)  # whoever places it next looks from here
            raise

    async def _placed(self, run: Run, node: str) -> Run:
        placed = AttemptPlaced(at_ms=self._clock.now_ms(), attempt=run.attempt.number, node=node)
        await self._ledger.apply(run.id, placed)
        return self._ledger.published.get(run.id, run)

    async def _found(self, cluster: ClusterPlaces, run: Run) -> str:
        """The node that keeps a slot for it."""
        judged = self._judged_node(run)
        before = judged or self._session_node(run)
        if before is None and run.session.continues is not None:
            before = self._session_node(await self._ledger.load_run(run.session.continues.run_id))
        while before is not None and before != cluster.node and self._is_alive(before):
            if judged is not None or not self._is_draining(before):
                return before  # the work that it judges is there, or its program's session
            await self._clock.sleep(LOOK_S)  # until the node is back, or over
        if is_bound_to_files(run) or before == cluster.node:
            while not cluster.slots.keep(run.attempt_id):
                await self._clock.sleep(LOOK_S)
            return cluster.node
        offer = Offer(
            attempt_id=run.attempt_id,
            run_id=run.id,
            epoch=self._ledger.epoch,
            label=run.resolved.place,
            priority=run.spec.priority,
            cwd=run.resolved.cwd,
        )
        while True:
            try:
                taker = await cluster.places.place(offer)
                if self._is_alive(taker):
                    return taker
                # It ended before its name was on record: nothing was started there.
                await cluster.places.settle(run.attempt_id)
            except StoreUnavailable as error:
                log.warning("%s has no place yet: %s", run.attempt_id, error)
                await self._clock.sleep(AGAIN_S)

    def _judged_node(self, run: Run) -> str | None:
        """Where the work is that it judges; None = it is no judge."""
        judges, above = run.lineage.judges, run.lineage.requester_run
        judged = None if above is None else self._ledger.live.get(above)
        if judges is None or judged is None or len(judged.attempts) < judges:
            return None
        return judged.attempts[judges - 1].node

    def _session_node(self, run: Run) -> str | None:
        """Where the session is that its newest, or next, attempt goes on with; None = a new one."""
        ended = [each for each in run.attempts if each.outcome is not None]
        return ended[-1].node if ended and ended[-1].session.native is not None else None


def _is_ending(run: Run) -> bool:
    return (
        run.is_settled
        or run.control.cancel is not None
        or run.budget.stop is not None
        or (bool(run.attempts) and run.attempt.evidence.stop is not None)
    )
