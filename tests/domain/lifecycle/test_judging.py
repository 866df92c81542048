"""A contract with a judge is met when its checks passed and the judge's last words are a pass."""

import time

import pytest
from tests.builders import Life, a_contract, a_resolved, a_verification, in_phase

from subagents.domain.lifecycle.judging import judged
from subagents.domain.run.effects import CancelChildren, GiveVerdict, StartJudge, StopChildren
from subagents.domain.run.events import (
    BudgetExhausted,
    ChecksPassed,
    ChildSpawned,
    VerificationFinished,
)
from subagents.domain.run.linked_runs import Child
from subagents.domain.run.outcome import (
    OK,
    CheckType,
    Outcome,
    Reason,
    Status,
    Verdict,
    VerificationState,
)
from subagents.domain.run.run import BudgetStop, MessageKind, Phase
from subagents.domain.run.spec import Judge, OnFailure, RunSpec
from subagents.domain.run.values import RunId, replace

JUDGE = Judge(agent_id="critic", criteria="it is good")
PASS = '{"verdict": "pass", "reasons": ["all criteria are met"]}'
FAIL = '{"verdict": "fail", "reasons": ["no title", "no end"]}'
STOPPED = Outcome(status=Status.TIMEOUT, reason=Reason.DEADLINE, error="stopped at its deadline")


def judging(on_failure: OnFailure = OnFailure.FAIL) -> Life:
    """A run whose checks passed, and whose judge is at work."""
    contract = replace(a_contract(on_failure), judge=JUDGE)
    judge = a_resolved(agent_id="critic", label="critic")
    life = in_phase(Phase.VERIFYING, RunSpec(task="do it", verification=contract), judge=judge)
    return begin_judging(life)


def begin_judging(life: Life) -> Life:
    number = len(life.run.attempts)
    checks = a_verification(Verdict.PASSED).checks
    life.apply(ChecksPassed(at_ms=life.at_ms, attempt=number, checks=checks))
    run_id = RunId(f"r-c{number:09}")
    child = Child(run_id=run_id, label="judge of job", told=True, judges=number)
    life.apply(ChildSpawned(at_ms=life.at_ms, child=child))
    return life


def give_verdict(life: Life) -> Life:
    """The follow-up as the ledger applies it, in the same commit."""
    given = life.of(GiveVerdict, life.followups)[-1].verification
    number = len(life.run.attempts)
    event = VerificationFinished(at_ms=life.at_ms, attempt=number, verification=given)
    life.apply(event)
    return life


def says(text: str | None, outcome: Outcome = OK, on_failure: OnFailure = OnFailure.FAIL) -> Life:
    return give_verdict(judging(on_failure).child_ends(outcome, text))


@pytest.mark.requirement("judge:last-step")
def test_checks_that_passed_ask_the_judge_and_are_no_verdict_yet() -> None:
    life = judging()

    assert life.of(StartJudge) == [StartJudge(attempt=1)]
    assert life.phase is Phase.VERIFYING
    assert life.run.verification.result is None
    assert life.run.verification.state is VerificationState.RUNNING


@pytest.mark.requirement("judge:last-step")
def test_checks_of_an_older_attempt_ask_nobody() -> None:
    life = judging(OnFailure.RETRY_ONCE).child_ends(OK, FAIL)
    give_verdict(life).timer().start().exit()
    old = next(event for event in life.journal if isinstance(event, ChecksPassed))

    assert life.apply(old).stale


@pytest.mark.requirement("judge:verdict")
def test_a_pass_is_one_check_behind_the_others_in_the_one_verdict() -> None:
    life = says(f"I looked.\n```json\n{PASS}\n```\n")

    assert life.run.outcome == OK
    result = life.run.verification.result
    assert result is not None
    assert [each.type for each in result.checks] == [CheckType.ARTIFACT, CheckType.JUDGE]
    assert result.checks[1].target == "judge (agent critic)"
    assert (result.checks[1].evidence or "").startswith("pass: all criteria are met\n")
    assert life.run.verification.passed == ()
    assert "verified: 2/2 checks" in life.messages[-1].text


@pytest.mark.requirement("judge:verdict")
def test_a_fail_is_a_failed_check_with_the_judges_reasons() -> None:
    life = says(FAIL)

    assert life.run.outcome is not None
    assert life.run.outcome.reason is Reason.VERIFICATION_FAILED
    assert life.run.outcome.error == "judge (agent critic): fail: no title; no end"


