"""What every way to a place does: one taker each, with the label, while slots are free."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from tests.extensions.cluster.places.place_worlds import (
    CountedSlots,
    PolledWorld,
    offer,
    play,
    working,
)
from tests.extensions.cluster.postgres.postgres_server import PostgresServer
from tests.runtimes.attempt_harness import until_async

from subagents.errors import StoreUnavailable


@pytest.mark.requirement("cluster:places")
def test_an_attempt_gets_a_node_and_keeps_it_whoever_asks_again(world: PolledWorld) -> None:
    async def go() -> None:
        slots = CountedSlots(4)
        async with working(world.taking("b", slots)):
            assert await world.places().place(offer(1)) == "b"
        assert slots.kept == {offer(1).attempt_id}
        async with working(world.taking("c", CountedSlots(4))):
            assert await world.places().place(offer(1)) == "b"
            assert await world.places().place(offer(1, epoch=2)) == "b"

    play(go)


@pytest.mark.requirement("cluster:places")
def test_only_a_node_with_the_label_takes_what_asks_for_it(world: PolledWorld) -> None:
    async def go() -> None:
        plain, gpu = CountedSlots(None), CountedSlots(None)
        nodes = world.taking("plain", plain), world.taking("gpu", gpu, ["gpu", "linux"])
        async with working(*nodes):
            wanted = [offer(each, label="gpu") for each in range(1, 6)]
            takers = await asyncio.gather(*map(world.places().place, wanted))
        assert set(takers) == {"gpu"}
        assert plain.kept == set()

    play(go)


@pytest.mark.requirement("cluster:places")
def test_what_asks_for_no_place_goes_only_where_its_directory_is(
    world: PolledWorld, tmp_path: Path
) -> None:
    async def go() -> None:
        missing = tmp_path / "missing"
        for each in range(100, 180):  # however many wait before it
            world.offers.put(offer(each, cwd=str(missing)))
        async with working(world.taking("b", CountedSlots(None), ["x"])):
            placing = asyncio.create_task(world.places().place(offer(1, cwd=str(missing))))
            assert await world.places().place(offer(2, cwd=str(tmp_path))) == "b"
            assert not placing.done()
            missing.mkdir()
            assert await placing == "b"
            # Who asks for a place is told there, in words, that the directory is missing.
            assert await world.places().place(offer(3, cwd="/not/there", label="x")) == "b"

    play(go)


@pytest.mark.requirement("cluster:slots")
def test_no_node_takes_more_than_it_has_slots_and_all_are_placed_in_the_end(
    world: PolledWorld,
) -> None:
    async def go() -> None:
        slots = {"b": CountedSlots(2), "c": CountedSlots(3)}
        ended = 0
        async with working(*(world.taking(name, each) for name, each in slots.items())):
            places = world.places()
            waiting = {
                asyncio.create_task(places.place(offer(each))): offer(each) for each in range(1, 13)
            }
            while waiting:
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    which = waiting.pop(task)
                    assert all(len(each.kept) <= (each.most or 0) for each in slots.values())
                    assert which.attempt_id in slots[task.result()].kept
                    await places.settle(which.attempt_id)
                    slots[task.result()].give_up(which.attempt_id)
                    ended += 1
        assert ended == 12

    play(go)


@pytest.mark.requirement("cluster:places")
def test_an_attempt_waits_until_a_node_comes_and_its_next_owner_gets_the_same_one(
    world: PolledWorld,
) -> None:
    async def go() -> None:
        first = asyncio.create_task(world.places().place(offer(1)))
        find = partial(world.offers.find, offer(1).attempt_id)
        await until_async("offered", find)
        first.cancel()
        second = asyncio.create_task(world.places().place(offer(1, epoch=2)))
        async with working(world.taking("b", CountedSlots(1))):
            assert await second == "b"
        found = await asyncio.to_thread(find)
        assert found is not None
        assert (found[0].epoch, found[1]) == (2, "b")

    play(go)


@pytest.mark.requirement("cluster:places")
def test_what_was_settled_is_taken_by_nobody(world: PolledWorld) -> None:
    async def go() -> None:
        placing = asyncio.create_task(world.places().place(offer(1)))
        find = partial(world.offers.find, offer(1).attempt_id)
        await until_async("offered", find)
        placing.cancel()
        await world.places().settle(offer(1).attempt_id)
        await world.places().settle(offer(1).attempt_id)
        slots = CountedSlots(None)
        async with working(world.taking("b", slots)):
            assert await world.places().place(offer(2)) == "b"
        assert slots.kept == {offer(2).attempt_id}

    play(go)


@pytest.mark.requirement("cluster:places")
def test_a_node_that_drains_takes_nothing(world: PolledWorld) -> None:
    async def go() -> None:
        world.may_take = False
        async with working(world.taking("b", CountedSlots(None))):
            placing = asyncio.create_task(world.places().place(offer(1)))
            await until_async("offered", partial(world.offers.find, offer(1).attempt_id))
            assert not placing.done()
            world.may_take = True
            assert await placing == "b"

    play(go)


@pytest.mark.requirement("cluster:places")
def test_what_is_more_urgent_is_taken_first_but_for_temporal_which_only_tends_to(
    postgres: PostgresServer,
) -> None:
    world = PolledWorld(postgres)

    async def go() -> None:
        slots = CountedSlots(0)
        async with working(world.taking("b", slots)):
            places, order = world.places(), list[int]()

            async def place(number: int, priority: int) -> None:
                which = offer(number, priority=priority)
                await places.place(which)
                order.append(priority)
                await places.settle(which.attempt_id)
                slots.give_up(which.attempt_id)

            tasks = []
            for number, priority in enumerate((0, 0, 0, 20), start=1):
                tasks.append(asyncio.create_task(place(number, priority)))
                await until_async("offered", partial(world.offers.find, offer(number).attempt_id))
            slots.most = 1
            await asyncio.gather(*tasks)
        assert order == [20, 0, 0, 0]

    play(go)
    world.close()


@pytest.mark.requirement("cluster:places")
def test_of_nodes_that_take_at_the_same_time_one_gets_it(world: PolledWorld) -> None:
    world.offers.put(offer(1))
    attempt = offer(1).attempt_id
    assert list(world.offers.take([attempt], "b", 1)) == [attempt]
    assert list(world.offers.take([attempt], "c", 1)) == []
    assert world.offers.takers([attempt]) == {attempt: "b"}


@pytest.mark.requirement("cluster:places")
def test_a_database_that_is_gone_says_so_and_is_found_again(
    world: PolledWorld, postgres: object
) -> None:
    world.offers.put(offer(1))
    [link] = world.offers._tables._idle.queue
    link.close()
    assert world.offers.find(offer(1).attempt_id) is not None
    lost = type(world.offers)("postgresql:///x?host=/not/there")
    with pytest.raises(StoreUnavailable):
        lost.put(offer(1))
