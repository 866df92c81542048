"""The life of one run, step by step: what each event leads to, and what it asks for."""

from typing import get_args

import pytest
from tests.builders import (
    ALL_ABILITIES,
    NOW_MS,
    RUN,
    Life,
    a_contract,
    a_dependency,
    a_resolved,
    in_phase,
)

from subagents.domain.lifecycle.reduce import REACTIONS, reduce
from subagents.domain.rules.admission import queue_order
from subagents.domain.rules.deadlines import next_due_ms, timer_event
from subagents.domain.rules.evidence import SETTLE_MS
from subagents.domain.run.access import Access, AccessLevel
from subagents.domain.run.alert import Alert, AlertKind, AlertRules, OnStuck
from subagents.domain.run.baseline import Baseline
from subagents.domain.run.effects import (
    Announce,
    CancelChildren,
    ConsumeChildren,
    FreezeAttempt,
    MoveInbox,
    ResumeAttempt,
    StartAttempt,
    SteerAttempt,
    StopAttempt,
    TellDependants,
    TellParent,
    ThawAttempt,
    Verify,
)
from subagents.domain.run.events import (
    Alerted,
    AttemptPlaced,
    BaselineTaken,
    CancelPlanned,
    CancelRequested,
    CancelWithdrawn,
    ChildReturned,
    ChildTold,
    ClockStepped,
    DependencySettled,
    Event,
    InterruptRequested,
    LeaseExpired,
    Prioritized,
    SlotGranted,
    Spawned,
    SteerSettled,
    TimerCause,
    TimerFired,
    VerificationFinished,
    WorktreePlanned,
)
from subagents.domain.run.outcome import (
    OK,
    DeferReason,
    Deferred,
    Outcome,
    Reason,
    Status,
    Verdict,
    VerificationState,
)
from subagents.domain.run.run import SETTLED, MessageKind, Phase, Priority, StopCause
from subagents.domain.run.signals import ResultSeen
from subagents.domain.run.spec import (
    Abilities,
    Budget,
    OnDependencyFailure,
    OnFailure,
    PlanBudget,
    PlanStep,
    ResolvedAgent,
    RunSpec,
)
from subagents.domain.run.values import RunId, SessionKey, announcement_id, replace
from subagents.domain.run.workspace import Worktree
from subagents.domain.text.prompt import compose

ERROR = Outcome(status=Status.ERROR, reason=Reason.EXIT_CODE, error="exit code 1")
PARTIAL = Outcome(status=Status.PARTIAL, reason=Reason.REPORTED_PARTIAL, error="half")
CANCELLED = Outcome(status=Status.CANCELLED, reason=Reason.CANCELLED_BY_CALLER)


def settled_dependency(
    life: Life, number: int, outcome: Outcome, result: str | None = None
) -> Life:
    run_id = a_dependency(number).run_id
    life.apply(DependencySettled(at_ms=life.at_ms, run_id=run_id, outcome=outcome, result=result))
    return life


# -- places -------------------------------------------------------------------------------------


@pytest.mark.requirement("cluster:files-at-place")
def test_a_worktree_that_is_planned_at_its_place_is_where_the_run_and_its_contract_are() -> None:
    access = Access(level=AccessLevel.WRITE, below="/r")
    life = Life.begin(resolved=a_resolved(cwd="/r", contract_root="/r", access=access)).grant()
    life.apply(AttemptPlaced(at_ms=life.at_ms, attempt=1, node="b"))
    tree = Worktree(repository="/r", path="/t/x", branch="subagents/x", origin="/r", node="b")

    life.apply(WorktreePlanned(at_ms=life.at_ms, worktree=tree, cwd="/t/x"))

    found = life.run.resolved
    assert (found.cwd, found.contract_root, found.worktree) == ("/t/x", "/t/x", tree)
    assert found.access == replace(access, below="/t/x")
    assert found.project == "/r"


@pytest.mark.requirement("cluster:files-at-place")
def test_a_worktree_of_a_place_that_the_attempt_has_no_more_changes_nothing() -> None:
    life = Life.begin().grant()
    life.apply(AttemptPlaced(at_ms=life.at_ms, attempt=1, node="b"))
    before = life.run.resolved
    tree = Worktree(repository="/r", path="/t/x", branch="subagents/x", origin="/r", node="a")

    assert life.apply(WorktreePlanned(at_ms=life.at_ms, worktree=tree, cwd="/t/x")).stale
    assert life.run.resolved == before


# -- dependencies -------------------------------------------------------------------------------


@pytest.mark.requirement("dependencies:released")
def test_a_run_waits_for_all_its_dependencies_and_is_then_queued() -> None:
    life = Life.begin(dependencies=(a_dependency(1), a_dependency(2)))

    assert settled_dependency(life, 1, OK, "a").phase is Phase.WAITING
    assert settled_dependency(life, 2, OK, "b").phase is Phase.QUEUED
    assert [d.result for d in life.run.waiting.dependencies] == ["a", "b"]
    assert next_due_ms(life.run) is None


@pytest.mark.requirement("dependencies:chain-completed", "dependencies:released")
def test_a_completed_dependency_means_no_wait() -> None:
    life = Life.begin(dependencies=(a_dependency(1, OK),))

    assert life.phase is Phase.QUEUED


@pytest.mark.requirement("dependencies:failure-cancels")
@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (ERROR, "Dependency run r-d000000001 error: exit code 1"),
        (CANCELLED, "Dependency run r-d000000001 cancelled: cancelled_by_caller"),
        (PARTIAL, "Dependency run r-d000000001 partial: half"),
        (Outcome(status=Status.LOST), "Dependency run r-d000000001 lost: no error text"),
    ],
)
@pytest.mark.parametrize("already", [True, False])
def test_an_unusable_dependency_ends_the_run_with_the_reason(
    outcome: Outcome, text: str, *, already: bool
) -> None:
    if already:
        life = Life.begin(dependencies=(a_dependency(1, outcome), a_dependency(2)))
    else:
        life = Life.begin(dependencies=(a_dependency(1), a_dependency(2)))
        settled_dependency(life, 1, outcome)

    assert life.phase is Phase.ANNOUNCING
    assert life.run.outcome == Outcome(
        status=Status.ERROR, reason=Reason.DEPENDENCY_FAILED, error=text
    )
    assert len(life.of(Announce)) == 1
    assert life.of(StartAttempt) == []


