"""While nothing can be recorded, workers whose time is over are ended all the same."""

import pytest
from tests.engine.world import World

from subagents.domain.run.outcome import Status
from subagents.domain.run.run import Phase
from subagents.domain.run.values import RunId
from subagents.errors import StoreUnavailable

BROKEN = 1_000
"""Commits and tries that fail: longer than any of these tests."""


async def break_store(world: World) -> None:
    """From now on nothing is committed, and the engine knows it."""
    world.store.failures_left = BROKEN
    with pytest.raises(StoreUnavailable):
        await world.try_spawn("quick")


async def mend_store(world: World) -> None:
    world.store.failures_left = 0
    await world.clock.until(lambda: world.engine.degraded is None, within_s=30)


def is_stopped(world: World, run_id: RunId) -> bool:
    return any(each.startswith(f"{run_id}#") for each in world.runtime.stopped)


@pytest.mark.requirement("cancel:broken-disk")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_cancel_that_cannot_be_stored_ends_the_workers_and_is_recorded_later(
    world: World,
) -> None:
    parent, other = await world.spawn("hang"), await world.spawn("hang")
    await world.until(parent, Phase.RUNNING)
    child = await world.spawn_child(parent, "hang")
    for each in (child, other):
        await world.until(each, Phase.RUNNING)
    await break_store(world)

    with pytest.raises(StoreUnavailable) as refused:
        await world.engine.control.cancel(parent, by="me")

    assert "ended all the same" in str(refused.value.hint)
    await world.clock.until(
        lambda: is_stopped(world, parent) and is_stopped(world, child), within_s=30
    )
    assert world.engine.degraded is not None
    assert not is_stopped(world, other)
    await mend_store(world)
    for each in (parent, child):
        run = await world.until(each)
        assert run.outcome is not None
        assert run.outcome.status is Status.CANCELLED
    assert (await world.run(other)).phase is Phase.RUNNING


@pytest.mark.requirement("cancel:broken-disk")
async def test_a_deadline_that_cannot_be_stored_ends_the_worker_once(world: World) -> None:
    run_id = await world.spawn("hang", run_timeout_seconds=60)
    await world.until(run_id, Phase.RUNNING)
    await break_store(world)

    await world.clock.advance(50)
    assert not is_stopped(world, run_id)
    await world.clock.advance(30)

    assert world.runtime.stopped.count(f"{run_id}#1") == 1
    await mend_store(world)
    run = await world.until(run_id)
    assert run.outcome is not None
    assert run.outcome.status is Status.TIMEOUT


@pytest.mark.requirement("cancel:broken-disk", "timers:clock-steps")
@pytest.mark.parametrize("is_known", [True, False])
async def test_a_step_of_the_clock_ends_nobody_while_nothing_can_be_stored(
    world: World, *, is_known: bool
) -> None:
    run_id = await world.spawn("hang", run_timeout_seconds=60)
    await world.until(run_id, Phase.RUNNING)
    if is_known:  # in memory, when the commit with it fails
        world.store.failures_left = BROKEN
        world.clock.set_wall(by_s=3_600)
        await world.clock.until(lambda: world.engine.degraded is not None, within_s=10)
    else:
        await break_store(world)
        world.clock.set_wall(by_s=3_600)

    await world.clock.advance(20)
    assert not is_stopped(world, run_id)
    await mend_store(world)
    await world.clock.advance(10)

    assert (await world.run(run_id)).phase is Phase.RUNNING
    await world.clock.advance(40)
    assert is_stopped(world, run_id)
