"""Nothing is observable before its commit, and memory holds what is open."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from tests.call_counts import counting_calls
from tests.engine.world import ME, FakeCourier, T, World, in_world

from subagents.domain.run.events import CancelRequested
from subagents.domain.run.linked_runs import Child, Children
from subagents.domain.run.outcome import OK
from subagents.domain.run.run import (
    Lineage,
    Phase,
    Run,
)
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import (
    RunId,
    announcement_id,
    replace,
)
from subagents.engine.kernel import cascade
from subagents.engine.kernel.ledger import GROUP_EVENTS
from subagents.errors import (
    NotFound,
    StoreUnavailable,
)
from subagents.extensions.testing.stored_values import a_run, over, spawned
from subagents.ports import Batch, RunFilter


@pytest.mark.requirement("commit:nothing-observable-before")
async def test_a_spawn_is_visible_to_nobody_before_its_commit(world: World) -> None:
    world.hold_commits()
    spawning = asyncio.ensure_future(world.try_spawn("quick"))
    await world.clock.advance(30)

    assert not spawning.done()
    assert world.engine.ledger.published == {}
    assert world.runtime.launches == []
    assert await world.engine.queries.runs(RunFilter()) == ()
    look = await world.engine.mailbox.wait([], session=ME, timeout_s=0, reader="r")
    assert look.completed == ()
    world.let_commits_go()
    await world.clock.result(spawning)
    assert len(world.runtime.launches) == 1


@pytest.mark.requirement("commit:nothing-observable-before", "field:early-notification")
def test_an_end_is_told_to_nobody_before_its_commit(tmp_path: Path) -> None:
    courier = FakeCourier("direct", None)

    async def scenario(world: World) -> None:
        run_id = await world.spawn("slow")
        await world.until(run_id, Phase.RUNNING)
        waiting = asyncio.ensure_future(
            world.engine.mailbox.wait([run_id], session=ME, timeout_s=500, reader="r")
        )
        await world.clock.advance(5)
        world.hold_commits()
        await world.clock.advance(60)
        assert world.engine.ledger.live[run_id].is_settled

        assert (await world.run(run_id)).phase is Phase.RUNNING
        assert not waiting.done()
        assert courier.asked == []
        assert await world.engine.mailbox.offer_inbox(ME, reader="r") == ()
        world.let_commits_go()
        found = await world.clock.result(waiting)
        assert found.offered == (announcement_id(run_id),)
        assert courier.asked == [ME]

    in_world(tmp_path, scenario, couriers=[courier])


@pytest.mark.requirement("commit:groups")
async def test_what_arrives_during_a_commit_shares_the_next_one(world: World) -> None:
    world.hold_commits()
    spawns = [asyncio.ensure_future(world.try_spawn("hang")) for _ in range(40)]
    await world.clock.idle()
    before = world.store.commits
    world.let_commits_go()
    await world.clock.result(asyncio.gather(*spawns))

    assert world.store.count(RunFilter(), most=10_000) == 40
    assert world.store.commits - before <= 5


@pytest.mark.requirement("commit:failure-recovers", "delivery:consumed-once")
def test_an_acknowledgement_over_a_failed_commit_is_not_called_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        runs = [await world.spawn("quick"), await world.spawn("quick")]
        for run_id in runs:
            await world.until(run_id, Phase.COMPLETED)
        ids = [announcement_id(run_id) for run_id in runs]
        load_run = world.engine.ledger.load_run

        async def slowly(run_id: RunId) -> Run:
            if run_id == runs[1]:
                # The first one is consumed in memory; its commit fails before the second is here.
                await world.clock.until(lambda: world.engine.degraded is not None, within_s=30)
                await world.clock.until(lambda: world.engine.degraded is None, within_s=30)
            return await load_run(run_id)

        monkeypatch.setattr(world.engine.ledger, "load_run", slowly)
        world.store.failures_left = 1
        with pytest.raises(StoreUnavailable, match="acknowledged"):
            await world.engine.mailbox.acknowledge(ids, reader="r")
        monkeypatch.undo()

        await world.clock.result(world.engine.mailbox.acknowledge(ids, reader="r"))
        assert await world.engine.mailbox.offer_inbox(ME, reader="r") == ()

    in_world(tmp_path, scenario)


@pytest.mark.requirement("commit:poison")
async def test_a_value_that_cannot_be_written_harms_nothing_but_its_own_call(world: World) -> None:
    run_id = await world.spawn("slow")
    await world.until(run_id, Phase.RUNNING)
    with pytest.raises(StoreUnavailable, match="could not be made"):
        await world.engine.control.steer(run_id, "half a character: \ud800", by="me")

    assert (await world.until(run_id)).outcome == OK
    assert (await world.until(await world.spawn("quick"))).outcome == OK


@pytest.mark.requirement("engine:memory")
@pytest.mark.world(max_spawn_depth=2)
async def test_runs_that_are_over_leave_memory(world: World) -> None:
    parent = await world.spawn("parent")
    await world.until(parent, Phase.RUNNING)
    child = await world.spawn_child(parent, "quick")
    await world.until(child, Phase.COMPLETED)
    assert child in world.engine.ledger.live, "its parent still needs it"
    await world.until(parent, Phase.COMPLETED)
    await world.clock.result(
        world.engine.mailbox.acknowledge([announcement_id(parent)], reader="r")
    )
    await world.clock.result(
        world.engine.mailbox.acknowledge([announcement_id(parent)], reader="r")
    )
    await world.clock.advance(1)

    assert world.engine.ledger.live == {}
    assert world.engine.ledger.published == {}
    assert world.engine.outbox.pending == 0
    assert world.engine.supervisor.live_attempts == 0


@pytest.mark.requirement("children:linear")
def test_a_family_is_looked_through_once_however_many_of_it_end_one_by_one(
    tmp_path: Path,
) -> None:
    """All but the last are over: each was a look at all those before it."""

    async def scenario(world: World, number: int) -> float:
        ids = [await world.spawn("hang") for _ in range(number)]
        runs = [replace(await world.run(each), phase=Phase.COMPLETED) for each in ids]
        children = Children(Child(run_id=each, label="c") for each in ids)
        lineage = Lineage(depth=2, requester_run=RunId("r-parent"))
        below = [replace(run, lineage=lineage) for run in runs]
        parent = replace(runs[0], id=RunId("r-parent"), children=children)
        ledger = world.engine.ledger
        ledger.live |= {run.id: run for run in (*below[:-1], parent)}
        ledger.published |= {run.id: run for run in (*below[:-1], parent)}
        with counting_calls() as counted:
            for run in below[:-1]:
                ledger.evict(run)
        assert parent.id in ledger.live
        ledger.live[ids[-1]] = ledger.published[ids[-1]] = below[-1]
        ledger.evict(below[-1])
        assert ledger.live == {}
        return counted.calls / number

    each = []
    for number in (10, 40):
        directory = tmp_path / str(number)
        directory.mkdir()
        each.append(in_world(directory, partial(scenario, number=number), max_concurrent=100))

    few, many = each
    assert many <= few * 1.2


@pytest.mark.requirement("sweep:prune-in-use")
def test_who_reads_a_run_while_it_is_deleted_does_not_get_it(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run = over(a_run(1))
        world.store.commit(spawned(run))
        ledger, off_loop = world.engine.ledger, world.engine.ledger._off_loop

        async def overtaken(work: Callable[[], T]) -> T:
            found = work()
            ledger._off_loop = off_loop
            with ledger.leaving([run.id]) as ids:
                world.store.prune(ids)
            return found

        ledger._off_loop = overtaken
        with pytest.raises(NotFound, match="does not exist"):
            await ledger.load_run(run.id)

        assert ledger.live == {}

    in_world(tmp_path, scenario)


@pytest.mark.requirement("sweep:prune-in-use")
async def test_a_run_that_was_not_deleted_after_all_can_be_loaded_again(world: World) -> None:
    run = over(a_run(1))
    world.store.commit(spawned(run))
    ledger = world.engine.ledger
    with ledger.leaving([run.id]), pytest.raises(NotFound):
        await ledger.load_run(run.id)

    assert await ledger.load_run(run.id) == run
    with ledger.leaving([run.id]) as ids:
        assert ids == [], "it is in use"


async def committed_groups(world: World, spawning: Callable[[], Awaitable[object]]) -> list[Batch]:
    """What each commit wrote, until that many spawns in one round of the loop are durable."""
    groups: list[Batch] = []
    write = world.store.commit

    def commit(batch: Batch) -> int:
        groups.append(batch)
        return write(batch)

    world.store.commit = commit  # type: ignore[method-assign]  # looks on
    await world.clock.result(asyncio.ensure_future(spawning()))
    return groups


@pytest.mark.requirement("commit:groups")
@pytest.mark.world(max_children_per_agent=1_000)
async def test_a_burst_is_written_in_groups_while_the_rest_of_it_is_reduced(world: World) -> None:
    groups = await committed_groups(
        world, lambda: asyncio.gather(*(world.try_spawn("slow") for _ in range(900)))
    )

    sizes = [len(group.journal) for group in groups if group.created]
    assert sum(sizes) >= 900
    assert max(sizes) < 900
    assert sizes[0] in range(GROUP_EVENTS, GROUP_EVENTS + 10)


@pytest.mark.requirement("commit:groups")
@pytest.mark.world(max_children_per_agent=2_000)
async def test_a_batch_of_runs_is_one_commit_however_large_it_is(world: World) -> None:
    specs = [RunSpec(task="x", agent_id="slow") for _ in range(700)]
    groups = await committed_groups(
        world, lambda: asyncio.gather(world.batch(*specs), world.batch(*specs))
    )

    sizes = [len(group.created) for group in groups if group.created]
    assert sum(sizes) == 1_400
    assert all(size % 700 == 0 for size in sizes)


@pytest.mark.requirement("commit:all-or-nothing")
def test_an_event_whose_follow_ups_break_is_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("broken")

    async def scenario(world: World) -> None:
        await world.spawn("slow")
        waiting = await world.spawn("slow")
        known = world.store.run(waiting)
        monkeypatch.setattr(cascade, "follow", breaks)
        cancelled = CancelRequested(at_ms=world.clock.now_ms(), by="me", reason="enough")

        with pytest.raises(RuntimeError, match="broken"):
            world.engine.ledger.apply_now(waiting, cancelled)
        await world.clock.advance(10)

        assert world.store.run(waiting) == known

    in_world(tmp_path, scenario, max_concurrent=1)


@pytest.mark.requirement("ledger:number")
async def test_the_ledger_counts_the_events_that_can_be_seen_as_the_store_numbers_them(
    world: World,
) -> None:
    ledger = world.engine.ledger
    assert ledger.number == world.store.newest_number() == 0
    kept, gone = await world.spawn("quick"), await world.spawn("quick")
    for run_id in (kept, gone):
        await world.until(run_id, Phase.COMPLETED)
    await world.clock.advance(1)
    assert ledger.number == world.store.newest_number() > 0
    world.store.prune([gone])
    await world.restart()
    assert world.engine.ledger.number == world.store.newest_number()
    await world.until(await world.spawn("quick"), Phase.COMPLETED)
    await world.clock.advance(1)
    assert world.engine.ledger.number == world.store.newest_number()