@pytest.mark.requirement("judge:verdict")
def test_a_fail_is_tried_once_more_with_the_reasons_and_then_judged_again() -> None:
    life = says(FAIL, on_failure=OnFailure.RETRY_ONCE).timer().start()
    assert life.run.attempt.retry.reason == "judge (agent critic): fail: no title; no end"

    begin_judging(life.exit())  # not one more turn, in which it would be told of its judge
    give_verdict(life.child_ends(OK, PASS, 2))

    assert life.of(StartJudge) == [StartJudge(attempt=1), StartJudge(attempt=2)]
    assert life.run.outcome == OK


@pytest.mark.requirement("judge:undecided")
@pytest.mark.parametrize(
    ("text", "outcome", "why"),
    [
        ("I like it", OK, 'its last words are no verdict: "I like it"'),
        (None, OK, "it said nothing"),
        (f"{PASS}\nBut is it?", OK, "its last words are no verdict"),
        ('{"verdict": "maybe"}', OK, "its last words are no verdict"),
        ('{"answer": {"verdict": "pass"}}', OK, "its last words are no verdict"),
        ('["verdict"]', OK, "its last words are no verdict"),
        (PASS, STOPPED, "its run timed out: stopped at its deadline"),
    ],
)
def test_a_judge_without_a_verdict_leaves_the_run_unverified_and_the_worker_unpaid(
    text: str | None, outcome: Outcome, why: str
) -> None:
    life = says(text, outcome, OnFailure.RETRY_ONCE)

    assert life.run.outcome is not None
    assert life.run.outcome.reason is Reason.COULD_NOT_CHECK
    expected = f"judge (agent critic): the judge could not decide: {why}"
    assert (life.run.outcome.error or "").startswith(expected)
    assert len(life.run.attempts) == 1
    assert life.run.verification.state is VerificationState.FAILED


@pytest.mark.requirement("judge:undecided")
def test_a_judge_that_cannot_decide_is_escalated_where_the_contract_says_so() -> None:
    kinds = [each.kind for each in says("hm", on_failure=OnFailure.ESCALATE).messages]

    assert kinds == [MessageKind.ANNOUNCEMENT, MessageKind.BLOCKER]


@pytest.mark.requirement("judge:verdict")
def test_only_the_last_object_counts_whatever_the_judge_quotes_before_it() -> None:
    assert judged("critic", "r-1", OK, f"The work says {PASS}.\n{FAIL}").reason == (
        "fail: no title; no end"
    )


@pytest.mark.requirement("judge:verdict")
@pytest.mark.parametrize("text", ["{" * 32_000, '{"a":' * 6_000 + "}", "[" * 32_000 + "}"])
def test_no_text_of_a_judge_takes_long_to_read(text: str) -> None:
    begun = time.process_time()

    assert not judged("critic", "r-1", OK, text).passed
    assert time.process_time() - begun < 30


@pytest.mark.requirement("judge:cancel")
def test_cancelling_a_run_that_is_judged_cancels_the_judge_and_ends_after_it() -> None:
    life = judging().cancel()
    phases = [life.phase]

    life.child_ends(Outcome(status=Status.CANCELLED, reason=Reason.PARENT_ENDED), None)

    assert life.of(CancelChildren, life.followups) != []
    assert [*phases, life.phase] == [Phase.VERIFYING, Phase.ANNOUNCING]
    assert life.run.outcome is not None
    assert life.run.outcome.status is Status.CANCELLED
    assert "verified:" not in life.messages[-1].text


@pytest.mark.requirement("judge:budget")
def test_a_budget_that_ends_while_it_is_judged_stops_the_judge() -> None:
    life = judging()
    stop = BudgetStop(by=life.run.id, label="job", used="9k of 9k tokens", at_ms=life.at_ms)

    life.apply(BudgetExhausted(at_ms=life.at_ms, stop=stop))

    assert life.of(StopChildren, life.followups) == [StopChildren(stop=stop)]
    assert life.phase is Phase.VERIFYING


@pytest.mark.requirement("judge:quiet")
def test_the_end_of_a_judge_is_news_to_nobody() -> None:
    life = Life.begin(requester_run=RunId("r-1"), judges=1).start().result(PASS).exit()

    assert [(each.kind, each.consumed) for each in life.messages] == [
        (MessageKind.ANNOUNCEMENT, True)
    ]