@pytest.mark.requirement("dependencies:failure-runs")
def test_with_on_dependency_failure_run_it_starts_anyway() -> None:
    spec = RunSpec(task="do it", on_dependency_failure=OnDependencyFailure.RUN)
    life = Life.begin(spec, dependencies=(a_dependency(1),))

    assert settled_dependency(life, 1, ERROR).phase is Phase.QUEUED


@pytest.mark.requirement("dependencies:partial")
def test_a_partial_dependency_is_usable_only_when_accepted() -> None:
    spec = RunSpec(task="do it", accept_partial_dependencies=True)
    life = Life.begin(spec, dependencies=(a_dependency(1),))

    assert settled_dependency(life, 1, PARTIAL).phase is Phase.QUEUED


@pytest.mark.requirement("dependencies:timeout")
def test_waiting_too_long_ends_the_run_with_the_exact_text() -> None:
    spec = RunSpec(task="do it", dependency_timeout_seconds=0.5)
    life = Life.begin(spec, dependencies=(a_dependency(1, OK), a_dependency(2)))

    early = life.apply(TimerFired(at_ms=NOW_MS + 499))
    life.timer()

    assert early.stale
    assert life.at_ms == NOW_MS + 500
    assert life.run.outcome == Outcome(
        status=Status.TIMEOUT,
        reason=Reason.DEPENDENCY_TIMEOUT,
        error="Timed out after 500ms waiting for run r-d000000002",
    )


@pytest.mark.requirement("dependencies:timeout")
def test_without_a_longest_wait_a_run_waits_until_what_it_waits_for_ends() -> None:
    life = Life.begin(dependencies=(a_dependency(),))

    assert life.run.waiting.deadline_ms is None
    assert next_due_ms(life.run) is None
    assert life.apply(TimerFired(at_ms=NOW_MS + 40 * 24 * 3_600_000)).stale
    assert settled_dependency(life, 1, OK).phase is Phase.QUEUED


@pytest.mark.requirement("dependencies:timeout")
@pytest.mark.parametrize("rules", [0, 1])
def test_a_run_of_before_waits_for_the_half_hour_that_it_was_given_then(rules: int) -> None:
    life = Life.begin(dependencies=(a_dependency(1),), rules=rules)

    assert life.run.waiting.deadline_ms == NOW_MS + 1_800_000
    life.timer()
    assert life.run.outcome == Outcome(
        status=Status.TIMEOUT,
        reason=Reason.DEPENDENCY_TIMEOUT,
        error="Timed out after 1800000ms waiting for run r-d000000001",
    )


# -- attempts -----------------------------------------------------------------------------------


@pytest.mark.requirement("attempts:node")
def test_each_attempt_records_the_node_that_got_its_slot() -> None:
    life = Life.begin(RunSpec(task="do it", retry_count=2))
    for number, node in enumerate(("box-1", "box-2", None), start=1):
        session = SessionKey(f"agent:worker:subagent:u{number}")
        life.apply(SlotGranted(at_ms=life.at_ms, session_key=session, node=node))
        life.start().exit(1)
        if number < 3:
            life.timer()

    assert [attempt.node for attempt in life.run.attempts] == ["box-1", "box-2", None]


@pytest.mark.requirement("attempts:numbered")
def test_a_retry_is_a_new_attempt_in_a_new_session_that_names_the_one_before() -> None:
    life = Life.begin(RunSpec(task="do it", retry_count=1)).start().exit(1)
    first = life.run.attempt
    life.timer().start()

    second = life.run.attempt
    assert (first.number, second.number) == (1, 2)
    assert second.session.key != first.session.key
    assert second.retry.reason == "exit code 1"
    assert life.run.id == RUN
    assert [effect.attempt for effect in life.of(StartAttempt)] == [1, 2]


@pytest.mark.requirement("retry:stored-due-time", "retry:retry-count-3")
def test_failures_are_retried_at_their_stored_times_and_then_reported() -> None:
    life = Life.begin(RunSpec(task="do it", retry_count=3, retry_delay=1000))
    delays = []
    for _ in range(3):
        life.start().exit(1)
        assert life.phase is Phase.RETRY_WAIT
        delays.append((life.run.retry.due_ms or 0) - life.at_ms)
        assert life.apply(TimerFired(at_ms=life.at_ms)).stale
        assert life.timer().phase is Phase.QUEUED
    life.start().exit(1)

    assert delays == [1000, 2000, 4000]
    assert life.phase is Phase.ANNOUNCING
    assert len(life.run.attempts) == 4


@pytest.mark.requirement("retry:retry-count-0")
def test_without_retry_count_a_failure_is_final() -> None:
    life = Life.begin(RunSpec(task="do it", retry_count=0)).start().exit(1)

    assert life.phase is Phase.ANNOUNCING
    assert len(life.run.attempts) == 1


@pytest.mark.requirement("retry:start-failures")
def test_failing_to_start_is_retried_but_a_start_that_can_never_work_is_not() -> None:
    spec = RunSpec(task="do it", retry_count=1)

    assert Life.begin(spec).fail_start().phase is Phase.RETRY_WAIT
    permanent = Life.begin(spec).fail_start(permanent=True)
    assert permanent.phase is Phase.ANNOUNCING
    assert permanent.run.outcome == Outcome(
        status=Status.ERROR, reason=Reason.START_FAILED, error="no such program"
    )


@pytest.mark.requirement("retry:not-after-cancel")
def test_a_cancelled_run_is_never_retried() -> None:
    life = Life.begin(RunSpec(task="do it", retry_count=3)).start().cancel().exit(1)

    assert life.phase is Phase.ANNOUNCING
    assert life.run.outcome == CANCELLED


@pytest.mark.requirement("deadline:stays-timeout", "retry:timeouts")
def test_a_deadline_stops_the_attempt_and_stays_the_outcome_when_it_exits_0() -> None:
    life = Life.begin(resolved=a_resolved(timeout_ms=10_000, grace_ms=700)).start()

    life.timer()
    assert life.of(StopAttempt) == [StopAttempt(attempt=1, grace_ms=700)]
    assert life.at_ms == NOW_MS + 10_000
    assert next_due_ms(life.run) is None
    life.result("partial text").exit(0)

    assert life.run.outcome is not None
    assert (life.run.outcome.status, life.run.outcome.reason) == (Status.TIMEOUT, Reason.DEADLINE)
    assert life.run.result == "partial text"


@pytest.mark.requirement("deadline:stored-absolute")
def test_the_deadline_counts_from_the_attempts_start_not_from_the_queue() -> None:
    life = Life.begin(resolved=a_resolved(timeout_ms=10_000)).pass_ms(60_000).start()

    assert life.run.attempt.times.deadline_ms == NOW_MS + 70_000


