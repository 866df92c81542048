"""Crashes, a disk that says no, workers nobody can see: nothing acknowledged is ever lost."""

import asyncio
import logging
from pathlib import Path

import pytest
from tests.engine.world import ME, OTHER, FakeCourier, TroubledStore, World, in_world

from subagents.domain.run.effects import ResumeAttempt
from subagents.domain.run.events import AttemptStartFailed
from subagents.domain.run.outcome import OK, Reason, Status
from subagents.domain.run.run import (
    BudgetStop,
    Decision,
    Phase,
    Run,
)
from subagents.domain.run.spec import Artifact, Contract
from subagents.domain.run.values import (
    RunId,
    SessionKey,
    announcement_id,
    replace,
)
from subagents.errors import (
    AlreadyRunning,
    CorruptState,
    Forbidden,
    StoreUnavailable,
)
from subagents.ports import AttemptRef, OutboxEntry, RunFilter

THIRD = SessionKey("agent:third:main")
CONTRACT = Contract(artifacts=(Artifact(path="out.txt"),))


# -- nothing before its commit -------------------------------------------------------------------


@pytest.mark.requirement("commit:nothing-observable-before")
def test_a_spawn_is_visible_to_nobody_before_its_commit(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.hold_commits()
        spawning = asyncio.ensure_future(world.try_spawn("quick"))
        await world.clock.advance(30)

        assert not spawning.done()
        assert world.parts.ledger.published == {}
        assert world.runtime.launches == []
        assert await world.engine.queries.runs(RunFilter()) == ()
        look = await world.engine.wait([], session=ME, timeout_s=0, reader="r")
        assert look.completed == ()
        world.let_commits_go()
        await world.clock.result(spawning)
        assert len(world.runtime.launches) == 1

    in_world(tmp_path, scenario)


@pytest.mark.requirement("commit:nothing-observable-before", "field:early-notification")
def test_an_end_is_told_to_nobody_before_its_commit(tmp_path: Path) -> None:
    courier = FakeCourier("direct", None)

    async def scenario(world: World) -> None:
        run_id = await world.spawn("slow")
        await world.until(run_id, Phase.RUNNING)
        waiting = asyncio.ensure_future(
            world.engine.wait([run_id], session=ME, timeout_s=500, reader="r")
        )
        await world.clock.advance(5)
        world.hold_commits()
        await world.clock.advance(60)
        assert world.parts.ledger.live[run_id].is_settled

        assert (await world.run(run_id)).phase is Phase.RUNNING
        assert not waiting.done()
        assert courier.asked == []
        assert await world.engine.offer_inbox(ME, reader="r") == ()
        world.let_commits_go()
        found = await world.clock.result(waiting)
        assert found.offered == (announcement_id(run_id),)
        assert courier.asked == [ME]

    in_world(tmp_path, scenario, couriers=[courier])


@pytest.mark.requirement("commit:groups")
def test_what_arrives_during_a_commit_shares_the_next_one(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.hold_commits()
        spawns = [asyncio.ensure_future(world.try_spawn("hang")) for _ in range(40)]
        await world.clock.idle()
        before = world.store.commits
        world.let_commits_go()
        await world.clock.result(asyncio.gather(*spawns))

        assert world.store.count(RunFilter()) == 40
        assert world.store.commits - before <= 5

    in_world(tmp_path, scenario)


# -- a disk that says no -------------------------------------------------------------------------


@pytest.mark.requirement("commit:failure-recovers", "delivery:consumed-once")
def test_an_acknowledgement_over_a_failed_commit_is_not_called_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        runs = [await world.spawn("quick"), await world.spawn("quick")]
        for run_id in runs:
            await world.until(run_id, Phase.COMPLETED)
        ids = [announcement_id(run_id) for run_id in runs]
        load_run = world.parts.ledger.load_run

        async def slowly(run_id: RunId) -> Run:
            if run_id == runs[1]:
                # The first one is consumed in memory; its commit fails before the second is here.
                await world.clock.until(lambda: world.engine.degraded is not None, within_s=30)
                await world.clock.until(lambda: world.engine.degraded is None, within_s=30)
            return await load_run(run_id)

        monkeypatch.setattr(world.parts.ledger, "load_run", slowly)
        world.store.failures_left = 1
        with pytest.raises(StoreUnavailable, match="acknowledged"):
            await world.engine.acknowledge(ids, reader="r")
        monkeypatch.undo()

        await world.clock.result(world.engine.acknowledge(ids, reader="r"))
        assert await world.engine.offer_inbox(ME, reader="r") == ()

    in_world(tmp_path, scenario)


@pytest.mark.requirement("commit:failure-recovers")
@pytest.mark.parametrize("failures", [1, 5])
def test_after_failed_commits_the_engine_goes_on_from_the_disk(
    tmp_path: Path, failures: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        first = await world.spawn("slow")
        await world.until(first, Phase.RUNNING)
        world.store.failures_left = failures
        with pytest.raises(StoreUnavailable, match="the disk said no"):
            await world.engine.cancel(first, by="me")
        assert world.engine.degraded == "the disk said no"
        with pytest.raises(StoreUnavailable):
            await world.try_spawn("quick")
        await world.clock.until(lambda: world.engine.degraded is None, within_s=30)

        run = await world.until(first)
        assert (run.outcome, run.control.cancel) == (OK, None), (
            "the cancel was refused, so it never was"
        )
        assert world.runtime.starts_of(first) == 1
        assert (await world.until(await world.spawn("quick"))).outcome == OK
        assert await world.folded(first) == await world.run(first)

    with caplog.at_level(logging.CRITICAL):
        in_world(tmp_path, scenario)


@pytest.mark.requirement("commit:failure-recovers")
def test_an_end_whose_commit_failed_is_seen_again_and_announced_once(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("slow")
        await world.until(run_id, Phase.RUNNING)
        waiting = asyncio.ensure_future(
            world.engine.wait([run_id], session=ME, timeout_s=500, reader="r")
        )
        await world.clock.advance(9.9)
        world.store.failures_left = 1
        found = await world.clock.result(waiting)

        assert [run.outcome for run in found.completed] == [OK]
        await world.until(run_id, Phase.COMPLETED)
        assert len(world.store.inbox(ME, unconsumed=False)) == 1
        assert await world.folded(run_id) == await world.run(run_id)

    in_world(tmp_path, scenario)


@pytest.mark.requirement("commit:poison")
def test_a_value_that_cannot_be_written_harms_nothing_but_its_own_call(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("slow")
        await world.until(run_id, Phase.RUNNING)
        with pytest.raises(StoreUnavailable, match="could not be made"):
            await world.engine.steer(run_id, "half a character: \ud800", by="me")

        assert (await world.until(run_id)).outcome == OK
        assert (await world.until(await world.spawn("quick"))).outcome == OK

    in_world(tmp_path, scenario)


@pytest.mark.requirement("commit:failure-recovers", "spawn:children")
def test_no_call_is_served_while_memory_is_being_read_back(tmp_path: Path) -> None:
    """Else a spawn would count children in an empty memory and go past the cap."""

    async def scenario(world: World) -> None:
        await world.spawn("hang")
        reading = asyncio.Event()
        go_on = asyncio.Event()
        off_loop = world.parts.ledger._off_loop

        async def slow_reading(work: object) -> object:
            reading.set()
            await go_on.wait()
            return await off_loop(work)  # type: ignore[arg-type]

        world.store.failures_left = 1
        with pytest.raises(StoreUnavailable):
            await world.try_spawn("hang", requester=OTHER)
        world.parts.ledger._off_loop = slow_reading  # type: ignore[assignment]
        await world.clock.until(reading.is_set, within_s=10)
        early = [world.try_spawn("hang"), world.try_spawn("hang", requester=THIRD)]
        refused = await asyncio.gather(*early, return_exceptions=True)
        assert [type(each) for each in refused] == [Forbidden, StoreUnavailable]
        go_on.set()
        world.parts.ledger._off_loop = off_loop
        await world.clock.until(lambda: world.engine.degraded is None, within_s=10)

        assert world.store.count(RunFilter()) == 1

    in_world(tmp_path, scenario, max_children_per_agent=1)


# -- crashes -------------------------------------------------------------------------------------


@pytest.mark.requirement("recovery:decisions", "field:silently-broken-agents")
def test_every_open_run_has_a_decision_when_the_engine_starts(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        hang = await world.spawn("hang")
        retry = await world.spawn("fail", retry_count=1, retry_delay=600_000)
        queued = await world.spawn("slow")
        waiting = await world.spawn(depends_on=(hang,))
        over = await world.spawn("fail")
        await world.until(retry, Phase.RETRY_WAIT)
        await world.until(over, Phase.COMPLETED)
        begun = world.clock.now_ms()
        await world.restart()

        decided = {each.run_id: each.decision for each in world.engine.recoveries}
        assert world.clock.now_ms() - begun < 2_000
        assert set(decided) == {hang, retry, queued, waiting}
        assert decided[hang].startswith("adopt attempt 1 and read on from ")
        assert decided[retry] == "go on in phase retry_wait"
        assert decided[waiting] == "go on in phase waiting"

    in_world(tmp_path, scenario)


@pytest.mark.requirement("recovery:adopts", "field:restart-repeats-work")
def test_workers_that_lived_on_are_adopted_and_none_is_started_twice(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        ids = [await world.spawn("slow") for _ in range(5)]
        await world.clock.advance(3)
        for _ in range(3):
            await world.restart()
        for run_id in ids:
            run = await world.until(run_id)
            assert (run.outcome, run.result, len(run.attempts)) == (OK, "slowly done", 1)
            assert world.runtime.starts_of(run_id) == 1

    in_world(tmp_path, scenario)


@pytest.mark.requirement("recovery:lost", "field:zombies")
@pytest.mark.parametrize("retries", [0, 1])
def test_a_worker_that_is_gone_is_lost_and_retried_only_by_its_own_policy(
    tmp_path: Path, retries: int
) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("slow", retry_count=retries)
        await world.until(run_id, Phase.RUNNING)
        await world.restart(reboot=True)

        run = await world.until(run_id)

        first = run.attempts[0].outcome
        assert first is not None
        assert (first.status, first.reason) == (Status.LOST, Reason.LEASE_LOST)
        assert len(run.attempts) == 1 + retries
        assert (run.outcome == OK) is (retries == 1)

    in_world(tmp_path, scenario)


@pytest.mark.requirement("lease:expired-is-lost", "field:zombies")
def test_a_worker_nobody_can_watch_is_lost_after_its_lease(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("hang")
        await world.until(run_id, Phase.RUNNING)
        await world.restart()
        world.runtime.is_blind = True
        await world.restart()

        run = await world.until(run_id, within_s=90)

        assert run.outcome is not None
        assert run.outcome.status is Status.LOST

    in_world(tmp_path, scenario)


@pytest.mark.requirement("lease:kept-while-watched")
def test_a_quiet_worker_keeps_its_lease_for_hours(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("hang")
        await world.clock.advance(600)
        (lease,) = world.store.load_leases()

        assert (await world.run(run_id)).phase is Phase.RUNNING
        assert lease.until_ms > world.clock.now_ms()
        assert (lease.owner, lease.attempt) == ("boot1", 1)
        await world.clock.result(world.engine.cancel(run_id, by="me"))
        await world.until(run_id)
        assert world.store.load_leases() == []

    in_world(tmp_path, scenario)


@pytest.mark.requirement("recovery:second-engine")
def test_a_second_engine_on_the_same_store_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("slow")
        second = TroubledStore(world.path)
        with pytest.raises(AlreadyRunning):
            second.open("intruder")

        assert (await world.until(run_id)).outcome == OK

    in_world(tmp_path, scenario)


@pytest.mark.requirement("recovery:corrupt-refused", "store:corruption")
def test_an_engine_does_not_start_on_a_damaged_store(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.spawn("quick")
        await world.crash()
        damaged = bytearray(world.path.read_bytes())
        damaged[4096 * 2 : 4096 * 3] = b"\xff" * 4096
        world.path.write_bytes(damaged)
        with pytest.raises(CorruptState):
            await world.boot()
        assert world.path.read_bytes() == damaged

    in_world(tmp_path, scenario)


EVENTFUL = ("slow", "flaky", "fail", "late_writer", "parent", "hang")


@pytest.mark.requirement(
    "recovery:any-instant",
    "journal:fold-is-the-run",
    "delivery:restart-resumes",
    "journal:gives-the-run",
)
def test_crashes_at_every_second_lose_and_double_nothing(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        ids: list[RunId] = [
            await world.spawn(
                name,
                retry_count=1,
                run_timeout_seconds=40 if name == "hang" else 0,
                verification=CONTRACT if name == "late_writer" else None,
            )
            for name in EVENTFUL
        ]
        ids.append(await world.spawn(depends_on=(ids[0],), include_dependency_result=True))
        for _ in range(50):
            await world.clock.advance(1)
            await world.restart()
        await world.clock.advance(120)

        statuses = []
        for run_id in ids:
            run = await world.run(run_id)
            assert run.phase is Phase.COMPLETED, (run.spec.agent_id, run.phase)
            assert await world.folded(run_id) == run
            assert world.runtime.starts_of(run_id) == len(run.attempts)
            assert run.outcome is not None
            statuses.append(run.outcome.status.value)
        assert statuses == ["ok", "ok", "error", "ok", "ok", "timeout", "ok"]
        announced = [row.message.id for row in world.store.inbox(None, unconsumed=False)]
        assert sorted(announced) == sorted(announcement_id(run_id) for run_id in ids)

    in_world(tmp_path, scenario)


@pytest.mark.requirement("timers:clock-jumps")
def test_when_the_wall_clock_jumps_everything_due_happens_soon(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("fail", retry_count=1, retry_delay=3_000_000)
        await world.until(run_id, Phase.RETRY_WAIT)
        world.clock.jump(4_000)

        run = await world.until(run_id, within_s=10)

        assert len(run.attempts) == 2

    in_world(tmp_path, scenario)


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


@pytest.mark.requirement("engine:stop-and-start")
def test_stopping_waits_for_what_was_accepted_and_leaves_workers_alone(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("slow")
        request = await world.clock.result(world.engine.ask(run_id, "which?", timeout_s=600))
        answering = asyncio.ensure_future(
            world.engine.answer(request.id, "x", decision=Decision.ANSWER, by="me")
        )
        await world.clock.idle()
        await world.clock.result(world.engine.stop())
        assert answering.done()
        assert world.runtime.stopped == []
        await world.boot()

        assert (await world.run(run_id)).questions.requests[0].answer is not None
        assert (await world.until(run_id)).outcome == OK

    in_world(tmp_path, scenario)


@pytest.mark.requirement("engine:memory")
def test_runs_that_are_over_leave_memory(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        parent = await world.spawn("parent")
        await world.until(parent, Phase.RUNNING)
        child = await world.spawn_child(parent, "quick")
        await world.until(child, Phase.COMPLETED)
        assert child in world.parts.ledger.live, "its parent still needs it"
        await world.until(parent, Phase.COMPLETED)
        await world.clock.result(world.engine.acknowledge([announcement_id(parent)], reader="r"))
        await world.clock.result(world.engine.acknowledge([announcement_id(parent)], reader="r"))
        await world.clock.advance(1)

        assert world.parts.ledger.live == {}
        assert world.parts.ledger.published == {}
        assert world.parts.outbox.pending == 0
        assert world.engine.live_attempts == 0

    in_world(tmp_path, scenario, max_spawn_depth=2)


@pytest.mark.requirement("recovery:unwritten-turn-stopped")
def test_a_turn_that_was_started_before_a_crash_is_stopped_when_it_may_not_start_any_more(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("hang")
        run = await world.until(run_id, Phase.RUNNING)
        stop = BudgetStop(by=run_id, label="hang", used="4s of 4s", at_ms=world.clock.now_ms())
        world.parts.ledger.live[run_id] = replace(run, budget=replace(run.budget, stop=stop))
        refs: list[AttemptRef] = []

        async def stopping(ref: AttemptRef, *, grace_s: float) -> None:
            refs.append(ref)

        world.runtime.stop = stopping  # type: ignore[method-assign]
        effect = ResumeAttempt(attempt=1, turn=2, message="news")
        entry = OutboxEntry(run_id=run_id, seq=run.seq, index=0, effect=effect)

        answer = await world.parts.outbox._answer(run, entry)

        assert isinstance(answer, AttemptStartFailed)
        assert [(ref.attempt_id, ref.turns) for ref in refs] == [(f"{run_id}#1", 2)]

    in_world(tmp_path, scenario)
