"""What one channel is about to bring, the channels that push leave alone: nobody is told twice."""

import asyncio
from pathlib import Path

import pytest
from tests.engine.world import ME, FakeCourier, World, in_world

from subagents.domain.run.outcome import Delivered, DeliveryPath
from subagents.domain.run.run import Phase
from subagents.domain.run.values import RunId, announcement_id
from subagents.engine.messages.delivery import BUSY


def is_under_way(world: World, run_id: RunId) -> bool:
    (row,) = [row for row in world.store.inbox(ME, unconsumed=True) if row.message.run_id == run_id]
    return world.engine.mailbox.is_under_way(row.message)


@pytest.mark.requirement("delivery:under-way")
async def test_a_result_is_under_way_while_a_call_waits_for_it_or_for_the_session(
    world: World,
) -> None:
    done, other = await world.spawn(), await world.spawn("hang")
    await world.until(done, Phase.COMPLETED)
    assert not is_under_way(world, done)
    calls = [
        asyncio.create_task(
            world.engine.mailbox.wait(runs, session=ME, until="all", timeout_s=60, reader="a")
        )
        for runs in ([done, other], [])
    ]
    for call in calls:
        await world.clock.idle()
        assert is_under_way(world, done)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    assert not is_under_way(world, done)


@pytest.mark.requirement("delivery:under-way")
async def test_a_client_that_polls_is_expected_only_so_long(world: World) -> None:
    done = await world.spawn()
    await world.until(done, Phase.COMPLETED)

    world.engine.mailbox.expect([announcement_id(done)], for_ms=11_000)
    assert is_under_way(world, done)
    await world.clock.advance(12)
    assert not is_under_way(world, done)


@pytest.mark.requirement("delivery:under-way")
def test_a_courier_carries_what_a_client_that_polled_never_came_for(tmp_path: Path) -> None:
    courier = FakeCourier("direct", Delivered(path=DeliveryPath.DIRECT))

    async def scenario(world: World) -> None:
        run_id = await world.spawn("slow")
        world.engine.mailbox.expect([announcement_id(run_id)], for_ms=60_000)
        run = await world.until(run_id, Phase.COMPLETED)

        assert run.delivery is not None
        first, *_, last = [each.outcome for each in run.delivery.tries]
        assert first == BUSY
        assert last == Delivered(path=DeliveryPath.DIRECT)
        assert run.announcement_consumed_ms is not None

    in_world(tmp_path, scenario, couriers=[courier])
