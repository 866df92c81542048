"""A step of the machine's clock takes no time from a run and gives it none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from tests.builders import Life
from tests.domain.event_makers import lived

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.rules.clock_steps import moved
from subagents.domain.rules.deadlines import next_due_ms, timer_event
from subagents.domain.run.events import ClockStepped
from subagents.domain.run.outcome import DeferReason, Deferred
from subagents.domain.run.run import OVER

STEPS = st.sampled_from((-3_600_000, -1_000, 700, 8 * 3_600_000))


@pytest.mark.requirement("timers:clock-steps")
@given(st.data(), STEPS)
def test_whatever_is_due_stays_as_far_away_as_it_was(data: DataObject, by_ms: int) -> None:
    run = lived(data).run
    due = next_due_ms(run)

    assert next_due_ms(moved(run, by_ms)) == (None if due is None else due + by_ms)


@pytest.mark.requirement("timers:clock-steps")
@given(st.data(), STEPS)
def test_no_step_makes_anything_pass_its_deadline(data: DataObject, by_ms: int) -> None:
    run = lived(data).run
    now_ms = data.draw(st.integers(0, 10**7)) + run.times.created_at_ms
    if run.phase in OVER:
        return

    after = reduce(run, ClockStepped(at_ms=now_ms + by_ms, by_ms=by_ms)).run

    assert (timer_event(after, now_ms + by_ms) is None) is (timer_event(run, now_ms) is None)
    assert after.phase is run.phase


@pytest.mark.requirement("timers:clock-steps")
@given(st.data(), STEPS)
def test_a_step_and_its_opposite_leave_a_run_as_it_was(data: DataObject, by_ms: int) -> None:
    run = lived(data).run

    assert moved(moved(run, by_ms), -by_ms) == run


@pytest.mark.requirement("timers:clock-steps")
def test_a_step_after_its_end_leaves_how_long_a_run_took() -> None:
    run = Life.begin().start().exit().deliver(Deferred(reason=DeferReason.REQUESTER_BUSY)).run

    assert moved(run, 8 * 3_600_000).times == run.times
