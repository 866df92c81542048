"""The cause of a wait as data, for each phase in which a run can wait."""

from typing import Any

import pytest
from tests.builders import NOW_MS, Life, a_dependency, in_phase

from subagents.domain.rules.provider_limits import TOTAL_MS_MAX
from subagents.domain.rules.wait_causes import (
    HELD,
    RUNS_MAX,
    WORDS_OF,
    Refusal,
    State,
    WaitCause,
    WaitKind,
    states_of,
    wait_cause,
)
from subagents.domain.run.outcome import OK, Outcome, Status
from subagents.domain.run.run import OVER, Limited, Phase, Retry, Run
from subagents.domain.run.values import replace

REFUSED = Refusal("anthropic", 429, NOW_MS + 5_000)


def with_outcome(run: Run, status: Status) -> Run:
    assert run.conclusion is not None
    return replace(run, conclusion=replace(run.conclusion, outcome=Outcome(status=status)))


def cause(run: Run, refusal: Refusal | None = None) -> WaitCause:
    found = wait_cause(run, refusal)
    assert found is not None
    return found


@pytest.mark.requirement("wire:wait")
def test_a_run_at_work_and_one_that_ended_wait_for_nothing() -> None:
    for phase in (Phase.SPAWNING, Phase.RUNNING, Phase.VERIFYING, Phase.COMPLETED):
        assert wait_cause(in_phase(phase).run, None) is None
    stopped = in_phase(Phase.RUNNING).ask().cancel().run
    assert wait_cause(stopped, REFUSED) is None


@pytest.mark.requirement("wire:wait")
def test_a_run_before_its_first_attempt_waits_for_runs_or_a_slot_or_its_provider() -> None:
    dependencies = (*(a_dependency(n) for n in range(1, 31)), a_dependency(31, OK))
    waiting = Life.begin(dependencies=dependencies).run
    limited = replace(waiting, waiting=replace(waiting.waiting, deadline_ms=NOW_MS + 9))

    found = cause(limited)
    assert (found.kind, found.runs_total, found.gives_up_ms) == (WaitKind.RUNS, 30, NOW_MS + 9)
    assert found.runs == dependencies[:RUNS_MAX]
    assert cause(in_phase(Phase.QUEUED).run).kind is WaitKind.LANE
    refused = cause(in_phase(Phase.QUEUED).run, REFUSED)
    assert (refused.kind, refused.ends_ms) == (WaitKind.PROVIDER, NOW_MS + 5_000)


@pytest.mark.requirement("list:states")
def test_a_run_is_in_exactly_one_of_the_states_that_people_are_shown() -> None:
    def state(run: Run) -> State:
        (found,) = (each for each, words in WORDS_OF.items() if states_of(run) & {*words})
        return found

    assert {state(in_phase(phase).run) for phase in HELD} == {State.WAITING}
    at_work = {phase for phase in Phase if phase not in {*HELD, *OVER}}
    under_way = [in_phase(phase).run for phase in at_work]
    assert {state(run) for run in under_way if run.outcome is None} == {State.WORKING}
    assert state(in_phase(Phase.RUNNING).ask().run) is State.NEEDS_YOU
    assert state(in_phase(Phase.QUEUED).pause().run) is State.WAITING
    ended = in_phase(Phase.COMPLETED).run
    assert {status: state(with_outcome(ended, status)) for status in Status} == {
        Status.OK: State.OK,
        Status.CANCELLED: State.CANCELLED,
        **dict.fromkeys((Status.ERROR, Status.PARTIAL, Status.TIMEOUT, Status.LOST), State.FAILED),
    }


@pytest.mark.requirement("wire:wait")
def test_a_question_is_waited_for_until_its_deadline() -> None:
    run = in_phase(Phase.RUNNING).ask(wait_ms=60_000).run

    found = cause(run, REFUSED)

    asked = run.questions.requests[0]
    assert (found.kind, found.request_id) == (WaitKind.ANSWER, asked.id)
    assert found.gives_up_ms == asked.deadline_ms


@pytest.mark.requirement("wire:wait")
def test_a_retry_is_due_and_a_wait_for_a_provider_is_given_up_after_all() -> None:
    run = in_phase(Phase.RETRY_WAIT).run
    retry = cause(run)
    assert (retry.kind, retry.ends_ms) == (WaitKind.RETRY, run.retry.due_ms)
    limited = Limited(since_ms=NOW_MS, waits=1, text="429")
    run = replace(run, retry=Retry(due_ms=NOW_MS + 5_000, limited=limited))
    found = cause(run, REFUSED)
    assert (found.kind, found.ends_ms) == (WaitKind.PROVIDER, NOW_MS + 5_000)
    assert found.gives_up_ms == NOW_MS + TOTAL_MS_MAX


@pytest.mark.requirement("wire:wait")
def test_what_is_paused_waits_for_nothing_else_and_an_ending_run_for_its_children() -> None:
    life: Any = in_phase(Phase.QUEUED)
    assert cause(life.pause().run, REFUSED).kind is WaitKind.PAUSED
    life = in_phase(Phase.RUNNING).child(1).result("done").exit()
    assert life.phase is Phase.ENDING
    found = cause(life.run)
    assert (found.kind, [each.label for each in found.runs]) == (WaitKind.RUNS, ["child1"])
