"""Follow-up turns, interruption and continuation, by the reducer alone."""

import pytest
from tests.builders import NOW_MS, RUN, Life, a_contract, a_resolved, in_phase

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
)
from subagents.domain.run.outcome import (
    OK,
    Outcome,
    Reason,
    Status,
)
from subagents.domain.run.run import Continues, Phase
from subagents.domain.run.signals import SessionSeen
from subagents.domain.run.spec import (
    Abilities,
    RunSpec,
)
from subagents.domain.run.values import RunId

ABLE = Abilities(steer=True, resume=True, interrupt=True)


def able(spec: RunSpec | None = None) -> Life:
    return Life.begin(spec, a_resolved(abilities=ABLE)).start()


def interrupt(life: Life) -> Life:
    life.apply(InterruptRequested(at_ms=life.at_ms, by="me", reason="wrong branch"))
    return life


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
