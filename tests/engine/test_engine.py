"""Crashes, a disk that says no, workers nobody can see: nothing acknowledged is ever lost."""

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests.engine.world import ME, OTHER, TroubledStore, World, in_world

from subagents.domain.run.outcome import OK, Status
from subagents.domain.run.run import (
    Decision,
    Phase,
)
from subagents.domain.run.spec import Artifact, Contract
from subagents.domain.run.values import (
    RunId,
    SessionKey,
    announcement_id,
)
from subagents.errors import (
    AlreadyRunning,
    CorruptState,
    Fenced,
    Forbidden,
    StoreUnavailable,
    Unavailable,
)
from subagents.ports import TOKEN_VARIABLE, Lease, RunFilter

THIRD = SessionKey("agent:third:main")
CONTRACT = Contract(artifacts=(Artifact(path="out.txt"),))


# -- nothing before its commit -------------------------------------------------------------------


# -- a disk that says no -------------------------------------------------------------------------


@pytest.mark.requirement("engine:outlives-mistakes")
def test_a_deadline_holds_after_the_timers_broke(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        fire, failures = world.engine.timers.fire_due, [MemoryError()]

        def failing() -> int:
            if failures:
                raise failures.pop()
            return fire()

        world.engine.timers.fire_due = failing  # type: ignore[method-assign]
        run = await world.until(await world.spawn("hang", run_timeout_seconds=20), within_s=40)

        assert (failures, run.outcome and run.outcome.status) == ([], Status.TIMEOUT)

    in_world(tmp_path, scenario)


@pytest.mark.requirement("commit:failure-recovers", "engine:outlives-mistakes")
def test_starting_over_is_tried_again_whatever_ended_it(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("slow")
        await world.until(run_id, Phase.RUNNING)
        load, failures = world.store.load_leases, [MemoryError()]

        def failing() -> Sequence[Lease]:
            if failures:
                raise failures.pop()
            return load()

        world.store.load_leases = failing  # type: ignore[method-assign]
        world.store.failures_left = 1
        with pytest.raises(StoreUnavailable):
            await world.try_spawn("quick")

        assert (await world.until(run_id, within_s=90)).outcome == OK
        assert (failures, world.runtime.starts_of(run_id)) == ([], 1)

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
            await world.engine.control.cancel(first, by="me")
        assert world.engine.degraded == "the disk said no"
        with pytest.raises(StoreUnavailable):
            await world.try_spawn("quick")
        await world.clock.until(lambda: world.engine.degraded is None, within_s=30)

        run = await world.until(first)
        assert run.outcome is not None
        assert run.outcome.status is Status.CANCELLED, "its worker was ended all the same"
        assert world.runtime.starts_of(first) == 1
        assert (await world.until(await world.spawn("quick"))).outcome == OK
        assert await world.folded(first) == await world.run(first)

    with caplog.at_level(logging.CRITICAL):
        in_world(tmp_path, scenario)


@pytest.mark.requirement("commit:failure-recovers")
async def test_an_end_whose_commit_failed_is_seen_again_and_announced_once(world: World) -> None:
    run_id = await world.spawn("slow")
    await world.until(run_id, Phase.RUNNING)
    waiting = asyncio.ensure_future(
        world.engine.mailbox.wait([run_id], session=ME, timeout_s=500, reader="r")
    )
    await world.clock.advance(9.9)
    world.store.failures_left = 1
    found = await world.clock.result(waiting)

    assert [run.outcome for run in found.completed] == [OK]
    await world.until(run_id, Phase.COMPLETED)
    assert len(world.store.inbox(ME, unconsumed=False)) == 1
    assert await world.folded(run_id) == await world.run(run_id)


@pytest.mark.requirement("commit:failure-recovers", "spawn:children")
def test_no_call_is_served_while_memory_is_being_read_back(tmp_path: Path) -> None:
    """Else a spawn would count children in an empty memory and go past the cap."""

    async def scenario(world: World) -> None:
        await world.spawn("hang")
        reading = asyncio.Event()
        go_on = asyncio.Event()
        off_loop = world.engine.ledger._off_loop

        async def slow_reading(work: object) -> object:
            reading.set()
            await go_on.wait()
            return await off_loop(work)  # type: ignore[arg-type]

        world.store.failures_left = 1
        with pytest.raises(StoreUnavailable):
            await world.try_spawn("hang", requester=OTHER)
        world.engine.ledger._off_loop = slow_reading  # type: ignore[assignment]
        await world.clock.until(reading.is_set, within_s=10)
        early = [
            world.try_spawn("hang", is_operator=False),
            world.try_spawn("hang", requester=THIRD),
        ]
        refused = await asyncio.gather(*early, return_exceptions=True)
        assert [type(each) for each in refused] == [Forbidden, StoreUnavailable]
        go_on.set()
        world.engine.ledger._off_loop = off_loop
        await world.clock.until(lambda: world.engine.degraded is None, within_s=10)

        assert world.store.count(RunFilter(), most=10_000) == 1

    in_world(tmp_path, scenario, max_children_per_agent=1)


# -- a store that is another's ---------------------------------------------------------------------


@pytest.mark.requirement("recovery:fenced")
def test_an_engine_whose_store_was_taken_over_stops_for_good_and_leaves_its_workers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("slow")
        await world.until(run_id, Phase.RUNNING)
        older, told = await world.taken_over(), asyncio.Event()
        older.on_fenced(told.set)
        with pytest.raises(Fenced, match="epoch 1 is over"):
            await older.control.cancel(run_id, by="me")
        await world.clock.until(told.is_set, within_s=1)

        assert older.fence is not None
        assert older.degraded == older.fence.message
        with pytest.raises(Fenced):
            await older.sweep.once()
        assert (older.supervisor.live_attempts, older.outbox.pending) == (0, 0)
        await world.clock.advance(5)
        assert older.fence is not None, "it tries nothing again"
        await older.stop()
        assert (await world.until(run_id)).outcome == OK
        assert (world.runtime.starts_of(run_id), world.runtime.stopped) == (1, [])

    with caplog.at_level(logging.CRITICAL):
        in_world(tmp_path, scenario)


@pytest.mark.requirement("recovery:fenced", "commit:failure-recovers")
def test_what_recovers_from_a_failed_commit_learns_that_its_store_was_taken_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("slow")
        await world.until(run_id, Phase.RUNNING)
        world.store.failures_left = 1
        with pytest.raises(StoreUnavailable):
            await world.try_spawn("quick")
        older, told = await world.taken_over(), asyncio.Event()
        older.on_fenced(told.set)
        await world.clock.until(told.is_set, within_s=5)

        assert older.fence is not None
        assert (await world.until(run_id)).outcome == OK
        await older.stop()

    with caplog.at_level(logging.CRITICAL):
        in_world(tmp_path, scenario)


# -- crashes -------------------------------------------------------------------------------------


@pytest.mark.requirement("recovery:decisions", "field:silently-broken-agents")
async def test_every_open_run_has_a_decision_when_the_engine_starts(world: World) -> None:
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


@pytest.mark.requirement("recovery:second-engine")
async def test_a_second_engine_on_the_same_store_is_refused_and_the_first_goes_on(
    world: World,
) -> None:
    run_id = await world.spawn("slow")
    second = TroubledStore(world.path)
    with pytest.raises(AlreadyRunning):
        second.open("intruder")

    assert (await world.until(run_id)).outcome == OK


@pytest.mark.requirement("recovery:corrupt-refused", "store:corruption")
async def test_an_engine_does_not_start_on_a_damaged_store(world: World) -> None:
    await world.spawn("quick")
    await world.crash()
    damaged = bytearray(world.path.read_bytes())
    damaged[4096 * 2 : 4096 * 3] = b"\xff" * 4096
    world.path.write_bytes(damaged)
    with pytest.raises(CorruptState):
        await world.boot()
    assert world.path.read_bytes() == damaged


@pytest.mark.requirement("store:set-aside", "recovery:set-aside")
@pytest.mark.world(max_spawn_depth=2)
async def test_a_run_whose_row_is_damaged_is_set_aside_and_everything_else_goes_on(
    world: World,
) -> None:
    bad = await world.spawn("hang", idempotency_key="once", retry_count=3)
    await world.until(bad, Phase.RUNNING)
    token = world.runtime.launches[0].env[TOKEN_VARIABLE]
    child = await world.spawn_child(bad, "slow")
    dependant = await world.spawn(depends_on=(bad,))
    other = await world.spawn("slow")
    ended = await world.spawn("quick")
    await world.until(ended, Phase.COMPLETED)
    await world.crash()
    with closing(sqlite3.connect(world.path)) as connection:
        connection.execute("UPDATE run SET phase = 'rumning' WHERE run_id = ?", (bad,))
        connection.commit()
    await world.boot()

    assert [each.name for each in await world.engine.queries.set_aside()] == [bad]
    assert bad not in {each.run_id for each in world.engine.recoveries}
    assert world.runtime.starts_of(bad) == 1
    with pytest.raises(CorruptState, match=f"run {bad} is set aside: "):
        await world.engine.queries.run(bad)
    with pytest.raises(CorruptState, match=bad):
        await world.spawn("hang", idempotency_key="once", retry_count=3)
    with pytest.raises(CorruptState, match=bad):
        await world.spawn(depends_on=(bad,))
    with pytest.raises(Unavailable, match=f"run {bad} is set aside: "):
        world.engine.identify(token)
    assert (await world.until(other)).outcome == OK
    assert (await world.until(child)).outcome == OK
    row = await world.engine.queries.inbox(None, unconsumed=True)
    assert {each.message.run_id for each in row} == {child, other, ended}
    await world.engine.sweep.once()
    await world.engine.queries.attention()
    assert (await world.run(dependant)).phase is Phase.WAITING
    await world.engine.control.cancel(dependant, by="me")
    assert (await world.until(dependant)).is_settled
    assert (await world.until(await world.spawn("quick"))).outcome == OK
    with closing(sqlite3.connect(world.path)) as connection:
        found = connection.execute("SELECT phase FROM run WHERE run_id = ?", (bad,))
        assert found.fetchone() == ("rumning",)


EVENTFUL = ("slow", "flaky", "fail", "late_writer", "parent", "hang")


@pytest.mark.requirement(
    "recovery:any-instant",
    "journal:fold-is-the-run",
    "delivery:restart-resumes",
    "journal:gives-the-run",
)
async def test_crashes_at_every_second_lose_and_double_nothing(world: World) -> None:
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


@pytest.mark.requirement("engine:stop-and-start")
async def test_stopping_waits_for_what_was_accepted_and_leaves_workers_alone(world: World) -> None:
    run_id = await world.spawn("slow")
    request = await world.clock.result(world.engine.questions.ask(run_id, "which?", timeout_s=600))
    answering = asyncio.ensure_future(
        world.engine.questions.answer(request.id, "x", decision=Decision.ANSWER, by="me")
    )
    await world.clock.idle()
    await world.clock.result(world.engine.stop())
    assert answering.done()
    assert world.runtime.stopped == []
    await world.boot()

    assert (await world.run(run_id)).questions.requests[0].answer is not None
    assert (await world.until(run_id)).outcome == OK
