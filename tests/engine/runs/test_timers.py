"""Due times are met, whatever the wall clock does."""

import pytest
from tests.engine.world import World

from subagents.domain.run.events import ClockStepped
from subagents.domain.run.outcome import Status
from subagents.domain.run.run import OVER, Phase
from subagents.errors import StoreUnavailable
from subagents.ports import Batch


@pytest.mark.requirement("timers:redriven")
async def test_what_became_due_while_nobody_looked_happens_soon(world: World) -> None:
    run_id = await world.spawn("fail", retry_count=1, retry_delay=3_000_000)
    await world.until(run_id, Phase.RETRY_WAIT)
    world.clock.jump(4_000)

    run = await world.until(run_id, within_s=10)

    assert len(run.attempts) == 2


@pytest.mark.requirement("timers:clock-steps")
@pytest.mark.parametrize("by_s", [-3_600, 8 * 3_600])
async def test_a_deadline_counts_the_time_that_passed_whatever_the_clock_is_set_to(
    world: World, by_s: int
) -> None:
    run_id = await world.spawn("hang", run_timeout_seconds=100)
    await world.until(run_id, Phase.RUNNING)
    await world.clock.advance(40)
    world.clock.set_wall(by_s=by_s)

    await world.clock.advance(50)
    before = await world.run(run_id)
    await world.clock.advance(15)
    after = await world.run(run_id)

    assert (before.outcome, before.phase) == (None, Phase.RUNNING)
    assert after.outcome is not None
    assert after.outcome.status is Status.TIMEOUT
    assert await world.folded(run_id) == after
    steps = [e.event for e in world.store.journal(run_id, limit=100)]
    assert [e.by_ms for e in steps if isinstance(e, ClockStepped)] == [by_s * 1_000]


@pytest.mark.requirement("timers:clock-steps")
@pytest.mark.parametrize("by_s", [-3_600, 8 * 3_600])
async def test_a_retry_comes_after_its_delay_whatever_the_clock_is_set_to(
    world: World, by_s: int
) -> None:
    run_id = await world.spawn("fail", retry_count=1, retry_delay=60_000)
    await world.until(run_id, Phase.RETRY_WAIT)
    world.clock.set_wall(by_s=by_s)

    await world.clock.advance(30)
    waiting = await world.run(run_id)
    await world.clock.advance(40)
    tried = await world.run(run_id)

    assert [len(waiting.attempts), len(tried.attempts)] == [1, 2]


@pytest.mark.requirement("timers:clock-steps")
async def test_a_daemon_that_begins_after_the_clock_was_set_goes_by_it(world: World) -> None:
    run_id = await world.spawn("hang", run_timeout_seconds=3_600)
    await world.until(run_id, Phase.RUNNING)
    await world.crash()
    world.clock.jump(3_700)
    await world.boot()

    run = await world.until(run_id, within_s=30)

    assert run.outcome is not None
    assert run.outcome.status is Status.TIMEOUT


@pytest.mark.requirement("timers:clock-steps", "children:follow-up-turn")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_run_that_waits_for_its_children_has_its_next_turn_although_the_machine_slept(
    world: World,
) -> None:
    parent = await world.spawn("parent", run_timeout_seconds=100)
    await world.until(parent, Phase.RUNNING)
    await world.spawn_child(parent, "slow")
    await world.until(parent, Phase.ENDING)
    world.clock.suspend(8 * 3_600)
    world.engine.timers.take_step()

    run = await world.until(parent)

    assert len(world.runtime.turns) == 1
    assert await world.folded(parent) == run


@pytest.mark.requirement("timers:clock-steps", "commit:failure-recovers")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_step_whose_commit_was_made_though_its_answer_was_lost_is_told_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = await world.spawn("parent", run_timeout_seconds=1_000)
    await world.until(parent, Phase.RUNNING)
    child = await world.spawn_child(parent, "slow")
    await world.until(child, Phase.RUNNING)
    commit, lost = world.store.commit, list[int]()

    def commit_badly(batch: Batch) -> int:
        if not lost:
            lost.append(commit(batch))
            raise StoreUnavailable("the answer was lost")
        if (known := world.store.run(child)) is not None and known.phase in OVER:
            monkeypatch.undo()
            world.store.failures_left = 1
        return commit(batch)

    monkeypatch.setattr(world.store, "commit", commit_badly)
    world.clock.suspend(3_600)
    world.engine.timers.take_step()
    await world.until(parent)

    for run_id in (parent, child):
        told = [entry.event for entry in world.store.journal(run_id, limit=100)]
        assert [e.by_ms for e in told if isinstance(e, ClockStepped)] == [3_600_000]
