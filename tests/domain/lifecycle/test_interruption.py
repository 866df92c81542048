"""A turn that is interrupted: what ends with it, and what becomes of the run."""

import pytest
from tests.builders import Life, a_contract, a_resolved
from tests.domain.resumable_lives import ABLE, able, interrupt

from subagents.domain.run.effects import (
    CancelChildren,
    InterruptAttempt,
    ResumeAttempt,
    StopAttempt,
    Verify,
)
from subagents.domain.run.outcome import OK, Outcome, Reason, Status
from subagents.domain.run.spec import RunSpec


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
