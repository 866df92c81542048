"""Follow-up turns, interruption and continuation, by the reducer alone."""

import pytest
from tests.builders import NOW_MS, RUN, Life, a_contract, a_resolved, in_phase

from subagents.domain.lifecycle.reduce import FOLLOW_UPS_MAX
from subagents.domain.rules.continuation import check_resumable, inherited, narrowest
from subagents.domain.run.effects import (
    CancelChildren,
    InterruptAttempt,
    ResumeAttempt,
    StopAttempt,
    Verify,
)
from subagents.domain.run.events import (
    AttemptStarted,
    Continued,
    InterruptRequested,
    SteerRequested,
)
from subagents.domain.run.outcome import (
    OK,
    Outcome,
    Reason,
    Status,
    VerificationState,
)
from subagents.domain.run.run import Continues, Phase, StopCause, VerificationRecord
from subagents.domain.run.signals import SessionSeen
from subagents.domain.run.spec import (
    Abilities,
    Budget,
    Cleanup,
    Mode,
    RunSpec,
)
from subagents.domain.run.values import RunId, replace
from subagents.errors import Conflict

ABLE = Abilities(steer=True, resume=True, interrupt=True)


def able(spec: RunSpec | None = None) -> Life:
    return Life.begin(spec, a_resolved(abilities=ABLE)).start()


def interrupt(life: Life) -> Life:
    life.apply(InterruptRequested(at_ms=life.at_ms, by="me", reason="wrong branch"))
    return life


@pytest.mark.requirement("followups:each-has-news")
def test_each_turn_that_spawns_gets_one_more_and_none_comes_without_news() -> None:
    life = able()
    for number in (1, 2, 3):
        life.child(number).result(f"turn {number}").exit()
        assert life.phase is Phase.ENDING
        life.child_ends(OK, f"child {number}", number)
        resumes = life.of(ResumeAttempt)
        assert [each.turn for each in resumes] == list(range(2, number + 2))
        assert f"child {number}" in resumes[-1].message
        assert f"child {number - 1}" not in resumes[-1].message
        life.start()
    life.result("all").exit()

    assert len(life.of(ResumeAttempt)) == 3
    assert (life.run.outcome, life.run.result) == (OK, "all")


@pytest.mark.requirement("followups:bounded")
def test_an_agent_that_spawns_in_every_turn_comes_to_an_end_with_what_there_is() -> None:
    life = able()
    for number in range(1, FOLLOW_UPS_MAX + 2):
        life.child(number).result(f"turn {number}").exit()
        life.child_ends(OK, f"child {number}", number)
        if life.phase is Phase.ENDING:
            life.start()

    assert len(life.of(ResumeAttempt)) == FOLLOW_UPS_MAX
    assert life.run.outcome == OK
    assert life.run.result is not None
    assert life.run.result.startswith(f"turn {FOLLOW_UPS_MAX + 1}")
    # What it can be told no more becomes part of its result.
    assert f"child {FOLLOW_UPS_MAX + 1}" in life.run.result


@pytest.mark.requirement("followups:each-has-news")
def test_a_second_follow_up_turn_that_cannot_start_ends_the_run_with_the_children() -> None:
    life = able().child(1).result("one").exit().child_ends(OK, "first", 1).start()
    life.child(2).result("two").exit().child_ends(OK, "second", 2)
    life.fail_start()

    assert life.run.outcome == OK
    assert life.run.result is not None
    assert "second" in life.run.result


@pytest.mark.requirement("followups:paused")
def test_a_pause_holds_the_second_follow_up_turn_too() -> None:
    life = able().child(1).exit().child_ends(OK, "first", 1).start()
    life.pause().child(2).exit().child_ends(OK, "second", 2)
    stale = AttemptStarted(at_ms=life.at_ms, attempt=1, turn=3)
    life.apply(stale)
    assert (life.phase, len(life.of(ResumeAttempt))) == (Phase.ENDING, 1)

    life.resume()

    assert len(life.of(ResumeAttempt)) == 2


