"""Schedules on a whole engine: every time is decided once, whatever crashes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.engine.fake_clock import NOW_MS
from tests.engine.world import ME, World, in_world

from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.spec import Budget, Mode, RunSpec
from subagents.domain.schedules.schedule import (
    TIMES_KEPT,
    Decision,
    Missed,
    Overlap,
    Schedule,
    ScheduledPlan,
    ScheduleId,
)
from subagents.errors import Conflict, NotFound, StoreUnavailable, UsageError
from subagents.extensions.schedules import due_times
from subagents.extensions.schedules.schedules import AGAIN_MS, Schedules
from subagents.ports import RunFilter


def wanted(world: World, agent: str = "quick", *more: str, **rest: Any) -> Schedule:
    given = {
        "id": ScheduleId(""),
        "name": "hourly",
        "when": "every 1h",
        "zone": "UTC",
        "specs": tuple(RunSpec(task=f"do {each}", agent_id=each) for each in (agent, *more)),
        "cwd": str(world.directory),
        "requester": ME,
        "created_at_ms": 0,
        "decided_to_ms": 0,
    }
    return Schedule(**{**given, **rest})


async def added(world: World, agent: str = "quick", *more: str, **rest: Any) -> Schedule:
    adding = Schedules.of(world.engine).add(wanted(world, agent, *more, **rest))
    return await world.clock.result(adding)


def now_of(world: World) -> Schedule:
    return next(each for each in Schedules.of(world.engine).all if each.name == "hourly")


def decisions(world: World) -> list[str]:
    return [each.decision for each in now_of(world).times]


async def runs_of(world: World) -> list[Run]:
    found = await world.engine.queries.runs(RunFilter(tags=("schedule:hourly",), archived=True))
    return sorted(found, key=lambda run: (run.times.created_at_ms, run.id))


@pytest.mark.requirement("schedule:once", "schedule:found")
async def test_each_time_starts_a_run_that_says_for_which_time_it_was(world: World) -> None:
    schedule = await added(world)
    await world.clock.advance(3 * 3_600 + 60)

    runs = await runs_of(world)
    times = [run.resolved.scheduled for run in runs]
    assert [each and each.due_ms for each in times] == [
        NOW_MS + hour * 3_600_000 for hour in (1, 2, 3)
    ]
    assert {each and each.schedule for each in times} == {schedule.id}
    assert [each.run_ids for each in reversed(now_of(world).times)] == [(run.id,) for run in runs]
    assert {run.requester for run in runs} == {ME}


@pytest.mark.requirement("schedule:once", "durability:crash")
@pytest.mark.parametrize("reboot", [False, True])
async def test_a_crash_neither_forgets_a_time_nor_starts_its_work_twice(
    world: World, *, reboot: bool
) -> None:
    await added(world)
    for hour in range(1, 5):
        world.hold_commits()
        # Due, and reduced in memory: nothing of it is on the disk.
        await world.clock.advance(3_600)
        await world.restart(reboot=reboot)
        await world.clock.advance(1)
        assert len(await runs_of(world)) == hour
        await world.restart(reboot=reboot)
        await world.clock.advance(1)
        assert len(await runs_of(world)) == hour


@pytest.mark.requirement("schedule:missed")
@pytest.mark.parametrize("missed", [*Missed])
async def test_times_that_passed_while_nothing_could_start_are_made_up_for_once_or_not_at_all(
    world: World, missed: Missed
) -> None:
    await added(world, missed=missed)
    await world.crash()
    world.clock.jump(5 * 3_600 + 1_800)
    await world.boot()
    await world.clock.advance(1)

    (newest,) = now_of(world).times
    assert newest.due_ms == NOW_MS + 5 * 3_600_000
    assert newest.count == 5
    if missed is Missed.ONCE:
        assert (newest.decision, newest.text) == ("started", "makes up for 5 missed times")
        assert len(await runs_of(world)) == 1
    else:
        assert newest.decision is Decision.MISSED
        assert newest.text == "5 times missed: nothing could be started then"
        assert await runs_of(world) == []
    await world.clock.advance(1_800)
    assert decisions(world)[0] == "started"
    assert now_of(world).times[0].text == ""


@pytest.mark.requirement("schedule:missed:spread")
async def test_after_a_gap_five_schedules_make_up_at_once_and_five_more_each_ten_seconds(
    world: World,
) -> None:
    for number in range(12):
        await added(world, name=f"late-{number}")
    await added(world, name="left-out", missed=Missed.SKIP)
    await world.crash()
    world.clock.jump(5 * 3_600 + 1_800)
    await world.boot()

    counts = []
    for seconds in (1, 8, 2, 10, 3_600):
        await world.clock.advance(seconds)
        every = [each.times for each in Schedules.of(world.engine).all if each.times]
        counts.append(sum(each.decision is Decision.STARTED for (*_, each) in every))
        assert sum(times[-1].decision is Decision.MISSED for times in every) == 1
    assert counts == [5, 5, 10, 12, 12]


@pytest.mark.requirement("schedule:missed")
async def test_a_machine_that_slept_looks_at_its_schedules_when_it_wakes(world: World) -> None:
    await added(world, "slow")
    world.clock.set_wall(by_s=3_630)
    await world.clock.advance(10)
    assert decisions(world) == ["started"]


@pytest.mark.requirement("schedule:missed")
@pytest.mark.parametrize(("hours", "starts"), [(2, 1), (400 * 24, 2)])
async def test_a_clock_that_was_set_back_a_little_starts_nothing_twice_and_a_year_is_not_waited_for(
    world: World, hours: int, starts: int
) -> None:
    world.clock.set_wall(by_s=hours * 3_600)
    await world.clock.advance(10)
    await added(world)
    await world.clock.advance(3_601)
    world.clock.set_wall(by_s=-hours * 3_600)
    await world.clock.advance(3_700)
    assert decisions(world) == ["started"] * starts


@pytest.mark.requirement("schedule:zone")
async def test_a_zone_that_is_not_known_any_more_keeps_no_daemon_from_starting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await added(world, when="@daily", zone="Europe/Berlin")

    def gone(_name: str) -> None:
        raise UsageError("no such zone")

    monkeypatch.setattr(due_times, "zone_of", gone)
    await world.restart()
    await world.clock.advance(10)
    assert due_times.next_due(now_of(world)) is None


@pytest.mark.requirement("schedule:overlap")
async def test_a_time_whose_predecessor_has_not_ended_is_skipped_and_says_so(world: World) -> None:
    await added(world, "hang")
    await world.clock.advance(2 * 3_600 + 1)
    (run,) = await runs_of(world)
    assert decisions(world) == ["skipped", "started"]
    assert now_of(world).times[0].text == f"{run.id} had not ended"
    refused = Schedules.of(world.engine).run_now(now_of(world).id)
    with pytest.raises(Conflict, match="had not ended"):
        await world.clock.result(refused)


@pytest.mark.requirement("schedule:overlap")
@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE])
async def test_a_run_that_outlasts_all_times_that_are_kept_is_joined_by_none(
    world: World, overlap: Overlap
) -> None:
    await added(world, "hang", overlap=overlap)
    await world.clock.advance(3 * 3_600 + 1)
    before = await runs_of(world)
    await world.clock.advance(2 * TIMES_KEPT * 3_600)
    assert await runs_of(world) == before
    assert decisions(world)[:TIMES_KEPT] == ["skipped"] * TIMES_KEPT


@pytest.mark.requirement("schedule:overlap")
async def test_a_run_of_the_schedule_that_was_replaced_is_an_earlier_one(world: World) -> None:
    await added(world, "hang")
    await world.clock.advance(3_601)
    again = Schedules.of(world.engine).add(wanted(world, "quick"), replaces=True)
    await world.clock.result(again)
    await world.clock.advance(3_601)
    assert decisions(world) == ["skipped", "started"]
    assert len(await runs_of(world)) == 1


@pytest.mark.requirement("schedule:overlap", "schedule:run-now")
async def test_of_two_that_start_its_work_by_hand_at_once_one_does(world: World) -> None:
    schedules, schedule = Schedules.of(world.engine), await added(world, "hang")
    both = [schedules.run_now(schedule.id) for _ in range(2)]
    found = await world.clock.result(asyncio.gather(*both, return_exceptions=True))
    assert sorted(type(each).__name__ for each in found) == ["Conflict", "tuple"]
    assert len(await runs_of(world)) == 1


@pytest.mark.requirement("schedule:overlap")
async def test_one_time_waits_for_its_predecessor_and_no_more(world: World) -> None:
    await added(world, "hang", overlap=Overlap.QUEUE)
    await world.clock.advance(3 * 3_600 + 1)
    first, second = await runs_of(world)
    assert decisions(world) == ["skipped", "started", "started"]
    assert "one time waits already" in now_of(world).times[0].text
    assert second.phase is Phase.WAITING
    await world.clock.result(world.engine.control.cancel(first.id, by="me"))
    await world.until(second.id, Phase.RUNNING)


@pytest.mark.requirement("schedule:overlap")
async def test_a_predecessor_is_cancelled_and_its_successor_starts_when_it_has_ended(
    world: World,
) -> None:
    await added(world, "hang", overlap=Overlap.CANCEL)
    await world.clock.advance(2 * 3_600 + 60)
    first, second = await runs_of(world)
    assert first.outcome is not None
    assert first.outcome.status == "cancelled"
    assert now_of(world).times[0].text == f"cancelled {first.id}"
    assert second.phase is Phase.RUNNING


@pytest.mark.requirement("schedule:overlap")
async def test_times_may_start_beside_each_other_where_that_is_asked_for(world: World) -> None:
    await added(world, "hang", overlap=Overlap.ALLOW)
    await world.clock.advance(3 * 3_600 + 1)
    assert [run.phase for run in await runs_of(world)] == [Phase.RUNNING] * 3


@pytest.mark.requirement("schedule:plan")
async def test_a_plan_is_started_as_a_plan_each_time(world: World) -> None:
    plan = ScheduledPlan(name="checks", budget=Budget(max_tokens=1_000))
    await added(world, "quick", "slow", plan=plan)
    await world.clock.advance(2 * 3_600 + 60)
    runs = await runs_of(world)
    steps = [run.resolved.step for run in runs]
    assert [(each and each.position, each and each.name) for each in steps] == [
        *((0, "checks"), (1, "checks"), (0, "checks"), (1, "checks")),
    ]
    assert len({each and each.plan for each in steps}) == 2
    assert {run.resolved.plan and run.resolved.plan.budget.max_tokens for run in runs} == {1000}


@pytest.mark.requirement("schedule:refused")
async def test_work_that_is_refused_is_on_record_and_the_next_time_is_tried(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable(_: Schedule) -> Any:
        raise Conflict("its variables cannot be read")

    await added(world)
    monkeypatch.setattr(Schedules.of(world.engine), "_brought", unreadable)
    await world.clock.advance(3_601)
    newest = now_of(world).times[0]
    assert (newest.decision, newest.text) == (Decision.REFUSED, "its variables cannot be read")
    monkeypatch.undo()
    await world.clock.advance(3_600)
    assert decisions(world) == ["started", "refused"]


@pytest.mark.requirement("schedule:refused")
async def test_without_its_directory_a_run_is_there_to_fail_and_by_hand_it_is_refused(
    world: World, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    await added(world, cwd=str(place))
    place.rmdir()
    await world.clock.advance(3_601)
    assert decisions(world) == ["started"]
    assert [run.resolved.cwd for run in await runs_of(world)] == [str(place)]
    with pytest.raises(UsageError, match="is not a directory"):
        await world.clock.result(Schedules.of(world.engine).run_now(now_of(world).id))


@pytest.mark.requirement("schedule:refused")
async def test_a_full_disk_leaves_a_time_due(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await added(world)
    monkeypatch.setattr(world.store, "has_room", lambda: False)
    await world.clock.advance(3_601)
    assert now_of(world).times == ()
    monkeypatch.undo()
    await world.clock.advance(AGAIN_MS / 1000)
    assert decisions(world) == ["started"]


@pytest.mark.requirement("schedule:remove")
async def test_what_was_removed_while_its_work_could_not_start_is_not_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedules, schedule = Schedules.of(world.engine), await added(world)

    async def removed(_: Schedule) -> Any:
        await schedules.remove(schedule.id)
        raise StoreUnavailable("full")

    monkeypatch.setattr(schedules, "_brought", removed)
    await world.clock.advance(3_601)
    assert schedules._due == {}


@pytest.mark.requirement("schedule:once")
async def test_a_commit_that_fails_leaves_a_time_due(world: World) -> None:
    await added(world)
    world.store.failures_left = 3
    await world.clock.advance(3_620)
    assert decisions(world) == ["started"]
    assert len(await runs_of(world)) == 1


@pytest.mark.requirement("schedule:inbox")
async def test_a_good_result_gives_way_to_the_next_one_and_a_failure_waits_to_be_read(
    world: World,
) -> None:
    await added(world, "quick")
    await world.clock.advance(4 * 3_600 + 1)
    assert [each.message.run_id for each in world.store.inbox(ME, unconsumed=True)] == [
        (await runs_of(world))[-1].id
    ]
    failing = wanted(world, "fail")
    await world.clock.result(Schedules.of(world.engine).add(failing, replaces=True))
    await world.clock.advance(3 * 3_600 + 1)
    assert len(world.store.inbox(ME, unconsumed=True)) == 4


@pytest.mark.requirement("schedule:run-now", "schedule:pause", "schedule:remove")
async def test_it_is_started_by_hand_paused_resumed_and_removed(world: World) -> None:
    schedules, clock = Schedules.of(world.engine), world.clock
    schedule = await added(world)
    (receipt,) = await clock.result(schedules.run_now(schedule.id))
    scheduled = receipt.run.resolved.scheduled
    assert scheduled is not None
    assert scheduled.by_hand
    await clock.result(schedules.pause(schedule.id))
    await clock.advance(5 * 3_600)
    await world.restart()
    schedules = Schedules.of(world.engine)
    await clock.advance(3_600)
    assert [each.by_hand for each in now_of(world).times] == [True]
    await clock.result(schedules.resume(schedule.id))
    await clock.advance(3_600)
    assert [each.by_hand for each in now_of(world).times] == [False, True]
    await clock.result(schedules.remove(schedule.id))
    await world.restart()
    await clock.advance(2 * 3_600)
    assert len(await runs_of(world)) == 2
    with pytest.raises(NotFound, match='no schedule "hourly"'):
        await Schedules.of(world.engine).find("hourly")


@pytest.mark.requirement("schedule:remove", "schedule:pause")
@pytest.mark.parametrize("change", ["remove", "pause"])
def test_nothing_starts_for_a_schedule_that_was_removed_or_paused_in_the_last_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    async def scenario(world: World) -> None:
        schedule = await added(world)
        brought = Schedules.of(world.engine)._brought

        async def change_first(due: Schedule) -> Any:
            await getattr(Schedules.of(world.engine), change)(schedule.id)
            return await brought(due)

        monkeypatch.setattr(Schedules.of(world.engine), "_brought", change_first)
        await world.clock.advance(3_601)

        assert await runs_of(world) == []
        left = Schedules.of(world.engine).all
        assert [each.decision for schedule in left for each in schedule.times] == (
            [] if change == "remove" else ["refused"]
        )

    in_world(tmp_path, scenario)


@pytest.mark.requirement("schedule:environment")
async def test_the_variables_brought_with_it_are_kept_for_each_time_and_go_with_it(
    world: World, tmp_path: Path
) -> None:
    brought = [CallerEnvironment(given={"TOKEN": "secret"})]
    adding = Schedules.of(world.engine).add(wanted(world), brought)
    schedule = await world.clock.result(adding)
    await world.clock.advance(3_601)
    await world.restart()
    await world.clock.result(world.engine.sweep.once())
    await world.clock.advance(3_600)
    runs = await runs_of(world)
    assert [run.resolved.caller_env for run in runs] == [("TOKEN",), ("TOKEN",)]
    kept = tmp_path / "environments" / f"{schedule.id}.0"
    assert kept.is_file()
    kept.unlink()
    await world.restart()
    await world.clock.advance(3_600)
    assert "cannot be read" in now_of(world).times[0].text
    await world.clock.result(Schedules.of(world.engine).remove(schedule.id))
    assert not kept.exists()


@pytest.mark.requirement("schedule:add")
def test_what_no_schedule_can_start_is_refused_when_it_is_added(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async def refused(schedule: Schedule, kind: type[Exception], why: str) -> None:
            with pytest.raises(kind, match=why):
                await world.clock.result(Schedules.of(world.engine).add(schedule))

        def alone(**spec: Any) -> Schedule:
            task = RunSpec(**{"task": "x", "agent_id": "quick", **spec})
            return wanted(world, specs=(task,))

        await refused(wanted(world, when="soon"), UsageError, "five fields")
        await refused(wanted(world, zone="Mars"), UsageError, "time zone")
        await refused(wanted(world, name=" "), UsageError, "name must not be empty")
        await refused(wanted(world, name="a" * 61), UsageError, "name must have at most 60")
        await refused(wanted(world, name="a\nb"), UsageError, "name must be one line")
        await refused(wanted(world, name="s-1"), UsageError, "must not begin")
        await refused(wanted(world, "nobody"), NotFound, "nobody")
        await refused(wanted(world, cwd="/nowhere"), UsageError, "not a directory")
        await refused(alone(idempotency_key="k"), UsageError, "idempotencyKey is not for")
        await refused(alone(mode=Mode.SESSION, thread=True), UsageError, "mode is not for")
        await refused(alone(continues="r-1"), UsageError, "continues is not for")
        after = wanted(
            world,
            specs=(RunSpec(task="x", agent_id="quick", depends_on=("a",)),),
            overlap=Overlap.QUEUE,
        )
        await refused(after, UsageError, "overlap queue")
        assert not Schedules.of(world.engine).all
        first = await added(world)
        await refused(wanted(world), Conflict, "already")
        second = await world.clock.result(
            Schedules.of(world.engine).add(wanted(world, "slow"), replaces=True)
        )
        assert [each.id for each in Schedules.of(world.engine).all] == [second.id]
        assert first.id != second.id

    in_world(tmp_path, scenario)


@pytest.mark.requirement("schedule:once")
async def test_without_a_store_nothing_is_added(world: World) -> None:
    world.store.failures_left = 2
    with pytest.raises(StoreUnavailable):
        await added(world)
    await world.clock.advance(10)
    assert Schedules.of(world.engine).all == ()