@pytest.mark.requirement("deadline:warned")
def test_a_runtime_that_can_is_warned_once_at_90_percent() -> None:
    limits = a_resolved(timeout_ms=100_000, abilities=ALL_ABILITIES)
    life = Life.begin(resolved=limits).start()

    life.timer()
    assert life.at_ms == NOW_MS + 90_000
    (warning,) = life.of(SteerAttempt)
    assert warning.message == (
        "[System Message] 10s left before your deadline: finish and report what you have."
    )
    life.timer()
    assert life.at_ms == NOW_MS + 100_000
    assert len(life.of(SteerAttempt)) == 1
    assert life.run.attempt.evidence.stop is StopCause.DEADLINE


@pytest.mark.requirement("reconcile:settle-window")
def test_a_result_within_two_seconds_after_the_exit_still_counts() -> None:
    life = Life.begin().start().exit(0, drained=False)
    assert life.phase is Phase.ENDING
    life.pass_ms(SETTLE_MS - 1).result("late but true")
    assert life.phase is Phase.ENDING

    life.timer()

    assert life.at_ms == NOW_MS + SETTLE_MS == NOW_MS + 2_000
    assert (life.phase, life.run.result) == (Phase.ANNOUNCING, "late but true")


@pytest.mark.requirement("field:early-notification")
def test_nothing_is_announced_before_exit_evidence_and_verdict() -> None:
    life = Life.begin(RunSpec(task="do it", verification=a_contract())).start()
    life.result("I am done!")
    assert life.messages == []
    life.exit()
    assert (life.phase, life.messages) == (Phase.VERIFYING, [])

    life.verify(Verdict.PASSED)

    assert [m.id for m in life.messages] == [announcement_id(RUN)]


@pytest.mark.requirement("lease:expired-is-lost")
def test_an_expired_lease_without_evidence_is_lost_and_late_signals_change_nothing() -> None:
    life = Life.begin().start()
    life.apply(LeaseExpired(at_ms=life.at_ms, attempt=1))

    assert life.run.outcome == Outcome(
        status=Status.LOST,
        reason=Reason.LEASE_LOST,
        error="the worker is gone and its exit was never seen",
    )
    assert life.exit(0).run.outcome is not None
    assert life.run.outcome.status is Status.LOST


@pytest.mark.requirement("signals:doubled", "contract:verified-once")
def test_two_reports_of_the_same_end_start_one_verification() -> None:
    life = Life.begin(RunSpec(task="do it", verification=a_contract())).start()

    life.exit()
    life.signal(ResultSeen(key="other", text="again")).exit()

    assert life.of(Verify) == [Verify(attempt=1)]


# -- verification -------------------------------------------------------------------------------


def verifying(on_failure: OnFailure = OnFailure.FAIL, **spec: object) -> Life:
    wanted = RunSpec(task="do it", verification=a_contract(on_failure), **spec)  # type: ignore[arg-type]
    return Life.begin(wanted).start().result("done").exit()


@pytest.mark.requirement(
    "verification:state-before-checks",
    "contract:state-persisted",
    "contract:before-announcement",
    "contract:waits-for-the-end",
)
def test_the_state_is_stored_before_the_checks_start() -> None:
    life = Life.begin(RunSpec(task="do it", verification=a_contract()))
    states = [life.run.verification.state]
    life.start().exit(drained=False)
    assert life.of(Verify) == []
    life.timer()
    states.append(life.run.verification.state)

    assert states == [VerificationState.PENDING, VerificationState.RUNNING]
    assert (life.phase, life.of(Verify)) == (Phase.VERIFYING, [Verify(attempt=1)])


@pytest.mark.requirement("contract:not-done-before-verdict", "field:early-notification")
def test_the_run_counts_as_active_until_the_verdict() -> None:
    life = verifying()
    assert not life.run.is_settled
    assert life.followups == []

    life.verify(Verdict.PASSED)

    assert life.run.is_settled
    assert life.run.verification.state is VerificationState.PASSED
    assert life.run.outcome == OK


@pytest.mark.requirement("verification:on-failure-fail", "contract:fail-has-details")
def test_a_failed_check_makes_the_run_an_error_with_the_details() -> None:
    life = verifying().verify(Verdict.FAILED)

    assert life.run.outcome == Outcome(
        status=Status.ERROR, reason=Reason.VERIFICATION_FAILED, error="out.txt: is missing"
    )
    assert life.run.verification.state is VerificationState.FAILED
    assert life.run.verification.result is not None
    assert [check.reason for check in life.run.verification.result.failures] == ["is missing"]
    assert life.run.result == "done"
    assert [m.kind for m in life.messages] == [MessageKind.ANNOUNCEMENT]


@pytest.mark.requirement("verification:escalate", "contract:escalate")
def test_escalate_adds_a_blocker_for_the_requester() -> None:
    life = verifying(OnFailure.ESCALATE).verify(Verdict.FAILED)

    kinds = [m.kind for m in life.messages]
    assert kinds == [MessageKind.ANNOUNCEMENT, MessageKind.BLOCKER]
    assert "out.txt: is missing" in life.messages[1].text
    assert life.run.outcome is not None
    assert life.run.outcome.reason is Reason.VERIFICATION_FAILED


@pytest.mark.requirement(
    "verification:retry-once",
    "contract:retry-once",
    "contract:retry-guard-persists",
    "contract:second-failure-fails",
    "contract:no-duplicate-retry",
)
def test_retry_once_gives_one_more_attempt_and_then_fails() -> None:
    life = verifying(OnFailure.RETRY_ONCE).verify(Verdict.FAILED)
    assert (life.phase, life.run.verification.retried_at_ms) == (Phase.RETRY_WAIT, NOW_MS)
    assert life.run.verification.state is VerificationState.PENDING
    life.timer().start()
    assert life.run.attempt.retry.verifies
    assert life.run.attempt.retry.reason == "out.txt: is missing"
    life.exit().verify(Verdict.FAILED)

    assert life.phase is Phase.ANNOUNCING
    assert len(life.run.attempts) == 2
    assert life.run.retry.used == 0
    assert life.run.outcome is not None
    assert life.run.outcome.reason is Reason.VERIFICATION_FAILED


@pytest.mark.requirement("verification:retry-once")
def test_the_retry_after_a_failed_contract_is_apart_from_the_retry_count() -> None:
    life = verifying(OnFailure.RETRY_ONCE, retry_count=1).verify(Verdict.FAILED)
    life.timer().start().exit(1)
    assert life.phase is Phase.RETRY_WAIT
    life.timer().start()

    assert not life.run.attempt.retry.verifies
    assert life.exit().verify(Verdict.PASSED).run.outcome == OK
    assert len(life.run.attempts) == 3


