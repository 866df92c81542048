"""Further turns of one attempt: when they come, and that they come to an end."""

import pytest
from tests.domain.resumable_lives import able, interrupt

from subagents.domain.lifecycle import turns
from subagents.domain.lifecycle.reduce import FOLLOW_UPS_MAX
from subagents.domain.run.effects import ResumeAttempt
from subagents.domain.run.events import AttemptStarted, SteerRequested
from subagents.domain.run.outcome import OK
from subagents.domain.run.run import Phase, StopCause
from subagents.domain.run.signals import ToolSeen, Vanished
from subagents.domain.run.values import replace


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


@pytest.mark.requirement("interrupt:then-message")
def test_a_turn_that_follows_one_whose_worker_vanished_is_judged_by_its_own_end() -> None:
    life = interrupt(able())
    life.apply(SteerRequested(at_ms=life.at_ms, by="me", message="do this instead", next_turn=True))
    life.signal(Vanished(key="vanished", error="its files are gone"))
    vanished = life.run
    life.start()

    life.signal(ToolSeen(key="tool", name="shell"))

    assert (life.phase, life.run.outcome) == (Phase.RUNNING, None)
    life.result("this").exit()
    assert (life.run.outcome, life.run.result) == (OK, "this")
    # Runs that began under the rules of 0.1.0 end under them.
    begun = AttemptStarted(at_ms=life.at_ms, attempt=1, turn=2)
    assert turns.further(replace(vanished, rules=0), begun).evidence.lease_lost
