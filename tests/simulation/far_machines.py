"""How the machines of a simulated cluster call each other about attempts: the real calls and their
answers, over a line that breaks when either end does, and the real way to places.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from subagents.domain.run.values import AttemptId
from subagents.errors import (
    DaemonUnreachable,
    NodeOver,
    NodeUnreachable,
    RuntimeUnavailable,
    StoreUnavailable,
)
from subagents.extensions.cluster.engine.cluster_placement import ClusterPlaces
from subagents.extensions.cluster.node_ports import SURE, NodeAnswer, NodeStream, Offer
from subagents.extensions.cluster.places import asked_nodes
from subagents.extensions.cluster.places.polled_places import LOOK_S, PolledPlaces, PolledTaking
from subagents.extensions.cluster.remote.attempt_calls import PATH, decode_call
from subagents.extensions.cluster.remote.attempt_host import AttemptHost
from subagents.extensions.cluster.remote.node_health import NodeHealth
from subagents.extensions.cluster.remote.remote_runtime import RemoteRuntime
from subagents.extensions.cluster.remote.slots import KEPT_MS
from subagents.extensions.cluster.shared_store import Survey
from subagents.ports import Launch, Runtime, Workplace
from subagents.ports.workers import OfAttempt

if TYPE_CHECKING:
    from tests.simulation.cluster_world import Machine, NodeLife

RESULT_BYTES_MAX = 1_000_000


class MachineClient:
    """See ``node_ports.NodeClient``.

    Args:
        machine: Whose daemon calls.
        survey: What that knows of the nodes.
    """

    def __init__(self, machine: "Machine", survey: Callable[[], Survey]) -> None:
        self._machine, self._survey = machine, survey

    def _life(self, node: str, starting: Launch | None = None) -> "tuple[Machine, NodeLife]":
        alive = [each for each in self._survey().nodes.values() if each.name == node]
        if max((each.left_s for each in alive), default=0.0) <= 0:
            raise NodeOver(f"node {node} is over")
        found = next(each for each in self._machine.world.machines if each.name == node)
        life = found.life
        if life is None or not life.is_serving:
            raise NodeUnreachable(f"nobody is on {node}", details={SURE: True})
        if starting is not None:  # whatever becomes of the call
            found.world.told.add(starting.attempt_id)
        if found.world.loop.is_frozen(life):
            raise NodeUnreachable(f"nobody answers on {node}")
        return found, life

    async def request(
        self, node: str, method: str, path: str, body: bytes | None = None, *, timeout_s: float
    ) -> NodeAnswer:
        del method
        name, given = path.removeprefix(PATH), body or b""
        starting = decode_call(given).launch if name == "start" else None
        machine, life = self._life(node, starting)

        async def answer(_engine: object) -> NodeAnswer:
            if path != asked_nodes.PATH:
                return await life.host.call(name, given)
            is_kept = await life.far.taking.asked(asked_nodes.decode(given))
            return NodeAnswer(200, msgspec.json.encode(is_kept))

        try:
            found = await machine.call(answer, patience_s=timeout_s, is_of_memory=False)
        except DaemonUnreachable as error:
            raise NodeUnreachable(error.message) from error
        if path == asked_nodes.PATH and found.body == b"true":
            machine.world.strike_after_yes(self._machine, machine)
        return found

    @asynccontextmanager
    async def stream(
        self, node: str, method: str, path: str, body: bytes | None = None, *, idle_s: float
    ) -> AsyncIterator[NodeStream]:
        del method, path, idle_s
        _, life = self._life(node)
        found = await life.host.watch(body or b"")
        assert not isinstance(found, NodeAnswer)
        ended = asyncio.ensure_future(life.is_over.wait())

        async def pieces() -> AsyncIterator[bytes]:
            while True:
                coming = asyncio.ensure_future(anext(found, None))
                try:
                    await asyncio.wait((coming, ended), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not coming.done():
                        coming.cancel()
                        await asyncio.wait((coming,))
                if ended.done():
                    raise NodeUnreachable(f"{node} was cut off")
                piece = coming.result()
                if piece is None:
                    return
                yield piece

        try:
            yield NodeStream(200, pieces())
        finally:
            ended.cancel()
            await found.aclose()


class MachineSlots:
    """As ``Slots``: live workers of a machine, and what is kept for one that is to be started."""

    def __init__(self, machine: "Machine", most: int | None) -> None:
        self._machine, self._most = machine, most
        self._kept: dict[AttemptId, int] = {}

    @property
    def used(self) -> set[AttemptId]:
        now_ms, workers = self._machine.clock.elapsed_ms(), self._machine.world.workers
        kept = {attempt for attempt, until_ms in self._kept.items() if until_ms > now_ms}
        return kept | workers.live_on(self._machine.name)

    @property
    def free(self) -> int | None:
        return None if self._most is None else max(self._most - len(self.used), 0)

    def keep(self, attempt: AttemptId) -> bool:
        # Begun here, it has its slot, though its worker is gone: an owner that died knew of it.
        is_here = self._machine.world.workers.machine_of.get(attempt) == self._machine.name
        if self.free == 0 and attempt not in self.used and not is_here:
            return False
        self._kept[attempt] = self._machine.clock.elapsed_ms() + KEPT_MS
        return True

    def give_up(self, attempt: AttemptId) -> None:
        self._kept.pop(attempt, None)

    @contextmanager
    def starting(self, of: OfAttempt) -> Iterator[None]:
        if not self.keep(of.attempt_id):
            raise RuntimeUnavailable("no slot is free")
        with self.resuming(of):
            yield

    @contextmanager
    def resuming(self, of: OfAttempt, turn: int = 1) -> Iterator[None]:
        del turn
        try:
            yield
        finally:
            self.give_up(of.attempt_id)


class Here:
    """See ``node_ports.Places``: where slots have no end, work is where it is decided about."""

    def __init__(self, node: str) -> None:
        self._node = node

    async def place(self, _offer: Offer) -> str:
        await asyncio.sleep(LOOK_S)
        return self._node

    async def settle(self, _attempt_id: AttemptId) -> None:
        """Nothing is offered."""


class ReachedOffers:
    """The rows of a world, as one machine reaches them; see ``PostgresOffers``."""

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine

    def __getattr__(self, name: str) -> Any:
        machine = self._machine
        if machine.is_cut_off or machine.world.database.is_away:
            raise StoreUnavailable("the offers cannot be reached (simulated)")
        return getattr(machine.world.offers, name)


class FarPlaces:
    """What one start of a node has of the others' slots, and gives them of its own.

    Args:
        machine: Where it is.
        survey: What it knows of the nodes.
        workplace: The files of all.
    """

    def __init__(
        self, machine: "Machine", survey: Callable[[], Survey], workplace: Callable[[], Workplace]
    ) -> None:
        client, offers = MachineClient(machine, survey), ReachedOffers(machine)
        nodes = asked_nodes.AskedNodes(machine.name, client, survey)
        self.slots = MachineSlots(machine, machine.world.slots)

        def may_take() -> bool:
            own = next((e for e in survey().nodes.values() if e.name == machine.name), None)
            return own is not None and own.left_s > 0 and not own.is_draining

        self.taking = PolledTaking(
            offers,  # type: ignore[arg-type]  # as ``PostgresOffers``
            machine.off_loop,
            machine.clock,
            node=machine.name,
            labels=(),
            slots=self.slots,  # type: ignore[arg-type]  # as ``Slots``
            may_take=may_take,
            survey=survey,
        )
        polled = PolledPlaces(offers, machine.off_loop, machine.clock, nodes.ask)  # type: ignore[arg-type]
        self.places = ClusterPlaces(
            node=machine.name,
            labels=(),
            slots=self.slots,  # type: ignore[arg-type]  # as ``Slots``
            places=Here(machine.name) if machine.world.slots is None else polled,
            remote=lambda node, runtime: RemoteRuntime(
                *(runtime, node, client, machine.clock, machine.off_loop),
                result_bytes_max=RESULT_BYTES_MAX,
            ),
            workplaces=lambda _node: workplace(),
            health=NodeHealth(lambda: None, machine.clock.elapsed_ms),
        )

    def host(self, machine: "Machine", runtimes: Mapping[str, Runtime]) -> AttemptHost:
        """What answers the calls of others."""
        return AttemptHost(runtimes, self.slots, machine.off_loop, {})  # type: ignore[arg-type]
