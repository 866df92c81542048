"""The small steps that every part of the reducer takes."""

import pytest
from tests.builders import NOW_MS, Life, an_attempt, in_phase

from subagents.domain.lifecycle import steps
from subagents.domain.run.effects import MarkTold, OutdateAlerts, Transition
from subagents.domain.run.run import Phase, Steer
from subagents.domain.run.values import replace


@pytest.mark.requirement("lifecycle:transitions-are-data")
def test_a_phase_is_entered_with_its_time_and_nothing_else_changes() -> None:
    run = in_phase(Phase.RUNNING).run

    entered = steps.enter(run, Phase.ENDING, NOW_MS + 7)

    assert (entered.phase, entered.times.phase_since_ms) == (Phase.ENDING, NOW_MS + 7)
    assert entered.times.started_at_ms == run.times.started_at_ms
    assert steps.enter(entered, run.phase, run.times.phase_since_ms) == run


@pytest.mark.requirement("attempts:numbered")
def test_only_the_newest_attempt_is_replaced() -> None:
    first, second = an_attempt(1, "a"), an_attempt(2, "b")
    run = replace(Life.begin().run, attempts=(first, second))

    assert steps.with_attempt(run, an_attempt(2, "c")).attempts == (first, an_attempt(2, "c"))


@pytest.mark.requirement("steer:next-turn")
def test_messages_that_are_left_replace_those_before_and_keep_their_count() -> None:
    run = Life.begin().start().steer("one").steer("two").run
    left = Steer(number=2, message="two", by="me", at_ms=NOW_MS)

    found = steps.steered(run, (left,))

    assert found.control.steers == (left,)
    assert found.control.steers_total == run.control.steers_total


@pytest.mark.requirement("lifecycle:one-commit")
def test_what_is_joined_to_a_step_comes_before_what_it_asked_for_itself() -> None:
    step = Transition(Life.begin().run, followups=(MarkTold(),))

    joined = steps.join(step, (OutdateAlerts(reader="me"),))

    assert joined.followups == (OutdateAlerts(reader="me"), MarkTold())
