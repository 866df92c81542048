"""What happens to a run happens to the runs around it in the same commit."""

import pytest
from tests.engine.world import World

from subagents.domain.run.outcome import (
    Reason,
    Status,
)
from subagents.domain.run.run import Phase
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import announcement_id


@pytest.mark.requirement("cancel:cascades", "field:children-billed-on")
@pytest.mark.world(max_spawn_depth=3, max_concurrent=1)
async def test_a_cancel_reaches_running_queued_and_waiting_descendants(world: World) -> None:
    parent = await world.spawn("hang")
    await world.until(parent, Phase.RUNNING)
    running = await world.spawn_child(parent, "hang")
    await world.until(running, Phase.RUNNING)
    queued = await world.spawn_child(parent, "hang")
    waiting = await world.spawn_child(parent, depends_on=(queued,))
    grandchild = await world.spawn_child(running, "hang")
    await world.until(grandchild, Phase.RUNNING)
    family = [parent, running, queued, waiting, grandchild]
    assert (await world.run(queued)).phase is Phase.QUEUED
    assert (await world.run(waiting)).phase is Phase.WAITING

    await world.clock.result(world.engine.control.cancel(parent, by="me", reason="enough"))
    await world.clock.until(lambda: not world.engine.ledger.live, within_s=2)

    outcomes = [(await world.run(run_id)).outcome for run_id in family]
    assert all(outcome is not None for outcome in outcomes)
    assert {o.status for o in outcomes if o is not None} == {Status.CANCELLED}
    reasons = [o.reason for o in outcomes if o is not None]
    assert reasons == [Reason.CANCELLED_BY_CALLER] + [Reason.PARENT_ENDED] * 4
    assert world.runtime.starts_of(queued) == world.runtime.starts_of(waiting) == 0
    unread = [row.message.run_id for row in world.store.inbox(None, unconsumed=True)]
    assert unread == [parent]


@pytest.mark.requirement("children:follow-up-turn", "children:no-announce-while-active")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_parent_is_told_all_results_in_one_turn_before_it_is_announced(
    world: World,
) -> None:
    parent = await world.spawn("parent")
    await world.until(parent, Phase.RUNNING)
    children = [await world.spawn_child(parent, name) for name in ("slow", "fail")]
    await world.until(parent, Phase.ENDING)
    assert [i.phase for i in [await world.run(children[0])]] == [Phase.RUNNING]

    run = await world.until(parent)

    (turn,) = world.runtime.turns
    assert "slowly done" in turn
    assert "failed: exit code 1" in turn
    assert run.attempt.turn.number == 2
    for child in children:
        assert (await world.run(child)).announcement_consumed_ms is not None
    unread = [row.message.run_id for row in world.store.inbox(None, unconsumed=True)]
    assert unread == [parent]


@pytest.mark.requirement("children:appended")
@pytest.mark.world(max_spawn_depth=2, abilities=Abilities())
async def test_without_turns_the_childrens_results_are_part_of_the_parents(world: World) -> None:
    parent = await world.spawn("parent")
    await world.until(parent, Phase.RUNNING)
    await world.spawn_child(parent, "slow", label="helper")

    run = await world.until(parent)

    assert run.result == (
        "parent is done\n\n[Sub-agent results]\n"
        '"helper" just completed successfully:\n```\nslowly done\n```'
    )


@pytest.mark.requirement("children:told-once", "wait:any-all")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_parent_that_waited_for_its_child_is_not_told_again(world: World) -> None:
    parent = await world.spawn("slow")
    session = (await world.until(parent, Phase.RUNNING)).session_key
    child = await world.spawn_child(parent, "quick")
    found = await world.clock.result(
        world.engine.mailbox.wait([child], session=session, timeout_s=30, reader=session)
    )
    assert found.offered == (announcement_id(child),)
    await world.clock.result(world.engine.mailbox.acknowledge(found.offered, reader=session))

    run = await world.until(parent)

    assert (run.result, world.runtime.turns) == ("slowly done", [])
