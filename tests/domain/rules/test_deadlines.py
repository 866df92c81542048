"""Every stored deadline is found again with its cause, and a cause decides nothing by itself."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from tests.builders import ALL_ABILITIES, NOW_MS, Life, a_dependency, a_resolved
from tests.domain.event_makers import lived

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.rules.deadlines import next_due_ms, timer_event
from subagents.domain.run.alert import Alert, AlertKind, AlertRules
from subagents.domain.run.events import Alerted, CancelPlanned, RequestAsked, TimerCause, TimerFired
from subagents.domain.run.outcome import DeferReason, Deferred, Reason
from subagents.domain.run.run import Request
from subagents.domain.run.signals import ResultSeen
from subagents.domain.run.spec import Budget, RunSpec
from subagents.domain.run.values import RequestId, replace


def a_life(timeout_ms: int = 0, budget: Budget | None = None, **spec: Any) -> Life:
    rules = AlertRules(tokens_per_hour=0)
    resolved = a_resolved(timeout_ms=timeout_ms, abilities=ALL_ABILITIES, alerts=rules)
    return Life.begin(RunSpec(task="do it", budget=budget, **spec), resolved)


def waits_for_another() -> Life:
    spec = RunSpec(task="do it", dependency_timeout_seconds=1800)
    return Life.begin(spec, dependencies=(a_dependency(1),))


def asks() -> Life:
    life = a_life().start()
    request = Request(
        id=RequestId("q1"), attempt=1, question="?", asked_at_ms=NOW_MS, deadline_ms=NOW_MS + 9
    )
    life.apply(RequestAsked(at_ms=NOW_MS, request=request))
    return life


def has_alerts_held_back() -> Life:
    life = a_life().start()
    alert = Alert(kind=AlertKind.GIT_COMMIT, text="committed", key="k")
    life.apply(Alerted(at_ms=NOW_MS, alert=alert))
    return life


def is_warned() -> Life:
    return a_life(100_000).start().timer()


def is_to_be_cancelled() -> Life:
    life = a_life(100_000).start()
    life.apply(CancelPlanned(at_ms=life.at_ms, by="me", due_ms=life.at_ms + 5_000))
    return life


def ended_with_an_open_stream() -> Life:
    return a_life().start().exit(0, drained=False)


def was_deferred() -> Life:
    return (
        a_life().start().result("done").exit().deliver(Deferred(reason=DeferReason.REQUESTER_BUSY))
    )


LIVES: dict[TimerCause, Callable[[], Life]] = {
    TimerCause.CANCEL: is_to_be_cancelled,
    TimerCause.DEPENDENCY_TIMEOUT: waits_for_another,
    TimerCause.RETRY_DUE: lambda: a_life(retry_count=1, retry_delay=50).start().exit(1),
    TimerCause.DELIVERY_DUE: was_deferred,
    TimerCause.DEADLINE: is_warned,
    TimerCause.BUDGET: lambda: a_life(budget=Budget(max_seconds=100)).start(),
    TimerCause.QUESTION_TIMEOUT: asks,
    TimerCause.SETTLE: ended_with_an_open_stream,
    TimerCause.DEADLINE_WARNING: lambda: a_life(100_000).start(),
    TimerCause.DIGEST: has_alerts_held_back,
}


@pytest.mark.requirement("timers:cause")
@pytest.mark.parametrize("cause", LIVES)
def test_each_deadline_is_due_at_its_time_under_its_cause(cause: TimerCause) -> None:
    run = LIVES[cause]().run
    due = next_due_ms(run)
    assert due is not None

    assert timer_event(run, due - 1) is None
    event = timer_event(run, max(due, 0))
    assert event is not None
    assert event.cause is cause
    assert not reduce(run, event).stale


@pytest.mark.requirement("limits:wait:deadline")
def test_a_run_that_waits_for_its_provider_has_no_deadline() -> None:
    refused = ResultSeen(key="r", text="429", is_error=True, is_limit=True, retry_after_ms=900_000)
    run = a_life(100_000).start().signal(refused).exit(1).run

    assert next_due_ms(run) == run.retry.due_ms == NOW_MS + 900_000


@pytest.mark.requirement("limits:wait:deadline")
def test_a_run_of_0_1_0_that_waits_for_its_provider_ends_at_its_deadline_as_it_was_told() -> None:
    refused = ResultSeen(key="r", text="429", is_error=True, is_limit=True, retry_after_ms=900_000)
    run = replace(a_life(100_000).start().signal(refused).exit(1).run, rules=0)

    event = timer_event(run, NOW_MS + 100_000)

    assert event is not None
    assert event.cause is TimerCause.PROVIDER_WAIT
    outcome = reduce(run, event).run.outcome
    assert outcome is not None
    assert outcome.reason is Reason.DEADLINE


@pytest.mark.requirement("timers:cause")
def test_of_deadlines_that_passed_together_the_weightiest_is_the_cause() -> None:
    event = timer_event(a_life(100_000).start().run, NOW_MS + 200_000)

    assert event is not None
    assert event.cause is TimerCause.DEADLINE


@pytest.mark.requirement("timers:cause")
@given(st.data(), st.sampled_from([None, *TimerCause]))
def test_the_reducer_goes_by_the_run_and_the_time_whatever_the_cause_says(
    data: DataObject, cause: TimerCause | None
) -> None:
    life = lived(data)
    at_ms = life.at_ms + data.draw(st.integers(0, 10_000_000))

    named = reduce(life.run, TimerFired(at_ms=at_ms, cause=cause))

    assert named == reduce(life.run, TimerFired(at_ms=at_ms))