@pytest.mark.requirement("verification:could-not-check-no-retry")
@pytest.mark.parametrize("on_failure", list(OnFailure))
def test_a_checker_that_could_not_run_never_causes_a_retry(on_failure: OnFailure) -> None:
    life = verifying(on_failure, retry_count=3).verify(Verdict.COULD_NOT_CHECK)

    assert life.phase is Phase.ANNOUNCING
    assert life.run.outcome is not None
    assert life.run.outcome.reason is Reason.COULD_NOT_CHECK
    assert len(life.run.attempts) == 1


@pytest.mark.requirement("verification:late-verdict")
def test_a_verdict_on_an_older_attempt_says_nothing() -> None:
    life = verifying(OnFailure.RETRY_ONCE).verify(Verdict.FAILED).timer().start().exit()
    event = life.journal[-3]
    old = next(e for e in life.journal if isinstance(e, VerificationFinished))

    assert life.apply(old).stale
    assert (life.phase, event is old) == (Phase.VERIFYING, False)


@pytest.mark.requirement("verification:only-claimed-work")
def test_only_an_attempt_that_says_it_worked_is_verified() -> None:
    life = Life.begin(RunSpec(task="do it", verification=a_contract())).start().exit(1)

    assert life.of(Verify) == []
    assert life.run.outcome == ERROR
    assert life.run.verification.result is None


@pytest.mark.requirement("vacuous:marked")
def test_a_contract_that_dependencies_already_met_is_marked_at_the_start() -> None:
    life = Life.begin(RunSpec(task="do it", verification=a_contract())).grant()
    life.apply(BaselineTaken(at_ms=life.at_ms, baseline=Baseline(), vacuous=True))
    life.start().exit().verify(Verdict.PASSED)

    assert life.run.verification.proves_nothing
    assert "vacuous: its contract was already met before the work" in life.messages[0].text
    assert "verified" not in life.messages[0].text


@pytest.mark.requirement("contract:fresh")
def test_the_first_look_at_the_files_of_a_contract_counts() -> None:
    life = Life.begin(RunSpec(task="do it", verification=a_contract())).grant()
    first = Baseline(unknown=("first",))
    life.apply(BaselineTaken(at_ms=life.at_ms, baseline=first))
    life.apply(BaselineTaken(at_ms=life.at_ms, baseline=Baseline(), vacuous=True))

    assert life.run.verification.baseline == first
    assert not life.run.verification.vacuous


# -- cancel -------------------------------------------------------------------------------------


@pytest.mark.requirement("cancel:every-phase")
@pytest.mark.parametrize("phase", [Phase.WAITING, Phase.QUEUED, Phase.VERIFYING, Phase.RETRY_WAIT])
def test_a_run_without_a_live_worker_is_cancelled_at_once(phase: Phase) -> None:
    life = in_phase(phase).cancel(reason="not needed")

    assert life.phase is Phase.ANNOUNCING
    assert life.run.outcome == Outcome(
        status=Status.CANCELLED, reason=Reason.CANCELLED_BY_CALLER, error="not needed"
    )
    assert next_due_ms(life.run) is None


@pytest.mark.requirement("cancel:every-phase", "cancel:confirmed-by-state")
@pytest.mark.parametrize("phase", [Phase.SPAWNING, Phase.RUNNING])
def test_a_live_worker_is_stopped_and_its_end_confirms_the_cancel(phase: Phase) -> None:
    life = in_phase(phase, RunSpec(task="do it"), grace_ms=900).cancel()
    assert life.phase is phase
    assert life.of(StopAttempt) == [StopAttempt(attempt=1, grace_ms=900)]

    life.exit(0)

    assert (life.phase, life.run.outcome) == (Phase.ANNOUNCING, CANCELLED)


@pytest.mark.requirement("cancel:every-phase")
def test_a_start_that_fails_after_the_cancel_is_a_cancel() -> None:
    life = in_phase(Phase.SPAWNING).cancel().fail_start("cancelled before it was started")

    assert (life.phase, life.run.outcome) == (Phase.ANNOUNCING, CANCELLED)


@pytest.mark.requirement("cancel:every-phase")
def test_a_run_in_ending_is_cancelled_when_it_settles() -> None:
    life = in_phase(Phase.ENDING).cancel()
    assert life.phase is Phase.ENDING

    assert life.timer().run.outcome == CANCELLED


def planned(phase: Phase) -> Life:
    life = in_phase(phase)
    life.apply(CancelPlanned(at_ms=life.at_ms, by="web", due_ms=life.at_ms + 5_000, reason="no"))
    return life


@pytest.mark.requirement("cancel:planned")
@pytest.mark.parametrize("phase", [each for each in Phase if each not in SETTLED])
def test_a_planned_cancel_comes_to_pass_in_every_phase_as_if_it_were_asked_for_then(
    phase: Phase,
) -> None:
    due_ms = planned(phase).at_ms + 5_000
    later = planned(phase)
    later.apply(TimerFired(at_ms=due_ms))
    now = in_phase(phase)
    now.apply(CancelRequested(at_ms=due_ms, by="web", reason="no"))

    for name in ("phase", "outcome", "control", "attempts", "times"):
        assert getattr(later.run, name) == getattr(now.run, name)
    assert (later.effects, later.followups) == (now.effects, now.followups)
    early = planned(phase)
    early.apply(TimerFired(at_ms=due_ms - 1))
    assert early.run.control.cancel is None


@pytest.mark.requirement("cancel:planned")
def test_a_planned_cancel_that_is_taken_back_or_overtaken_never_comes_to_pass() -> None:
    life = planned(Phase.RUNNING)
    life.apply(CancelWithdrawn(at_ms=life.at_ms, by="web"))
    assert life.run == replace(in_phase(Phase.RUNNING).run, seq=life.run.seq)
    assert life.apply(CancelWithdrawn(at_ms=life.at_ms, by="web")).stale

    ended = Life.begin().start()
    ended.apply(CancelPlanned(at_ms=ended.at_ms, by="web", due_ms=ended.at_ms + 5_000))
    ended.result("done").exit()
    deferred = ended.deliver(Deferred(reason=DeferReason.REQUESTER_BUSY))
    deferred.apply(TimerFired(at_ms=deferred.at_ms + 10_000_000))
    assert deferred.run.outcome == OK
    asked = planned(Phase.RUNNING).cancel()
    assert asked.run.control.planned is None
    assert asked.apply(CancelPlanned(at_ms=asked.at_ms, by="web", due_ms=0)).stale


