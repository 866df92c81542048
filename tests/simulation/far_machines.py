"""How the machines of a simulated cluster call each other about attempts: the real calls and their
answers, over a line that breaks when either end does.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from tests.extensions.cluster.places.place_worlds import CountedSlots

from subagents.domain.run.values import AttemptId
from subagents.errors import DaemonUnreachable, NodeOver, NodeUnreachable
from subagents.extensions.cluster.engine.cluster_placement import ClusterPlaces
from subagents.extensions.cluster.node_ports import NodeAnswer, NodeStream, Offer
from subagents.extensions.cluster.remote.attempt_calls import PATH
from subagents.extensions.cluster.remote.attempt_host import AttemptHost
from subagents.extensions.cluster.remote.node_health import NodeHealth
from subagents.extensions.cluster.remote.remote_runtime import RemoteRuntime
from subagents.extensions.cluster.shared_store import Survey
from subagents.ports import Runtime, Workplace
from subagents.ports.workers import OfAttempt

if TYPE_CHECKING:
    from tests.simulation.cluster_world import Machine

RESULT_BYTES_MAX = 1_000_000
LOOK_S = 0.1


class MachineClient:
    """See ``node_ports.NodeClient``.

    Args:
        machine: Whose daemon calls.
        survey: What that knows of the nodes.
    """

    def __init__(self, machine: "Machine", survey: Callable[[], Survey]) -> None:
        self._machine, self._survey = machine, survey

    def _host(self, node: str) -> "tuple[Machine, AttemptHost, asyncio.Event]":
        alive = [each for each in self._survey().nodes.values() if each.name == node]
        if max((each.left_s for each in alive), default=0.0) <= 0:
            raise NodeOver(f"node {node} is over")
        found = next(each for each in self._machine.world.machines if each.name == node)
        life = found.life
        if life is None or not life.is_serving or found.world.loop.is_frozen(life):
            raise NodeUnreachable(f"nobody answers on {node}")
        return found, life.host, life.is_over

    async def request(
        self, node: str, method: str, path: str, body: bytes | None = None, *, timeout_s: float
    ) -> NodeAnswer:
        del method
        machine, host, _ = self._host(node)
        name = path.removeprefix(PATH)
        try:
            return await machine.call(
                lambda _engine: host.call(name, body or b""),
                patience_s=timeout_s,
                is_of_memory=False,
            )
        except DaemonUnreachable as error:
            raise NodeUnreachable(error.message) from error

    @asynccontextmanager
    async def stream(
        self, node: str, method: str, path: str, body: bytes | None = None, *, idle_s: float
    ) -> AsyncIterator[NodeStream]:
        del method, path, idle_s
        _, host, is_over = self._host(node)
        found = await host.watch(body or b"")
        assert not isinstance(found, NodeAnswer)
        ended = asyncio.ensure_future(is_over.wait())

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


class AnySlots(CountedSlots):
    """As many as anybody likes, also for further turns."""

    def __init__(self) -> None:
        super().__init__(None)

    @contextmanager
    def resuming(self, of: OfAttempt, turn: int = 1) -> Iterator[None]:
        del of, turn
        yield


class Here:
    """See ``node_ports.Places``: what asks for no place works where it is decided about."""

    def __init__(self, node: str) -> None:
        self._node = node

    async def place(self, _offer: Offer) -> str:
        await asyncio.sleep(LOOK_S)
        return self._node

    async def settle(self, _attempt_id: AttemptId) -> None:
        """Nothing is offered."""


def host_of(machine: "Machine", runtimes: Mapping[str, Runtime]) -> AttemptHost:
    """What answers the calls of others on a machine."""
    return AttemptHost(runtimes, AnySlots(), machine.off_loop, {})  # type: ignore[arg-type]  # as ``Slots``


def places_of(
    machine: "Machine", survey: Callable[[], Survey], workplace: Callable[[], Workplace]
) -> ClusterPlaces:
    """What a daemon on a machine knows of the others."""
    client = MachineClient(machine, survey)
    return ClusterPlaces(
        node=machine.name,
        labels=(),
        slots=AnySlots(),  # type: ignore[arg-type]  # as ``Slots``
        places=Here(machine.name),
        remote=lambda node, runtime: RemoteRuntime(
            *(runtime, node, client, machine.clock, machine.off_loop),
            result_bytes_max=RESULT_BYTES_MAX,
        ),
        workplaces=lambda _node: workplace(),
        health=NodeHealth(lambda: None, machine.clock.elapsed_ms),
    )
