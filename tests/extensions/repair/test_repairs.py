"""A repaired run says so, and one that cannot go on ends with all that hangs on it."""

import pytest
from tests.engine.world import ME, World

from subagents.domain.run.outcome import Reason, Status
from subagents.domain.run.run import MessageKind, Phase, Run
from subagents.domain.run.values import RunId
from subagents.extensions.repair.repairs import Repair, apply_repairs


async def repaired(world: World, *repairs: Repair) -> None:
    await world.crash()
    work = apply_repairs(world.store, world.off_loop, world.clock, world.ids, repairs)
    world.let_commits_go()
    await world.clock.result(work)
    await world.boot()


async def unread(world: World) -> list[RunId]:
    rows = await world.engine.queries.inbox(ME)
    found = [row.message for row in rows if row.consumed_at_ms is None]
    return [each.run_id for each in found if each.kind is MessageKind.ANNOUNCEMENT]


def end(run: Run) -> tuple[Status, Reason | None]:
    assert run.outcome is not None
    return run.outcome.status, run.outcome.reason


@pytest.mark.requirement("repair:applied")
async def test_a_repaired_run_goes_on_and_says_what_was_found(world: World) -> None:
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    await repaired(world, Repair(run_id, "its row was damaged"))

    run = await world.run(run_id)
    assert run.phase is Phase.RUNNING
    assert await world.folded(run_id) == run
    steps = [type(each.event).__name__ for each in world.store.journal(run_id)]
    assert "Repaired" in steps
    assert len(run.attempts) == 1


@pytest.mark.requirement("repair:lost")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_run_that_cannot_go_on_ends_as_lost_with_its_children_and_dependants(
    world: World,
) -> None:
    parent = await world.spawn("hang")
    await world.until(parent, Phase.RUNNING)
    child = await world.spawn_child(parent, "hang")
    await world.until(child, Phase.RUNNING)
    after = await world.spawn("quick", depends_on=(parent,))
    await repaired(world, Repair(parent, "nothing tells its end", is_lost=True))
    ends = [end(await world.until(each)) for each in (parent, child, after)]

    assert ends[0] == (Status.LOST, Reason.RECORD_LOST)
    assert ends[1][0] is Status.CANCELLED
    assert ends[2] == (Status.ERROR, Reason.DEPENDENCY_FAILED)
    assert set(await unread(world)) == {parent, after}
    assert await world.folded(parent) == await world.run(parent)


@pytest.mark.requirement("repair:told-once")
async def test_nobody_is_told_again_of_an_end_that_may_be_known(world: World) -> None:
    run_id, other = await world.spawn("hang"), await world.spawn("hang")
    await world.until(other, Phase.RUNNING)
    lost = Repair(run_id, "lost", is_lost=True, is_told=True)
    await repaired(world, lost, Repair(other, "lost", is_lost=True))
    await world.clock.advance(5)

    assert await unread(world) == [other]
    assert (await world.run(run_id)).phase is Phase.COMPLETED