@pytest.mark.requirement("map:budget")
def test_a_step_and_not_what_it_spawned_is_cancelled_when_the_time_of_its_plan_is_over() -> None:
    plan = PlanBudget(id=RUN, budget=Budget(max_seconds=5))
    step = Life.begin(resolved=a_resolved(plan=plan, step=PlanStep(plan=RUN, position=0)))

    assert next_due_ms(step.run) == NOW_MS + 5_000
    step.timer()

    assert step.run.outcome is not None
    assert step.run.outcome.error == "the time for all runs of the plan is over"
    assert Life.begin(resolved=a_resolved(plan=plan)).run.planned is None


def turn_planned(life: Life) -> Life:
    event = CancelPlanned(
        at_ms=life.at_ms, by="web", due_ms=life.at_ms + 5_000, reason="no", of_turn=life.run.turn
    )
    life.apply(event)
    return life


@pytest.mark.requirement("interrupt:planned")
@pytest.mark.parametrize("phase", [Phase.SPAWNING, Phase.RUNNING])
def test_a_planned_interrupt_comes_to_pass_as_if_it_were_asked_for_then(phase: Phase) -> None:
    later = turn_planned(in_phase(phase))
    assert next_due_ms(later.run) == later.at_ms + 5_000
    due_ms = later.at_ms + 5_000
    later.apply(TimerFired(at_ms=due_ms))
    now = in_phase(phase)
    now.apply(InterruptRequested(at_ms=due_ms, by="web", reason="no"))

    for name in ("phase", "outcome", "control", "attempts", "times"):
        assert getattr(later.run, name) == getattr(now.run, name)
    assert (later.effects, later.followups) == (now.effects, now.followups)


@pytest.mark.requirement("interrupt:planned")
def test_a_planned_interrupt_ends_no_other_turn_and_none_that_ends_already() -> None:
    life = turn_planned(in_phase(Phase.RUNNING))
    attempt = life.run.attempt
    other = replace(attempt, turn=replace(attempt.turn, number=attempt.turn.number + 1))
    again = replace(attempt, number=attempt.number + 1)
    stopped = replace(attempt, evidence=replace(attempt.evidence, stop=StopCause.DEADLINE))
    attempts = [(other,), (attempt, again), (stopped,)]
    for run in (
        *(replace(life.run, attempts=each) for each in attempts),
        replace(life.run, phase=Phase.RETRY_WAIT),
    ):
        assert run.planned is None
        event = timer_event(run, life.at_ms + 5_000)
        assert event is None or event.cause is not TimerCause.CANCEL
        late = reduce(run, TimerFired(at_ms=life.at_ms + 5_000)).run
        assert late.attempts[-1].evidence.stop is run.attempts[-1].evidence.stop
    life.apply(CancelWithdrawn(at_ms=life.at_ms, by="web"))
    assert life.run.planned is None


@pytest.mark.requirement("cancel:idempotent")
@pytest.mark.parametrize("phase", list(Phase))
def test_repeating_a_cancel_is_harmless_and_a_finished_run_is_left_alone(phase: Phase) -> None:
    life = in_phase(phase)
    was_settled, outcome = life.run.is_settled, life.run.outcome
    life.cancel()
    effects = len(life.effects)
    step = life.apply(CancelRequested(at_ms=life.at_ms, by="somebody else"))

    assert step.stale
    assert len(life.effects) == effects
    if was_settled:
        assert (life.run.outcome, life.run.control.cancel) == (outcome, None)


@pytest.mark.requirement("cancel:cascades", "field:children-billed-on")
def test_a_cancel_reaches_the_children_that_are_still_active() -> None:
    life = Life.begin().start().child(1).child(2).child_ends(OK, "a", 1).cancel(reason="enough")

    assert life.of(CancelChildren, life.followups) == [CancelChildren(by="me", reason="enough")]
    assert [child.run_id for child in life.run.active_children] == ["r-c000000002"]


@pytest.mark.requirement("cancel:cascades")
def test_a_run_that_times_out_takes_its_children_along() -> None:
    life = Life.begin(resolved=a_resolved(timeout_ms=1000)).start().child().timer().exit(0)

    (cancel,) = life.of(CancelChildren, life.followups)
    assert cancel.reason == "parent run ended: timeout"
    assert life.phase is Phase.ENDING
    assert life.child_ends(CANCELLED, None).phase is Phase.ANNOUNCING


@pytest.mark.requirement("cancel:cascaded-is-quiet")
def test_a_child_that_ended_with_its_parent_is_recorded_and_pushed_to_nobody() -> None:
    life = Life.begin().start().cancel(cascaded=True).exit(0)

    assert life.run.outcome is not None
    assert life.run.outcome.reason is Reason.PARENT_ENDED
    assert [m.consumed for m in life.messages] == [True]


@pytest.mark.requirement("cancel:every-phase")
def test_a_cancel_while_a_follow_up_turn_starts_stops_that_turn() -> None:
    life = (
        Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES))
        .start()
        .child()
        .child_ends(OK, "a")
        .exit()
    )
    life.cancel(cascaded=True).start()

    assert life.run.attempt.evidence.stop is StopCause.PARENT
    assert life.of(StopAttempt) == [StopAttempt(attempt=1, grace_ms=5000)]


# -- children -----------------------------------------------------------------------------------


@pytest.mark.requirement("children:no-announce-while-active")
def test_a_run_with_live_children_does_not_announce() -> None:
    life = Life.begin().start().child(1).child(2).result("mine").exit()
    assert (life.phase, life.messages) == (Phase.ENDING, [])
    assert life.child_ends(OK, "a", 1).phase is Phase.ENDING
    assert life.child_ends(ERROR, None, 2).phase is Phase.ANNOUNCING
    assert life.run.result == (
        "mine\n\n[Sub-agent results]\n"
        '"child1" just completed successfully:\n```\na\n```\n\n'
        '"child2" failed: exit code 1:\n```\n(no output)\n```'
    )
    (consumed,) = life.of(ConsumeChildren, life.followups)
    assert consumed.children == ("r-c000000001", "r-c000000002")
    assert len(life.of(MoveInbox, life.followups)) == 1


