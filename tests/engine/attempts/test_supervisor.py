"""Live attempts are watched, adopted after a restart, and lost when nobody can watch them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from tests.engine.world import WatchedRuntime, World, in_world

from subagents.domain.run.outcome import OK, Reason, Status
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.signals import PermissionAsked, ResultSeen, Signal, Vanished
from subagents.domain.run.worker_output import OutputBatch
from subagents.engine.attempts.supervisor import log
from subagents.errors import StoreUnavailable
from subagents.ports import AttemptRef, LongResult


@pytest.mark.requirement("recovery:adopts", "field:restart-repeats-work")
async def test_workers_that_lived_on_are_adopted_and_none_is_started_twice(world: World) -> None:
    ids = [await world.spawn("slow") for _ in range(5)]
    await world.clock.advance(3)
    for _ in range(3):
        await world.restart()
    for run_id in ids:
        run = await world.until(run_id)
        assert (run.outcome, run.result, len(run.attempts)) == (OK, "slowly done", 1)
        assert world.runtime.starts_of(run_id) == 1


@pytest.mark.requirement("recovery:lost", "field:zombies")
@pytest.mark.parametrize("retries", [0, 1])
async def test_a_worker_that_is_gone_is_lost_and_retried_only_by_its_own_policy(
    world: World, retries: int
) -> None:
    run_id = await world.spawn("slow", retry_count=retries)
    await world.until(run_id, Phase.RUNNING)
    await world.restart(reboot=True)

    run = await world.until(run_id)

    first = run.attempts[0].outcome
    assert first is not None
    assert (first.status, first.reason) == (Status.LOST, Reason.LEASE_LOST)
    assert len(run.attempts) == 1 + retries
    assert (run.outcome == OK) is (retries == 1)


@pytest.mark.requirement("lease:expired-is-lost", "field:zombies")
async def test_a_worker_nobody_can_watch_is_lost_after_its_lease(world: World) -> None:
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    await world.restart()
    world.runtime.is_blind = True
    await world.restart()

    run = await world.until(run_id, within_s=90)

    assert run.outcome is not None
    assert run.outcome.status is Status.LOST


@pytest.mark.requirement("recovery:failed-read")
def test_a_worker_is_watched_on_after_a_read_of_the_store_that_failed(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("slow")
        await world.until(run_id, Phase.RUNNING)
        await world.restart()
        world.runtime.is_blind = True
        await world.restart()
        await world.clock.advance(3)
        world.runtime.is_blind = False
        find, failures = world.engine.recorder.positions, [StoreUnavailable("it cannot be read")]

        async def positions(run: Run, *, is_new: bool) -> Mapping[str, int]:
            if failures:
                raise failures.pop()
            return await find(run, is_new=is_new)

        world.engine.supervisor._recorder.positions = positions  # type: ignore[method-assign]

        assert (await world.until(run_id, within_s=90)).outcome == OK
        assert failures == []

    in_world(tmp_path, scenario)


@pytest.mark.requirement("recovery:failed-result")
def test_a_result_that_could_not_be_taken_at_first_is_read_again(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        results, failures = world.engine.results, [MemoryError()]
        keep = results.kept

        async def kept(run: Run, seen: ResultSeen | LongResult) -> ResultSeen:
            if failures:
                raise failures.pop()
            return await keep(run, seen)

        results.kept = kept  # type: ignore[method-assign]
        run = await world.until(await world.spawn("slow"), within_s=90)

        assert (failures, run.outcome, run.result) == ([], OK, "slowly done")

    in_world(tmp_path, scenario)


@pytest.mark.requirement("permissions:for-agent")
async def test_calls_asked_for_at_once_are_each_asked_unless_the_agent_may(world: World) -> None:
    class Asking(WatchedRuntime):
        async def watch(
            self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
        ) -> AsyncIterator[tuple[Signal | OutputBatch, int]]:
            for at, call in enumerate(("Bash: ls", "Bash: make", "Bash: make all"), start=1):
                yield PermissionAsked(call, call, "Bash", call, call=call), at
            await self._clock.sleep(3_600)

    await world.crash()
    await world.boot(Asking(world.clock))
    world.engine.adapters.logs.allowed_calls.change("hang", "Bash: make", allow=True)
    run_id = await world.spawn("hang")
    await world.clock.advance(3)
    asked = [each.call for each in (await world.run(run_id)).questions.requests]
    assert asked == ["Bash: ls", "Bash: make all"]


class SilentTurns(WatchedRuntime):
    """A runtime whose further turns say nothing and do not end."""

    async def watch(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
    ) -> AsyncIterator[tuple[Signal | OutputBatch, int]]:
        if self.turns:
            await self._clock.sleep(3_600)
        async for found in super().watch(ref, cursor=cursor, positions=positions):
            yield found


@pytest.mark.requirement("lease:expired-is-lost")
@pytest.mark.world(max_spawn_depth=2)
async def test_the_late_end_of_a_lost_turn_is_not_that_of_the_turn_after_it(world: World) -> None:
    await world.crash()
    await world.boot(SilentTurns(world.clock))
    run_id = await world.spawn("parent")
    first_turn = await world.until(run_id, Phase.RUNNING)
    await world.spawn_child(run_id, "slow")
    await world.until(run_id, Phase.ENDING)
    await world.until(run_id, Phase.RUNNING)

    world.engine.supervisor._apply(first_turn, Vanished(key=f"{run_id}#1:late", error="gone"))
    await world.engine.ledger.committed()

    run = await world.run(run_id)
    assert (run.phase, run.attempt.turn.number) == (Phase.RUNNING, 2)


@pytest.mark.requirement("lease:kept-while-watched")
async def test_a_quiet_worker_keeps_its_lease_for_hours(world: World) -> None:
    run_id = await world.spawn("hang")
    await world.clock.advance(600)
    (lease,) = world.store.load_leases()

    assert (await world.run(run_id)).phase is Phase.RUNNING
    assert lease.until_ms > world.clock.now_ms()
    assert (lease.owner, lease.attempt) == ("boot1", 1)
    await world.clock.result(world.engine.control.cancel(run_id, by="me"))
    await world.until(run_id)
    assert world.store.load_leases() == []


class ClosedRuntime(WatchedRuntime):
    """Remembers which task closed each of its watches."""

    closed_by: list[str]

    async def watch(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
    ) -> AsyncIterator[tuple[Signal | OutputBatch, int]]:
        try:
            async for found in super().watch(ref, cursor=cursor, positions=positions):
                yield found
        finally:
            task = asyncio.current_task()
            self.closed_by.append(task.get_name() if task is not None else "")


@pytest.mark.requirement("supervisor:watch-closed")
async def test_a_watch_is_closed_by_who_watched_and_not_left_to_the_collector(world: World) -> None:
    await world.crash()
    runtime = ClosedRuntime(world.clock)
    runtime.closed_by = []
    await world.boot(runtime)

    run_id = await world.spawn("quick")
    await world.until(run_id, Phase.COMPLETED)

    assert runtime.closed_by == [f"watch {run_id}#1"]


@pytest.mark.requirement("supervisor:watch-closed")
def test_a_watch_that_is_thrown_away_with_its_loop_is_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        run = await world.until(await world.spawn("hang"), Phase.RUNNING)
        watching = world.engine.supervisor._watched[run.id].task
        assert watching is not None
        watching.get_coro().close()

    in_world(tmp_path, scenario)
    assert not [each for each in caplog.records if each.name == log.name]
