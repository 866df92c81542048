"""An owner asks the nodes that it sees for a place; a row is for what none of them takes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from starlette.requests import Request
from tests.extensions.cluster.places.place_worlds import CountedSlots, Rows, offer

from subagents.errors import NodeUnreachable
from subagents.extensions.cluster.node_ports import NodeAnswer
from subagents.extensions.cluster.places.asked_nodes import AskedNodes, routes
from subagents.extensions.cluster.places.polled_places import LATELY, PolledPlaces, PolledTaking
from subagents.extensions.cluster.shared_store import SeenNode, Survey

T = TypeVar("T")


class Turns:
    """A clock of which a wait is a turn of the loop."""

    def __init__(self) -> None:
        self.waits = 0

    async def sleep(self, seconds: float) -> None:
        del seconds
        self.waits += 1
        await asyncio.sleep(0)


class World:
    """An owner ``a``, and nodes with slots whose doors answer."""

    def __init__(self, **slots: int | None) -> None:
        self.rows, self.clock = Rows(), Turns()
        self.survey = Survey({name: seen(name) for name in ("a", *slots)}, {})
        self.slots = {name: CountedSlots(most) for name, most in slots.items()}
        self.nodes = {name: self._taking(name) for name in slots}
        self.called: list[str] = []
        self.silent: set[str] = set()
        self.places = self.owner()

    def owner(self) -> PolledPlaces:
        asking = AskedNodes("a", self, lambda: self.survey)  # type: ignore[arg-type]  # no streams
        return PolledPlaces(self.rows, at_once, self.clock, asking.ask)  # type: ignore[arg-type]

    def _taking(self, name: str) -> PolledTaking:
        return PolledTaking(
            self.rows,  # type: ignore[arg-type]  # as ``PostgresOffers``
            at_once,
            self.clock,  # type: ignore[arg-type]  # only waits
            node=name,
            labels=self.survey.nodes[name].labels,
            slots=self.slots[name],  # type: ignore[arg-type]  # as ``Slots``
            may_take=lambda: True,
            survey=lambda: self.survey,
        )

    async def request(
        self, node: str, method: str, path: str, body: bytes | None = None, *, timeout_s: float
    ) -> NodeAnswer:
        del timeout_s
        self.called.append(node)
        [route] = routes(self.nodes[node].asked)
        assert (route.path, route.methods) == (path, {method})

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": body}

        answer = await route.endpoint(Request({"type": "http"}, receive))
        if node in self.silent:
            raise NodeUnreachable("the answer was lost")
        return NodeAnswer(answer.status_code, bytes(answer.body))

    def see(self, name: str, **changed: object) -> None:
        node = self.survey.nodes[name]._replace(**changed)  # type: ignore[arg-type]
        self.survey = self.survey._replace(nodes={**self.survey.nodes, name: node})


async def at_once(work: Callable[[], T]) -> T:
    return work()


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - nobody tells it
        await asyncio.sleep(0)


def seen(name: str) -> SeenNode:
    url = f"https://{name}"
    return SeenNode(f"start-of-{name}", name, name, url, (name, "gpu"), None, "1", 6.0, False)


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.mark.requirement("cluster:places")
def test_nodes_are_asked_in_turn_and_what_one_takes_is_in_no_row() -> None:
    world = World(b=None, c=None, d=None, e=None, f=None, g=None)
    world.see("d", labels=("other",))
    world.see("e", is_draining=True)
    world.see("f", degraded="no space")
    world.see("g", left_s=0.0)

    async def go() -> None:
        takers = [await world.places.place(offer(each, label="gpu")) for each in range(1, 4)]
        assert takers == world.called == ["b", "c", "b"]
        assert world.slots["b"].kept == {offer(1).attempt_id, offer(3).attempt_id}
        assert world.rows.asked == []
        # Who was asked knows its labels itself.
        world.called.clear()
        world.see("d", labels=("gpu",))
        world.nodes["d"]._labels = ("other",)
        world.see("b", left_s=0.0)
        assert [await world.places.place(offer(9, label="gpu"))] == ["c"]
        assert not world.slots["d"].kept

    play(go)


@pytest.mark.requirement("cluster:places")
def test_a_node_whose_answer_is_lost_keeps_a_slot_for_nothing_and_the_next_one_is_asked() -> None:
    world = World(b=1, c=1)
    world.silent.add("b")

    async def go() -> None:
        assert await world.places.place(offer(1, label="gpu")) == "c"
        assert world.called == ["b", "c"]
        assert world.slots["b"].kept == {offer(1).attempt_id}

    play(go)


@pytest.mark.requirement("cluster:places", "cluster:slots")
def test_what_found_no_slot_waits_in_a_row_and_is_not_overtaken() -> None:
    world = World(b=1)

    async def go() -> None:
        assert await world.places.place(offer(1, label="gpu")) == "b"
        first = asyncio.create_task(world.places.place(offer(2, label="gpu")))
        await until(lambda: offer(2).attempt_id in world.rows.kept)
        second = asyncio.create_task(world.places.place(offer(3, label="gpu")))
        await until(lambda: offer(3).attempt_id in world.rows.kept)
        assert world.called == ["b", "b"]  # whoever waits says it for those behind

        world.slots["b"].give_up(offer(1).attempt_id)
        late = asyncio.create_task(world.owner().place(offer(4, label="gpu")))
        await until(lambda: offer(4).attempt_id in world.rows.kept)
        assert await world.nodes["b"].take() == 1
        assert await first == "b"
        assert not second.done()
        world.slots["b"].most = 8
        assert await world.nodes["b"].take() == 2
        assert [await second, await late] == ["b", "b"]
        # All is taken: nothing is owed, and nobody is sent to a row any more.
        assert await world.places.place(offer(5, label="gpu")) == "b"
        assert offer(5).attempt_id not in world.rows.kept

    play(go)


@pytest.mark.requirement("cluster:places")
def test_a_node_looks_for_rows_only_when_it_owes_a_slot_or_its_survey_shows_some() -> None:
    world = World(b=1)

    async def go() -> None:
        running = asyncio.create_task(world.nodes["b"].run())

        async def looks() -> int:
            """In a thousand waits."""
            world.rows.asked.clear()
            begun = world.clock.waits
            await until(lambda: world.clock.waits >= begun + 1_000)
            return world.rows.asked.count("open")

        assert await looks() == LATELY
        assert await looks() == 0
        world.survey = world.survey._replace(has_offers=True)
        assert await looks() == 1
        world.survey = world.survey._replace(has_offers=False)
        assert await looks() == 0
        assert await world.nodes["b"].asked(offer(1))
        assert await looks() == 0
        assert not await world.nodes["b"].asked(offer(2))
        assert await looks() == 0  # it has no slot yet
        world.slots["b"].give_up(offer(1).attempt_id)
        assert await looks() == LATELY
        running.cancel()

    play(go)
