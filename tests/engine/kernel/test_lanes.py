"""Slots: never more than a lane has, best first, and no deadlock between nested runs."""

from pathlib import Path

import msgspec
import pytest
from tests.engine.world import ME, World

from subagents.domain.rules.wait_causes import WaitKind
from subagents.domain.run.outcome import (
    OK,
)
from subagents.domain.run.run import Phase
from subagents.domain.run.spec import Abilities, Budget, RunSpec
from subagents.domain.run.values import RunId
from subagents.engine.runs.spawn_call import PlanAsked, RunAsked, SpawnContext


@pytest.mark.requirement("lanes:caps", "field:cap-exceeded")
@pytest.mark.world(max_concurrent=3)
async def test_never_more_runs_work_at_once_than_the_lane_has_slots(world: World) -> None:
    ids = [await world.spawn("slow") for _ in range(20)]
    most = 0
    while world.engine.ledger.live:
        busy = [r for r in world.engine.ledger.published.values() if r.phase is Phase.RUNNING]
        most = max(most, len(busy))
        await world.clock.advance(1)

    assert most == 3
    ends = [(await world.run(run_id)).ended_at_ms for run_id in ids]
    assert ends == sorted(ends, key=lambda end: end or 0), "first come, first served"


@pytest.mark.requirement("lanes:order")
@pytest.mark.world(max_concurrent=1)
async def test_a_higher_priority_overtakes_the_queue(world: World) -> None:
    await world.spawn("slow")
    later = await world.spawn("slow")
    urgent = await world.spawn("slow", priority=9)
    await world.clock.advance(11)

    assert (await world.run(urgent)).phase is Phase.RUNNING
    assert (await world.run(later)).phase is Phase.QUEUED


@pytest.mark.requirement("lanes:no-deadlock", "field:deadlock-at-one")
@pytest.mark.world(max_spawn_depth=2, max_concurrent=1)
async def test_a_lane_of_one_slot_does_not_deadlock_with_nested_runs(world: World) -> None:
    parent = await world.spawn("hang")
    session = (await world.until(parent, Phase.RUNNING)).session_key
    child = await world.spawn_child(parent, "quick")

    found = await world.clock.result(
        world.engine.mailbox.wait([child], session=session, timeout_s=30, reader=session)
    )

    assert [run.id for run in found.completed] == [child]


@pytest.mark.requirement("lanes:turns-need-slots")
@pytest.mark.world(max_spawn_depth=2, max_concurrent=1)
async def test_a_parent_keeps_its_slot_for_the_turn_that_follows(world: World) -> None:
    """With one slot, a second run must not start while the first has a turn to come."""
    parent = await world.spawn("parent")
    await world.until(parent, Phase.RUNNING)
    await world.spawn_child(parent, "slow")
    other = await world.spawn("quick")
    await world.until(parent, Phase.ENDING)
    assert (await world.run(other)).phase is Phase.QUEUED

    await world.until(parent)
    assert len(world.runtime.turns) == 1
    assert (await world.until(other)).outcome == OK


def at_work(world: World) -> list[str]:
    published = world.engine.ledger.published.values()
    return sorted(run.resolved.label for run in published if run.phase is Phase.RUNNING)


async def plan_of(world: World, jobs: int | None, *specs: RunSpec) -> list[RunId]:
    receipts = await world.clock.result(
        world.engine.spawner.spawn_batch(
            [RunAsked(spec=each) for each in specs],
            SpawnContext(session=ME, settings=world.settings, cwd=str(world.directory)),
            plan=PlanAsked(name="p", jobs=jobs),
        )
    )
    return [each.run.id for each in receipts]


def steps(number: int, agent: str = "slow", **spec: object) -> list[RunSpec]:
    return [
        msgspec.convert(
            {"task": "x", "agentId": agent, "label": f"p{at}", **spec}, RunSpec, strict=False
        )
        for at in range(number)
    ]


@pytest.mark.requirement("plan:jobs:order")
async def test_runs_of_a_plan_start_in_its_order_and_wait_for_each_other_not_for_the_lane(
    world: World,
) -> None:
    runs = await plan_of(world, 1, *steps(8))
    await world.until(runs[0], Phase.RUNNING)
    now = world.engine.surroundings()
    first, second = [await world.run(each) for each in runs[:2]]
    cause = now.cause(second)
    assert (now.cause(first), cause and cause.kind) == (None, WaitKind.PLAN)
    assert now.lane(first).limit is None
    assert now.lane(second).limit == 'waits for others of plan "p": at most 1 work at once'
    await world.until(runs[-1])
    assert [each.run_id for each in world.runtime.launches] == runs