@pytest.mark.requirement("interrupt:politely-then-stop")
def test_an_interruption_asks_politely_and_then_stops() -> None:
    life = interrupt(able())

    assert life.last is not None
    assert life.last.effects == (
        InterruptAttempt(attempt=1),
        StopAttempt(attempt=1, grace_ms=life.run.resolved.grace_ms),
    )
    assert interrupt(life).last is not None
    assert life.last.stale


@pytest.mark.requirement("interrupt:politely-then-stop")
@pytest.mark.parametrize(("code", "signal"), [(0, None), (1, None), (None, 15)])
def test_however_it_then_ends_it_is_partial_with_its_last_words(
    code: int | None, signal: int | None
) -> None:
    life = interrupt(able(RunSpec(task="x", retry_count=3, verification=a_contract())))
    life.result("as far as I came").exit(code, signal=signal)

    assert life.run.outcome == Outcome(
        status=Status.PARTIAL, reason=Reason.INTERRUPTED, error="interrupted at work"
    )
    assert life.run.result == "as far as I came"
    assert (life.of(Verify), life.run.retry.used) == ([], 0)


@pytest.mark.requirement("interrupt:beaten-by-cancel")
def test_a_cancel_behind_an_interruption_makes_it_cancelled() -> None:
    life = interrupt(able()).cancel().exit()

    assert life.run.outcome is not None
    assert life.run.outcome.status is Status.CANCELLED


@pytest.mark.requirement("interrupt:before-start")
def test_an_interruption_before_the_start_is_kept_when_nothing_starts() -> None:
    life = Life.begin(RunSpec(task="x", retry_count=2), a_resolved(abilities=ABLE)).grant()
    interrupt(life).fail_start()

    assert life.run.outcome is not None
    assert (life.run.outcome.status, life.run.outcome.reason) == (
        Status.PARTIAL,
        Reason.INTERRUPTED,
    )


@pytest.mark.requirement("interrupt:children")
def test_what_an_interrupted_run_spawned_is_cancelled_and_brings_it_no_turn() -> None:
    life = interrupt(able().child(1).child(2).child_ends(OK, "done", 1)).exit(None, signal=15)
    (cancelled,) = life.of(CancelChildren, life.followups)
    assert cancelled.reason == "parent run ended: interrupted"
    life.child_ends(Outcome(status=Status.CANCELLED), None, 2)

    assert life.of(ResumeAttempt) == []
    assert life.run.outcome is not None
    assert life.run.outcome.reason is Reason.INTERRUPTED
    assert life.run.result is not None
    assert "done" in life.run.result


@pytest.mark.requirement("interrupt:then-message")
def test_what_was_said_to_it_meanwhile_is_taken_up_in_a_further_turn() -> None:
    life = interrupt(able())
    life.apply(SteerRequested(at_ms=life.at_ms, by="me", message="do this instead", next_turn=True))
    life.result("half").exit(None, signal=15)
    (resume,) = life.of(ResumeAttempt)
    life.start()

    assert "do this instead" in resume.message
    assert life.run.attempt.evidence.stop is None
    life.result("this").exit()
    assert (life.run.outcome, life.run.result) == (OK, "this")
    assert interrupt(able()).run.attempt.evidence.stop is StopCause.INTERRUPT


@pytest.mark.requirement("sessions:native")
def test_the_session_is_what_the_program_called_it_last() -> None:
    link = Continues(run_id=RunId("r-2"), root=RunId("r-1"), native_session="before")
    fresh = Life.begin(None, a_resolved(abilities=ABLE), continues=link)
    assert (fresh.run.native_session, fresh.run.root) == ("before", RunId("r-1"))
    fresh.grant()
    fresh.apply(AttemptStarted(at_ms=NOW_MS, attempt=1, native_session="named at the start"))
    assert fresh.run.native_session == "named at the start"
    fresh.signal(SessionSeen(key="s", session_id="named later"))

    assert fresh.run.native_session == "named later"
    assert able().run.root == RUN


