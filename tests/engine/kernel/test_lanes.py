"""Slots: never more than a lane has, best first, and no deadlock between nested runs."""

from pathlib import Path

import pytest
from tests.engine.world import World, in_world

from subagents.domain.run.outcome import (
    OK,
)
from subagents.domain.run.run import Phase


@pytest.mark.requirement("lanes:caps", "field:cap-exceeded")
def test_never_more_runs_work_at_once_than_the_lane_has_slots(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        ids = [await world.spawn("slow") for _ in range(20)]
        most = 0
        while world.parts.ledger.live:
            busy = [r for r in world.parts.ledger.published.values() if r.phase is Phase.RUNNING]
            most = max(most, len(busy))
            await world.clock.advance(1)

        assert most == 3
        ends = [(await world.run(run_id)).ended_at_ms for run_id in ids]
        assert ends == sorted(ends, key=lambda end: end or 0), "first come, first served"

    in_world(tmp_path, scenario, max_concurrent=3)


@pytest.mark.requirement("lanes:order")
def test_a_higher_priority_overtakes_the_queue(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.spawn("slow")
        later = await world.spawn("slow")
        urgent = await world.spawn("slow", priority=9)
        await world.clock.advance(11)

        assert (await world.run(urgent)).phase is Phase.RUNNING
        assert (await world.run(later)).phase is Phase.QUEUED

    in_world(tmp_path, scenario, max_concurrent=1)


@pytest.mark.requirement("lanes:no-deadlock", "field:deadlock-at-one")
def test_a_lane_of_one_slot_does_not_deadlock_with_nested_runs(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        parent = await world.spawn("hang")
        session = (await world.until(parent, Phase.RUNNING)).session_key
        child = await world.spawn_child(parent, "quick")

        found = await world.clock.result(
            world.engine.wait([child], session=session, timeout_s=30, reader=session)
        )

        assert [run.id for run in found.completed] == [child]

    in_world(tmp_path, scenario, max_spawn_depth=2, max_concurrent=1)


@pytest.mark.requirement("lanes:turns-need-slots")
def test_a_parent_keeps_its_slot_for_the_turn_that_follows(tmp_path: Path) -> None:
    """With one slot, a second run must not start while the first has a turn to come."""

    async def scenario(world: World) -> None:
        parent = await world.spawn("parent")
        await world.until(parent, Phase.RUNNING)
        await world.spawn_child(parent, "slow")
        other = await world.spawn("quick")
        await world.until(parent, Phase.ENDING)
        assert (await world.run(other)).phase is Phase.QUEUED

        await world.until(parent)
        assert len(world.runtime.turns) == 1
        assert (await world.until(other)).outcome == OK

    in_world(tmp_path, scenario, max_spawn_depth=2, max_concurrent=1)