@pytest.mark.requirement("children:follow-up-turn")
def test_a_session_that_can_be_resumed_gets_one_turn_with_all_results() -> None:
    life = Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES)).start().child().exit()

    life.child_ends(OK, "the answer is 42")
    (turn,) = life.of(ResumeAttempt)
    assert (turn.attempt, turn.turn) == (1, 2)
    assert "```\nthe answer is 42\n```" in turn.message
    assert (life.phase, life.messages) == (Phase.ENDING, [])
    life.start().result("put together").exit()

    assert (life.phase, life.run.result) == (Phase.ANNOUNCING, "put together")
    assert len(life.run.attempts) == 1
    assert len(life.of(ResumeAttempt)) == 1


@pytest.mark.requirement("children:follow-up-turn")
def test_when_the_turn_cannot_start_the_results_are_appended() -> None:
    life = Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES)).start().child().result("mine")
    life.exit().child_ends(OK, "a").fail_start("session is gone")

    assert life.phase is Phase.ANNOUNCING
    assert life.run.result is not None
    assert life.run.result.startswith("mine\n\n[Sub-agent results]\n")


@pytest.mark.requirement("results:cut-said")
def test_a_cut_result_behind_which_others_are_appended_is_still_cut() -> None:
    life = Life.begin(resolved=a_resolved()).start().child()
    life.signal(ResultSeen(key="result", text="the end", bytes_total=50_000))
    life.exit().child_ends(OK, "a")

    ended = life.run.conclusion
    assert ended is not None
    assert (ended.result or "").startswith("the end\n\n[Sub-agent results]\n")
    assert ended.bytes_total == 50_000 + ended.bytes_here - len("the end")
    assert ended.is_cut


@pytest.mark.requirement("children:follow-up-turn")
def test_no_turn_is_started_only_to_be_stopped_at_its_deadline() -> None:
    limits = a_resolved(abilities=Abilities(resume=True), timeout_ms=10_000)
    life = Life.begin(resolved=limits).start().child().result("mine").exit()

    life.pass_ms(10_000).child_ends(OK, "a")

    assert life.of(ResumeAttempt) == []
    assert life.run.outcome == OK
    assert "[Sub-agent results]" in (life.run.result or "")


@pytest.mark.requirement("children:told-once")
def test_children_the_agent_read_itself_are_not_told_again() -> None:
    life = Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES)).start().child()
    life.child_ends(OK, "a")
    life.apply(ChildTold(at_ms=life.at_ms, child=RunId("r-c000000001")))
    life.result("I used it").exit()

    assert (life.phase, life.run.result) == (Phase.ANNOUNCING, "I used it")
    assert life.of(ResumeAttempt) == []


def a_parent_that_was_handed_a_result() -> Life:
    life = Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES)).start().child()
    life.child_ends(OK, "a")
    handed = ChildReturned(at_ms=life.at_ms, child=RunId("r-c000000001"), attempt=1, turn=1)
    life.apply(handed)
    return life


@pytest.mark.requirement("children:told-once")
def test_what_a_call_returned_counts_as_told_when_the_turn_ends_well() -> None:
    life = a_parent_that_was_handed_a_result().result("the right answer").exit()

    assert (life.phase, life.run.result) == (Phase.ANNOUNCING, "the right answer")
    assert life.of(ResumeAttempt) == []
    children = (RunId("r-c000000001"),)
    assert life.of(ConsumeChildren, life.followups) == [ConsumeChildren(children=children)]


@pytest.mark.requirement("children:told-once")
def test_what_a_call_returned_counts_for_nothing_when_the_turn_breaks_down() -> None:
    life = a_parent_that_was_handed_a_result().exit(1)

    assert not life.run.children[0].told
    assert "[Sub-agent results]" in (life.run.result or "")


@pytest.mark.requirement("children:told-once")
def test_a_result_that_went_out_in_an_earlier_turn_does_not_count_in_a_later_one() -> None:
    life = Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES)).start().child()
    life.result("working").exit().child_ends(OK, "a")
    late = ChildReturned(at_ms=life.at_ms, child=RunId("r-c000000001"), attempt=1, turn=1)

    assert reduce(life.run, late).stale


@pytest.mark.requirement("children:follow-up-turn")
@pytest.mark.parametrize("text", ["", "NO_REPLY", " NO_REPLY\n"])
def test_a_turn_that_only_hears_of_the_children_and_adds_nothing_leaves_the_result(
    text: str,
) -> None:
    life = Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES)).start().child()
    life.result("the right answer").exit().child_ends(OK, "a").start()

    life.result(text).exit()

    assert (life.phase, life.run.result) == (Phase.ANNOUNCING, "the right answer")


@pytest.mark.requirement("children:follow-up-turn")
def test_a_turn_with_a_message_for_the_worker_gives_a_result_of_its_own() -> None:
    life = Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES)).start().child()
    life.result("first").exit().steer("say nothing").child_ends(OK, "a").start()

    life.result("NO_REPLY").exit()

    assert life.run.result == "NO_REPLY"


@pytest.mark.requirement("children:parent-told")
def test_a_nested_run_tells_its_parent_and_its_dependants_in_the_same_commit() -> None:
    life = Life.begin(requester_run=RunId("r-parent"), depth=2).start().result("r").exit()

    assert life.of(TellDependants, life.followups) == [TellDependants(outcome=OK, result="r")]
    assert life.of(TellParent, life.followups) == [TellParent(outcome=OK, result="r")]


# -- questions, messages, pausing ---------------------------------------------------------------


@pytest.mark.requirement("report-text:reconciled")
def test_the_report_in_the_text_of_the_last_turn_is_the_runs_report() -> None:
    block = "[COMPLETION REPORT]\nsummary: {}\n[/COMPLETION REPORT]"
    spec = RunSpec(task="t")
    limits = a_resolved(abilities=ALL_ABILITIES)
    life = Life.begin(spec, limits).start().child().result(block.format("first")).exit()
    assert life.run.attempt.reported.report is not None
    life.child_ends(OK, "c").start()

    life.result(block.format("second")).exit()

    assert life.run.report is not None
    assert (life.run.report.summary, life.run.attempt.reported.is_text) == ("second", True)


@pytest.mark.requirement("steer:live")
def test_a_message_goes_into_the_live_attempt_where_the_runtime_can() -> None:
    life = Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES)).start().steer("hurry")
    assert [effect.message for effect in life.of(SteerAttempt)] == ["hurry"]
    life.apply(SteerSettled(at_ms=life.at_ms, number=1, taken=True))

    assert life.run.control.steers == ()
    assert life.exit().phase is Phase.ANNOUNCING


