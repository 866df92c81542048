"""The periodic pass: what the timers missed, archiving and pruning."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engine.world import ME, T, World, in_world

from subagents.config.settings import SubagentDefaults
from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.run import Phase
from subagents.domain.run.spec import Cleanup, Mode
from subagents.domain.run.values import RunId, announcement_id
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.engine.runs.sweep import ROWS_MAX, STRAYS_AGAIN_MS
from subagents.errors import Conflict, NodeUnreachable, NotFound, RuntimeUnavailable
from subagents.extensions.testing.stored_values import a_run, over, spawned
from subagents.ports import AttemptRef, RunFilter


@pytest.mark.requirement("sweep:is-the-truth")
async def test_the_sweep_finds_what_the_timers_missed(world: World) -> None:
    run_id = await world.spawn("fail", retry_count=1, retry_delay=600_000)
    await world.until(run_id, Phase.RETRY_WAIT)
    world.engine.timers._due.clear()
    world.clock.jump(700)
    report = await world.clock.result(world.engine.sweep.once())

    assert report.redriven == 1
    assert len((await world.until(run_id)).attempts) == 2


@pytest.mark.requirement("sweep:archive", "field:data-lost-on-cleanup", "spawn:sweeper")
def test_ended_runs_are_archived_a_while_after_they_were_read_and_sessions_never(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        run_id, failed = await world.spawn(), await world.spawn("fail")
        kept = await world.spawn(thread=True, mode=Mode.SESSION)
        for each in (run_id, failed, kept):
            await world.until(each, Phase.COMPLETED)
        queries = world.engine.queries

        async def listed() -> list[RunId]:
            return [run.id for run in await queries.runs(RunFilter())]

        world.clock.jump(30 * 24 * 3_600)
        await world.clock.result(world.engine.sweep.once())
        assert await listed() == [kept, failed, run_id]

        read = world.engine.mailbox.acknowledge([announcement_id(run_id)], reader="me")
        await world.clock.result(read)
        world.clock.jump(59 * 60)
        await world.clock.result(world.engine.sweep.once())
        assert await listed() == [kept, failed, run_id]

        world.clock.jump(120)
        await world.clock.result(world.engine.sweep.once())
        run = await world.run(run_id)
        assert run.times.archived_at_ms is not None
        assert run.result == "done"
        assert await listed() == [kept, failed]
        assert (await queries.page(RunFilter())).hidden == (1, False)
        assert len(await queries.journal(run_id)) == run.seq

    assert SubagentDefaults().archive_after_minutes == 7 * 24 * 60
    in_world(tmp_path, scenario, archive_after_minutes=60)


@pytest.mark.requirement("sweep:keeps-up")
async def test_one_pass_archives_and_prunes_all_that_is_due(world: World) -> None:
    number = 2 * ROWS_MAX + 1
    runs = [over(a_run(each)) for each in range(number)]
    world.store.commit(spawned(*runs))
    world.clock.jump(8 * 24 * 3_600)

    report = await world.clock.result(world.engine.sweep.once())

    assert (report.archived, report.pruned) == (number, number)
    assert world.store.count(RunFilter(archived=True), most=10_000) == 0


@pytest.mark.requirement("sweep:keeps-up")
def test_two_passes_at_once_prune_each_run_once(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        number = ROWS_MAX + 1
        world.store.commit(spawned(*(over(a_run(each)) for each in range(number))))
        world.clock.jump(8 * 24 * 3_600)

        async def in_a_thread(work: Callable[[], T]) -> T:
            await asyncio.sleep(0)  # others go on meanwhile
            return work()

        world.engine.sweep._off_loop = in_a_thread
        passes = asyncio.gather(world.engine.sweep.once(), world.engine.sweep.once())
        reports = await world.clock.result(passes)

        assert [each.pruned for each in reports] == [number, 0]

    in_world(tmp_path, scenario)


@pytest.mark.requirement("sweep:prune", "field:gave-up-and-dropped")
async def test_a_run_is_pruned_a_week_after_it_was_read_and_never_before(world: World) -> None:
    read, unread = await world.spawn(), await world.spawn()
    await world.until(unread, Phase.COMPLETED)
    await world.until(read, Phase.COMPLETED)
    world.clock.jump(2 * 3_600)
    await world.clock.result(world.engine.sweep.once())
    world.clock.jump(24 * 3_600)
    await world.clock.result(world.engine.mailbox.acknowledge([announcement_id(read)], reader="me"))
    world.clock.jump(7 * 24 * 3_600 - 100)
    assert (await world.clock.result(world.engine.sweep.once())).pruned == 0
    world.clock.jump(200)
    report = await world.clock.result(world.engine.sweep.once())

    assert report.pruned == 1
    assert world.store.run(read) is None
    assert (await world.run(unread)).result == "done"
    assert world.runtime.forgotten == [f"{read}#1"]


@pytest.mark.requirement("sweep:prune-in-use")
async def test_a_run_that_is_being_pruned_takes_no_event_that_could_not_be_written(
    world: World,
) -> None:
    run_id, refused = await ready_to_prune(world), asyncio.Event()

    async def use_it(ref: AttemptRef) -> None:
        with pytest.raises(NotFound, match="does not exist"):
            await world.engine.control.note_refusal(run_id, at_ms=0, call="x", reason="no", by="me")
        refused.set()

    world.runtime.forget = use_it  # type: ignore[method-assign]
    report = await world.clock.result(world.engine.sweep.once())

    assert (report.pruned, refused.is_set(), world.engine.degraded) == (1, True, None)


@pytest.mark.requirement("sweep:prune-in-use")
async def test_a_run_that_somebody_uses_is_not_pruned(world: World) -> None:
    run_id = await ready_to_prune(world)
    await world.engine.ledger.load_run(run_id)

    report = await world.clock.result(world.engine.sweep.once())

    assert (report.pruned, world.runtime.forgotten) == (0, [])


@pytest.mark.requirement("sweep:prune-in-use")
async def test_a_session_whose_run_is_being_pruned_cannot_be_gone_on_with(world: World) -> None:
    run_id, refused = await ready_to_prune(world), asyncio.Event()

    async def go_on(ref: AttemptRef) -> None:
        with pytest.raises(NotFound, match="does not exist"):
            await world.try_spawn(continues=run_id)
        refused.set()

    world.runtime.forget = go_on  # type: ignore[method-assign]
    await world.clock.result(world.engine.sweep.once())

    assert refused.is_set()
    assert world.store.count(RunFilter(archived=True), most=10_000) == 0


@pytest.mark.requirement("sweep:prune")
@pytest.mark.parametrize("why", [RuntimeUnavailable("cannot delete"), NodeUnreachable("is down")])
async def test_a_run_whose_files_stay_keeps_neither_others_nor_the_rest_of_a_pass(
    world: World, why: Exception
) -> None:
    stuck, forget = await ready_to_prune(world), world.runtime.forget

    async def refuse(ref: AttemptRef) -> None:
        if ref.run_id == stuck:
            raise why
        await forget(ref)

    world.runtime.forget = refuse  # type: ignore[method-assign]
    other = await ready_to_prune(world)
    await world.clock.result(world.engine.sweep.once())

    assert (world.store.run(other) is None) is isinstance(why, RuntimeUnavailable)
    assert world.store.run(stuck) is not None
    world.runtime.forget = forget  # type: ignore[method-assign]
    await world.clock.result(world.engine.sweep.once())
    assert (world.store.run(stuck), world.store.run(other)) == (None, None)


@pytest.mark.requirement("environment:kept")
async def test_what_a_crash_left_of_a_spawn_goes_although_the_next_start_followed_at_once(
    world: World,
) -> None:
    environments = world.engine.adapters.logs.environments
    environments.keep([RunId("r-never")], CallerEnvironment(given={"TOKEN": "hush"}))
    left = world.directory / "environments" / "r-never"
    await world.restart()
    await world.clock.result(world.engine.sweep.once())
    assert left.exists()

    os.utime(left, (0, 0))
    world.clock.jump(STRAYS_AGAIN_MS / 1_000)
    await world.clock.result(world.engine.sweep.once())

    assert not left.exists()


async def ready_to_prune(world: World) -> RunId:
    """A run that is over, archived, and was read long ago."""
    run_id = await world.spawn()
    await world.until(run_id, Phase.COMPLETED)
    await world.clock.result(
        world.engine.mailbox.acknowledge([announcement_id(run_id)], reader="me")
    )
    await world.clock.result(world.engine.control.archive(run_id))
    world.clock.jump(8 * 24 * 3_600)
    return run_id


@pytest.mark.requirement("cleanup:keep-or-delete")
@pytest.mark.parametrize("cleanup", list(Cleanup))
async def test_child_sessions_are_deleted_only_when_asked(world: World, cleanup: Cleanup) -> None:
    run_id = await world.spawn("flaky", cleanup=cleanup, retry_count=1)
    run = await world.until(run_id, Phase.COMPLETED)

    wanted = [f"{run_id}#1", f"{run_id}#2"] if cleanup is Cleanup.DELETE else []
    assert world.runtime.forgotten == wanted
    assert (run.result, len(run.attempts)) == ("second time lucky", 2)


@pytest.mark.requirement("cleanup:erases-the-task")
async def test_with_the_session_goes_the_task_and_so_a_retry_is_refused(world: World) -> None:
    deleted = await world.spawn("fail", task="say plugh", cleanup=Cleanup.DELETE)
    kept = await world.spawn("fail", task="say xyzzy")
    run = await world.until(deleted, Phase.COMPLETED)
    await world.until(kept, Phase.COMPLETED)

    assert (run.spec.task, run.resolved.label) == ("(deleted)", "fail")
    assert await world.folded(deleted) == run
    assert (await world.run(kept)).spec.task == "say xyzzy"
    rows = world.store.inbox(None, unconsumed=False)
    assert "subagents retry" not in rows[0].message.text
    with pytest.raises(Conflict, match=r"was deleted when it ended \(cleanup: delete\)"):
        await world.engine.spawner.retry(deleted, SpawnContext(session=ME, settings=world.settings))
    await world.engine.spawner.retry(kept, SpawnContext(session=ME, settings=world.settings))