@pytest.mark.requirement("sessions:continued-by")
@pytest.mark.parametrize(
    "phase",
    [
        *(Phase.ANNOUNCING, Phase.ANNOUNCE_DEFERRED, Phase.CLEANUP_PENDING),
        *(Phase.COMPLETED, Phase.COMPLETED_GIVEUP),
    ],
)
def test_every_ended_run_can_learn_who_goes_on_with_it(phase: Phase) -> None:
    life = in_phase(phase)
    life.apply(Continued(at_ms=life.at_ms, run_id=RunId("r-2")))
    assert (life.phase, life.run.session.continued_by) == (phase, RunId("r-2"))

    life.apply(Continued(at_ms=life.at_ms, run_id=RunId("r-3")))

    assert life.run.session.continued_by == RunId("r-3")


@pytest.mark.requirement("sessions:inherited")
def test_what_a_continuation_does_not_say_is_as_before() -> None:
    spec = RunSpec(
        task="first",
        thread=True,
        tags=("t",),
        run_timeout_seconds=9,
        budget=Budget(max_runs=2),
        completion_report=True,
        priority=5,
        depends_on=("r-9",),
    )
    resolved = a_resolved(abilities=ABLE, label="job", lane="narrow", mode=Mode.SESSION, model="m")
    run = Life.begin(spec, resolved).run

    found = inherited(RunSpec(task="next", tags=("u",), run_timeout_seconds=0), run)

    assert found == RunSpec(
        task="next",
        continues=RUN,
        label="job",
        agent_id="worker",
        cwd="/tmp",
        run_timeout_seconds=0,
        mode=Mode.SESSION,
        thread=True,
        lane=None,
        tags=("u",),
        budget=Budget(max_runs=2),
        completion_report=True,
    )
    knows_models = replace(resolved, abilities=replace(ABLE, model=True))
    with_model = inherited(RunSpec(task="next"), Life.begin(spec, knows_models).run)
    assert (with_model.model, with_model.run_timeout_seconds) == ("m", 9)


@pytest.mark.requirement("sessions:inherited")
@pytest.mark.parametrize(
    ("state", "holds"),
    [
        (VerificationState.PASSED, False),
        (VerificationState.FAILED, True),
        (VerificationState.PENDING, True),
    ],
)
def test_a_contract_holds_until_it_was_met(state: VerificationState, *, holds: bool) -> None:
    contract = a_contract()
    life = Life.begin(RunSpec(task="x", verification=contract), a_resolved(abilities=ABLE))
    run = replace(life.run, verification=VerificationRecord(state=state))

    assert inherited(RunSpec(task="y"), run).verification == (contract if holds else None)


@pytest.mark.requirement("sessions:continue:refused")
def test_a_session_that_is_not_there_is_not_gone_on_with() -> None:
    named = able().run
    cases = (
        (Life.begin().run, 'runtime "scripted" cannot go on with a session'),
        (named, "its worker's program never named one"),
        (replace(named, spec=RunSpec(task="x", cleanup=Cleanup.DELETE)), "cleanup: delete"),
    )
    for run, text in cases:
        with pytest.raises(Conflict, match=text):
            check_resumable(run)
    session = replace(named.attempt.session, native="s")
    known = replace(named.attempt, session=session)
    assert check_resumable(replace(named, attempts=(known,))) == "s"


@pytest.mark.requirement("sessions:continue:never-wider")
def test_scopes_meet_in_what_both_have() -> None:
    assert narrowest(None, None) is None
    assert narrowest(("a",), None) == ("a",)
    assert narrowest(None, ("a",)) == ("a",)
    assert narrowest(("a", "b", "c"), ("c", "a")) == ("a", "c")