@pytest.mark.requirement("steer:next-turn")
def test_a_message_that_was_not_taken_waits_for_the_next_turn() -> None:
    life = Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES)).start().steer("hurry")
    life.apply(SteerSettled(at_ms=life.at_ms, number=1, taken=False))

    life.exit()

    (turn,) = life.of(ResumeAttempt)
    assert turn.message == "[Message from me]:\nhurry"


@pytest.mark.requirement("steer:next-turn")
def test_a_message_sent_while_the_follow_up_turn_starts_reaches_that_turn() -> None:
    life = Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES)).start().child()
    life.child_ends(OK, "a").exit()
    life.pass_ms(10).steer("and be brief")

    life.start()

    assert [effect.message for effect in life.of(SteerAttempt)] == ["and be brief"]


@pytest.mark.requirement("steer:next-turn", "timers:clock-steps")
@pytest.mark.parametrize("by_ms", [-3_600_000, 0, 3_600_000])
def test_each_message_is_told_once_whatever_the_clock_is_set_to(by_ms: int) -> None:
    life = Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES)).steer("in English")
    life.pass_ms(by_ms).grant()
    prompt = compose(life.run)

    life.steer("be brief").apply(ClockStepped(at_ms=life.at_ms, by_ms=by_ms))
    life.start()

    assert prompt == "do it\n\n[Message from me]:\nin English"
    assert [effect.message for effect in life.of(SteerAttempt)] == ["be brief"]


@pytest.mark.requirement("steer:next-turn")
def test_an_attempt_in_a_new_session_begins_with_what_those_before_it_were_told() -> None:
    spec = RunSpec(task="do it", retry_count=2, retry_delay=0)
    life = Life.begin(spec, a_resolved(abilities=ALL_ABILITIES)).steer("in English").grant()
    life.start().steer("be brief")
    life.apply(SteerSettled(at_ms=life.at_ms, number=2, taken=True))

    life.exit(1).timer().grant()
    begun = compose(life.run)
    life.start().steer("hurry")
    life.apply(SteerSettled(at_ms=life.at_ms, number=3, taken=True))

    told = "[Message from me]:\nin English\n\n[Message from me]:\nbe brief"
    assert begun.endswith(f"Original task: do it\n\n{told}")
    assert compose(life.run) == begun
    life.exit(1).timer().grant()
    assert compose(life.run) == f"{begun}\n\n[Message from me]:\nhurry"
    assert life.start().exit().run.control.told == ()


@pytest.mark.requirement("pause:queued")
def test_a_paused_retry_is_held_until_it_is_resumed() -> None:
    life = in_phase(Phase.RETRY_WAIT).pause()

    assert next_due_ms(life.run) is None
    assert life.apply(TimerFired(at_ms=NOW_MS + 3_600_000)).stale
    assert life.resume().timer().phase is Phase.QUEUED


@pytest.mark.requirement("pause:turn-boundary")
def test_a_paused_live_run_is_held_at_its_next_turn_boundary() -> None:
    life = Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES)).start().child().pause()
    life.child_ends(OK, "a").exit()
    assert (life.phase, life.of(ResumeAttempt), next_due_ms(life.run)) == (Phase.ENDING, [], None)

    life.resume()

    assert len(life.of(ResumeAttempt)) == 1


@pytest.mark.requirement("pause:turn-boundary", "cancel:every-phase")
def test_a_run_held_at_its_turn_boundary_can_be_cancelled() -> None:
    life = Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES)).start().child().pause()
    life.child_ends(OK, "a").exit().cancel()

    assert (life.phase, life.run.outcome) == (Phase.ANNOUNCING, CANCELLED)


@pytest.mark.requirement("pause:turn-boundary")
@pytest.mark.parametrize("phase", [Phase.SPAWNING, Phase.RUNNING])
def test_a_run_paused_while_live_can_be_resumed_wherever_it_has_come_to(phase: Phase) -> None:
    life = in_phase(phase, timeout_ms=0).pause()
    if phase is Phase.SPAWNING:
        life.start()
    life.exit()
    assert life.phase is Phase.VERIFYING

    assert not life.resume().run.control.paused
    assert life.phase is Phase.VERIFYING


FREEZES = Abilities(freeze=True)


@pytest.mark.requirement("pause:freezes")
def test_a_paused_command_stands_still_and_has_the_time_that_was_left_when_it_goes_on() -> None:
    life = Life.begin(resolved=a_resolved(abilities=FREEZES, timeout_ms=10_000)).start()
    life.pass_ms(4_000).pause()
    assert (len(life.of(FreezeAttempt)), next_due_ms(life.run)) == (1, None)
    before = life.run.attempt.times.deadline_ms
    assert before is not None

    life.pass_ms(3_600_000).resume()

    assert len(life.of(ThawAttempt)) == 1
    assert life.run.attempt.times.deadline_ms == before + 3_600_000
    assert life.run.control.frozen_since_ms is None


@pytest.mark.requirement("pause:freezes")
def test_a_command_that_is_paused_before_its_start_stands_still_from_its_start_on() -> None:
    life = Life.begin(resolved=a_resolved(abilities=FREEZES)).grant().pause()
    assert life.of(FreezeAttempt) == []
    assert len(life.start().of(FreezeAttempt)) == 1


@pytest.mark.requirement("pause:freezes")
def test_a_command_killed_while_it_stands_still_leaves_nothing_to_its_retry() -> None:
    spec = RunSpec(task="x", retry_count=1)
    life = Life.begin(spec, a_resolved(abilities=FREEZES, timeout_ms=10_000)).start().pause()
    life.exit(1).resume().timer().pass_ms(60_000).start()
    assert life.run.control.frozen_since_ms is None
    assert life.of(ThawAttempt) == []
    assert life.run.attempt.times.deadline_ms == life.at_ms + 10_000


@pytest.mark.requirement("pause:freezes")
def test_who_is_being_stopped_is_not_made_to_stand_still() -> None:
    life = Life.begin(resolved=a_resolved(abilities=FREEZES)).start().cancel().pause()
    assert life.of(FreezeAttempt) == []


@pytest.mark.requirement("queue:prioritize")
def test_a_priority_given_later_counts_for_the_queue_and_the_spawn_stays_as_it_was() -> None:
    life = Life.begin()
    life.apply(Prioritized(at_ms=NOW_MS, by="me", priority=7))
    assert queue_order(life.run)[0] == -7
    assert life.run.spec.priority == 0


# -- announcing and after -----------------------------------------------------------------------