@pytest.mark.requirement("plan:jobs")
@pytest.mark.parametrize(
    ("jobs", "agent", "most"),
    [
        (1, "slow", 1),
        (2, "slow", 2),
        (3, "late_writer", 3),
        (4, "slow", 4),
        (9, "slow", 4),  # its lane has no more
        (None, "slow", 4),
        (2, "tells", 2),
        (2, "hang", 2),
    ],
)
@pytest.mark.world(max_concurrent=4)
async def test_at_most_so_many_runs_of_a_plan_work_at_once(
    world: World, jobs: int | None, agent: str, most: int
) -> None:
    ids = await plan_of(world, jobs, *steps(7, agent, runTimeoutSeconds=300))
    seen = 0
    while world.engine.ledger.live:
        seen = max(seen, len(at_work(world)))
        await world.clock.advance(1)
    assert seen == most
    assert all([(await world.run(each)).is_settled for each in ids])


@pytest.mark.requirement("plan:jobs")
@pytest.mark.world(max_concurrent=3)
async def test_a_plan_that_is_full_holds_up_nobody_else(world: World) -> None:
    ids = await plan_of(world, 1, *steps(5))
    other = await plan_of(world, 1, *[msgspec.structs.replace(steps(1)[0], label="o")])
    alone = await world.spawn("slow")
    await world.clock.advance(3)
    phases = [(await world.run(each)).phase for each in (*ids, *other, alone)]
    assert phases.count(Phase.RUNNING) == 3
    assert [(await world.run(each)).phase for each in (*other, alone)] == [Phase.RUNNING] * 2


@pytest.mark.requirement("plan:jobs")
@pytest.mark.parametrize("how", ["cancel", "fail", "retry", "restart", "pause", "depends"])
@pytest.mark.world(max_concurrent=4)
async def test_a_slot_of_a_plan_comes_free_however_its_run_leaves_it(
    world: World, how: str
) -> None:
    specs = steps(4, "flaky" if how == "retry" else "fail" if how == "fail" else "slow")
    if how == "retry":
        specs = [msgspec.structs.replace(each, retry_count=1) for each in specs]
    if how == "depends":
        specs[0] = msgspec.structs.replace(specs[0], depends_on=("p3",))
    ids = await plan_of(world, 1, *specs)
    await world.clock.advance(2)
    match how:
        case "cancel":
            busy = [each for each in ids if (await world.run(each)).phase is Phase.RUNNING]
            await world.clock.result(world.engine.control.cancel(busy[0], by="me"))
        case "restart":
            await world.restart()
        case "pause":
            queued = [each for each in ids if (await world.run(each)).phase is Phase.QUEUED]
            await world.clock.result(world.engine.control.pause(queued[0], by="me"))
            await world.clock.advance(15)
            await world.clock.result(world.engine.control.resume(queued[0], by="me"))
        case _:
            pass
    seen = 0
    for each in ids:
        while not (await world.run(each)).is_settled:
            seen = max(seen, len(at_work(world)))
            await world.clock.advance(1)
    assert seen <= 1


@pytest.mark.requirement("plan:jobs")
@pytest.mark.parametrize(("jobs", "runs", "times"), [(5, 9, 1), (9, 5, 1), (3, 9, 0), (9, 3, 0)])
@pytest.mark.world(max_concurrent=3)
async def test_more_jobs_than_slots_are_said_once(
    world: World, tmp_path: Path, jobs: int, runs: int, times: int
) -> None:
    receipts = await world.clock.result(
        world.engine.spawner.spawn_batch(
            [RunAsked(spec=each) for each in steps(runs, "quick")],
            SpawnContext(session=ME, settings=world.settings, cwd=str(tmp_path)),
            plan=PlanAsked(jobs=jobs),
        )
    )
    said = [text for each in receipts for text in each.warnings if "at once" in text]
    assert len(said) == times
    assert all("max_concurrent" in text for text in said)


@pytest.mark.requirement("budget:honest-receipt")
@pytest.mark.world(abilities=Abilities())
async def test_a_cap_of_a_plan_that_none_of_its_runs_can_keep_is_said_once(world: World) -> None:
    receipts = await world.clock.result(
        world.engine.spawner.spawn_batch(
            [RunAsked(spec=each) for each in steps(3, "quick")],
            SpawnContext(session=ME, settings=world.settings, cwd=str(world.directory)),
            plan=PlanAsked(budget=Budget(max_cost_usd=1)),
        )
    )
    first, *others = [each.warnings for each in receipts]
    assert ["maxCostUsd cannot stop this run" in text for text in first] == [True]
    assert not any(others)
