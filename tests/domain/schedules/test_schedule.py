"""What becomes of a schedule: decided, paused, resumed."""

import pytest

from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import RunId, SessionKey
from subagents.domain.schedules.schedule import (
    TIMES_KEPT,
    Decision,
    DueTime,
    Schedule,
    ScheduleId,
    decided,
    paused,
    resumed,
)


def a_schedule() -> Schedule:
    return Schedule(
        id=ScheduleId("s-1"),
        name="nightly",
        when="@daily",
        zone="UTC",
        specs=(RunSpec(task="true"),),
        cwd="/",
        requester=SessionKey("agent:main:main"),
        created_at_ms=0,
        decided_to_ms=0,
    )


def due(at_ms: int, *run_ids: str, by_hand: bool = False) -> DueTime:
    return DueTime(
        due_ms=at_ms,
        decision=Decision.STARTED,
        at_ms=at_ms,
        run_ids=tuple(map(RunId, run_ids)),
        by_hand=by_hand,
    )


@pytest.mark.requirement("schedule:once")
def test_a_time_is_decided_once_and_the_newest_ones_are_kept() -> None:
    schedule = a_schedule()
    for at_ms in range(1, TIMES_KEPT + 11):
        schedule = decided(schedule, due(at_ms, f"r-{at_ms}"), lambda run_id: run_id == "r-2")

    assert schedule.decided_to_ms == TIMES_KEPT + 10
    newest = range(TIMES_KEPT + 10, 10, -1)
    assert [each.due_ms for each in schedule.times] == [*newest, 2], "its run has not ended"


@pytest.mark.requirement("schedule:run-now")
def test_what_is_started_by_hand_leaves_the_times_alone() -> None:
    assert decided(a_schedule(), due(50, by_hand=True), bool).decided_to_ms == 0


@pytest.mark.requirement("schedule:pause")
def test_what_was_due_during_a_pause_is_not_made_up_for() -> None:
    stopped = paused(a_schedule(), 10)

    assert paused(stopped, 20) is stopped
    assert resumed(stopped, 30).decided_to_ms == 30
    assert resumed(stopped, 30).paused_at_ms is None
    running = a_schedule()
    assert resumed(running, 30) is running