@pytest.mark.requirement(
    "lifecycle:origin-is-kept", "contract:stored-with-parameters", "retry:same-parameters"
)
def test_spawn_parameters_stay_word_for_word_through_retries() -> None:
    spec = RunSpec(
        task="do it",
        model="opus",
        thinking="high",
        run_timeout_seconds=60,
        retry_count=1,
        verification=a_contract(OnFailure.RETRY_ONCE),
    )
    resolved = a_resolved(model="opus", thinking="high", timeout_ms=60_000)
    life = Life.begin(spec, resolved).start().exit(1).timer().start().exit()
    life.verify(Verdict.FAILED).timer().start()

    assert len(life.run.attempts) == 3
    assert life.run.spec == spec
    assert life.run.resolved == resolved


# -- on_stuck ---------------------------------------------------------------------------------

SILENCE = Alert(kind=AlertKind.STUCK, text="⚠️ No progress for 5 minutes", key="stuck:1:0")


def silent(on_stuck: OnStuck, *, abilities: Abilities = ALL_ABILITIES) -> Life:
    """A worker at work whose silence was noticed."""
    rules = AlertRules(on_stuck=on_stuck, off=(AlertKind.STUCK,))
    life = Life.begin(resolved=a_resolved(abilities=abilities, alerts=rules)).start()
    life.apply(Alerted(at_ms=life.at_ms, alert=SILENCE))
    return life


# -- fallback ---------------------------------------------------------------------------------


def with_fallback() -> Life:
    """A run of ``a`` that ``b`` does when one of its two dependencies fails."""
    other = a_resolved(agent_id="b", runtime="other", lane="slow")
    names = ResolvedAgent.__struct_fields__
    fallback = ResolvedAgent(**{name: getattr(other, name) for name in names})
    spec = RunSpec(
        task="do it",
        on_dependency_failure=OnDependencyFailure.FALLBACK,
        fallback_agent_id="b",
    )
    resolved = a_resolved(agent_id="a", fallback=fallback)
    return Life.begin(spec, resolved, dependencies=(a_dependency(1), a_dependency(2)))


def settles(life: Life, number: int, outcome: Outcome) -> None:
    run_id = life.run.waiting.dependencies[number].run_id
    life.apply(DependencySettled(at_ms=life.at_ms, run_id=run_id, outcome=outcome, result=None))


@pytest.mark.requirement("dependencies:fallback")
def test_another_agent_does_the_work_when_a_dependency_fails() -> None:
    life = with_fallback()
    settles(life, 0, ERROR)
    assert (life.run.phase, life.run.resolved.agent_id) == (Phase.WAITING, "b")
    assert life.run.waiting.fell_back == life.run.waiting.dependencies[0].run_id
    settles(life, 1, ERROR)
    assert (life.run.phase, life.run.resolved.lane) == (Phase.QUEUED, "slow")
    assert life.run.waiting.fell_back == life.run.waiting.dependencies[0].run_id
    assert life.run.resolved.fallen_back is life.run.resolved


@pytest.mark.requirement("dependencies:fallback")
def test_the_first_agent_does_the_work_when_its_dependencies_end_well() -> None:
    life = with_fallback()
    for number in (0, 1):
        settles(life, number, OK)
    assert (life.run.phase, life.run.resolved.agent_id) == (Phase.QUEUED, "a")
    assert life.run.waiting.fell_back is None


@pytest.mark.requirement("alerts:on-stuck")
def test_a_silent_worker_is_left_alone_unless_its_agent_says_otherwise() -> None:
    life = silent(OnStuck.TELL)
    assert life.of(SteerAttempt) == []
    assert life.of(StopAttempt) == []
    assert life.run.pending_requests == ()


@pytest.mark.requirement("alerts:on-stuck:asks")
def test_nobody_is_told_of_the_silence_of_a_worker_that_waits_for_an_answer() -> None:
    life = Life.begin().start().ask()
    told = len(life.messages)
    life.apply(Alerted(at_ms=life.at_ms, alert=SILENCE))
    assert len(life.messages) == told


@pytest.mark.requirement("alerts:on-stuck")
def test_a_silent_worker_is_asked_where_it_stands() -> None:
    (message,) = [effect.message for effect in silent(OnStuck.STEER).of(SteerAttempt)]
    assert message.startswith("[System Message] No progress for 5 minutes: say in one line")


@pytest.mark.requirement("alerts:on-stuck")
def test_a_silent_worker_is_cancelled_for_the_reason_stuck_and_not_retried() -> None:
    life = silent(OnStuck.CANCEL)
    assert [effect.attempt for effect in life.of(StopAttempt)] == [1]
    life.exit(code=143)

    assert life.run.outcome is not None
    assert (life.run.outcome.status, life.run.outcome.reason) == (Status.CANCELLED, Reason.STUCK)
    assert life.run.control.cancel is not None
    assert life.run.control.cancel.reason == "No progress for 5 minutes"


@pytest.mark.requirement("alerts:on-stuck")
@pytest.mark.parametrize(
    ("on_stuck", "abilities"),
    [(OnStuck.ESCALATE, ALL_ABILITIES), (OnStuck.STEER, Abilities())],
    ids=["escalate", "steer, of a worker that takes no messages"],
)
def test_a_silence_that_is_escalated_is_a_blocker_whose_answer_reaches_the_worker(
    on_stuck: OnStuck, abilities: Abilities
) -> None:
    life = silent(on_stuck, abilities=abilities)
    (message,) = life.messages
    assert message.kind is MessageKind.BLOCKER
    assert "No progress for 5 minutes" in message.text
    (request,) = life.run.pending_requests
    assert request.priority is Priority.BLOCKER


@pytest.mark.requirement("alerts:on-stuck")
def test_nobody_acts_on_the_silence_of_a_worker_that_waits_for_an_answer() -> None:
    rules = AlertRules(on_stuck=OnStuck.CANCEL)
    life = Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES, alerts=rules)).start().ask()
    life.apply(Alerted(at_ms=life.at_ms, alert=SILENCE))
    assert life.of(StopAttempt) == []


@pytest.mark.requirement("alerts:on-stuck")
def test_nobody_acts_on_the_silence_of_a_worker_whose_sub_agents_are_at_work() -> None:
    rules = AlertRules(on_stuck=OnStuck.CANCEL)
    life = Life.begin(resolved=a_resolved(abilities=ALL_ABILITIES, alerts=rules)).start().child()
    life.apply(Alerted(at_ms=life.at_ms, alert=SILENCE))
    assert life.of(StopAttempt) == []


@pytest.mark.requirement("reducer:every-event")
def test_every_event_but_the_first_has_its_reaction() -> None:
    assert set(REACTIONS) == set(get_args(Event)) - {Spawned}
