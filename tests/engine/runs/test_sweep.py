"""The periodic pass: what the timers missed, archiving and pruning."""

from pathlib import Path

import pytest
from tests.engine.world import ME, World, in_world

from subagents.domain.run.run import (
    Phase,
)
from subagents.domain.run.spec import Cleanup, Mode
from subagents.domain.run.values import (
    announcement_id,
)
from subagents.errors import Conflict
from subagents.ports import RunFilter


@pytest.mark.requirement("sweep:is-the-truth")
def test_the_sweep_finds_what_the_timers_missed(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("fail", retry_count=1, retry_delay=600_000)
        await world.until(run_id, Phase.RETRY_WAIT)
        world.parts.timers._heap.clear()
        world.parts.timers._due.clear()
        world.clock.jump(700)
        report = await world.clock.result(world.engine.sweep())

        assert report.redriven == 1
        assert len((await world.until(run_id)).attempts) == 2

    in_world(tmp_path, scenario)


@pytest.mark.requirement("sweep:archive", "field:data-lost-on-cleanup", "spawn:sweeper")
def test_ended_runs_are_archived_after_an_hour_and_sessions_never(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn()
        kept = await world.spawn(thread=True, mode=Mode.SESSION)
        await world.until(run_id, Phase.COMPLETED)
        await world.until(kept, Phase.COMPLETED)
        await world.clock.advance(59 * 60)
        assert (await world.run(run_id)).times.archived_at_ms is None

        await world.clock.advance(3 * 60)

        run = await world.run(run_id)
        assert run.times.archived_at_ms is not None
        assert run.result == "done"
        assert (await world.run(kept)).times.archived_at_ms is None
        assert [r.id for r in await world.engine.queries.runs(RunFilter())] == [kept]
        assert len(await world.engine.queries.journal(run_id)) == run.seq

    in_world(tmp_path, scenario)


@pytest.mark.requirement("sweep:prune", "field:gave-up-and-dropped")
def test_a_run_is_pruned_a_week_after_it_was_read_and_never_before(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        read, unread = await world.spawn(), await world.spawn()
        await world.until(unread, Phase.COMPLETED)
        await world.until(read, Phase.COMPLETED)
        world.clock.jump(2 * 3_600)
        await world.clock.result(world.engine.sweep())
        world.clock.jump(24 * 3_600)
        await world.clock.result(world.engine.acknowledge([announcement_id(read)], reader="me"))
        world.clock.jump(7 * 24 * 3_600 - 100)
        assert (await world.clock.result(world.engine.sweep())).pruned == 0
        world.clock.jump(200)
        report = await world.clock.result(world.engine.sweep())

        assert report.pruned == 1
        assert world.store.run(read) is None
        assert (await world.run(unread)).result == "done"
        assert world.runtime.forgotten == [f"{read}#1"]

    in_world(tmp_path, scenario)


@pytest.mark.requirement("cleanup:keep-or-delete")
@pytest.mark.parametrize("cleanup", list(Cleanup))
def test_child_sessions_are_deleted_only_when_asked(tmp_path: Path, cleanup: Cleanup) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("flaky", cleanup=cleanup, retry_count=1)
        run = await world.until(run_id, Phase.COMPLETED)

        wanted = [f"{run_id}#1", f"{run_id}#2"] if cleanup is Cleanup.DELETE else []
        assert world.runtime.forgotten == wanted
        assert (run.result, len(run.attempts)) == ("second time lucky", 2)

    in_world(tmp_path, scenario)


@pytest.mark.requirement("cleanup:erases-the-task")
def test_with_the_session_goes_the_task_and_so_a_retry_is_refused(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
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
            await world.engine.retry(deleted, requester=ME, settings=world.settings)
        await world.engine.retry(kept, requester=ME, settings=world.settings)

    in_world(tmp_path, scenario)
