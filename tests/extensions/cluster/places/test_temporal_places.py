"""Of places through Temporal, what the other way has not: what is said to it."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.extensions.cluster.places.place_worlds import (
    CountedSlots,
    TemporalWorld,
    offer,
    play,
    working,
)
from tests.extensions.cluster.places.temporal_server import TemporalServer, history
from tests.extensions.cluster.postgres.postgres_server import PostgresServer
from tests.free_ports import free_port
from tests.runtimes.attempt_harness import until_async

from subagents.engine.kernel.system_clock import SystemClock
from subagents.errors import StoreUnavailable
from subagents.extensions.cluster.node_ports import Offer

pytest.importorskip("temporalio")


@pytest.fixture
def world(postgres: PostgresServer, temporal_server: TemporalServer) -> Iterator[TemporalWorld]:
    made = TemporalWorld(postgres, temporal_server)
    yield made
    made.close()


@pytest.mark.requirement("cluster:temporal-secrets")
def test_temporal_is_not_told_why_a_node_could_not_ask_its_database(
    world: TemporalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    slots = CountedSlots(None)
    taking = world.taking("b", slots)
    asked: list[str] = []

    def find(attempt: str) -> None:
        asked.append(attempt)
        raise StoreUnavailable("connection to hush.example refused")

    async def go() -> None:
        with monkeypatch.context() as broken:
            broken.setattr(world.offers, "find", find)
            placing = asyncio.create_task(world.places().place(offer(1)))
            async with working(taking):
                await until_async("asked for it", lambda: asked)
                # Who offers it comes again, and gets its place when the database answers.
                await until_async("asked again", lambda: len(asked) > 1)
                broken.undo()
                assert await placing == "b"
        queue = world.address.queue(None)
        said = [each for each in await history(world.server.target) if each[0] == queue]
        assert said
        for _, arguments, described in said:
            assert arguments == [offer(1).attempt_id, 1]
            assert "hush" not in described

    play(go)


@pytest.mark.requirement("cluster:temporal-away")
def test_of_all_that_wait_for_a_temporal_that_is_away_one_asks_at_a_time_and_it_is_told_once(
    world: TemporalWorld, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from subagents.extensions.cluster.places.temporal_places import TemporalPlaces  # noqa: PLC0415 - an extra

    module = TemporalPlaces.__module__
    monkeypatch.setattr(f"{module}.AGAIN_S", 0.01)
    caplog.set_level("INFO", logger=module)
    address = world.address._replace(target=f"127.0.0.1:{free_port()}")
    places = TemporalPlaces(address, world.offers, world.off_loop, SystemClock())
    asking, most = 0, list[int]()
    start = places._start

    async def counted(which: Offer) -> object:
        nonlocal asking
        asking += 1
        most.append(asking)
        try:
            return await start(which)
        finally:
            asking -= 1

    monkeypatch.setattr(places, "_start", counted)

    async def go() -> None:
        tasks = [asyncio.create_task(places.place(offer(each))) for each in range(1, 6)]
        await until_async("each asked, and some again", lambda: len(most) > 20)
        for each in tasks:
            each.cancel()
        await asyncio.wait(tasks)

    play(go)
    # At first nobody knew.
    assert set(most[len(most) // 2 :]) == {1}
    said = [each.getMessage() for each in caplog.records if each.name == module]
    assert len(said) == 1
    assert said[0].startswith("new attempts get no place on other nodes until Temporal answers: ")


@pytest.mark.requirement("cluster:temporal-away")
def test_not_all_that_wait_come_to_temporal_at_once(
    world: TemporalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    from subagents.extensions.cluster.places.temporal_places import STARTS_MAX, TemporalPlaces  # noqa: PLC0415

    places = TemporalPlaces(world.address, world.offers, world.off_loop, SystemClock())
    asking, most = 0, 0
    start = places._start

    async def counted(which: Offer) -> object:
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        try:
            return await start(which)
        finally:
            asking -= 1

    monkeypatch.setattr(places, "_start", counted)

    async def go() -> None:
        async with working(world.taking("b", CountedSlots(None))):
            wanted = [places.place(offer(each)) for each in range(1, 3 * STARTS_MAX)]
            assert set(await asyncio.gather(*wanted)) == {"b"}

    play(go)
    assert 1 < most <= STARTS_MAX


@pytest.mark.requirement("cluster:temporal-away")
def test_a_call_that_temporal_cancels_ends_no_wait_for_a_place(
    world: TemporalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    from temporalio.service import RPCError, RPCStatusCode, WorkflowService  # noqa: PLC0415

    monkeypatch.setattr("subagents.extensions.cluster.places.temporal_places.AGAIN_S", 0.01)
    polls = 0
    ask = WorkflowService.poll_activity_execution

    async def poll(service: WorkflowService, *request: Any, **options: Any) -> object:
        nonlocal polls
        polls += 1
        if polls <= 2:
            raise RPCError("operation was canceled", RPCStatusCode.CANCELLED, b"")
        return await ask(service, *request, **options)

    async def go() -> None:
        waiting = asyncio.create_task(world.places().place(offer(1)))
        await until_async("canceled twice, and asked again", lambda: polls > 2)
        assert not waiting.done()
        async with working(world.taking("b", CountedSlots(None))):
            assert await waiting == "b"
        # One whose own task is cancelled does end.
        leaving = asyncio.create_task(world.places().place(offer(2)))
        seen = polls
        await until_async("it waits for an answer", lambda: polls > seen)
        leaving.cancel()
        await asyncio.wait({leaving})
        assert leaving.cancelled()

    monkeypatch.setattr(WorkflowService, "poll_activity_execution", poll)
    play(go)
