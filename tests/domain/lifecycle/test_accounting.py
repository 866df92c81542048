"""What a subtree used goes up in the commit that changed it."""

import pytest
from tests.builders import Life, a_dependency
from tests.domain.budget_lives import TOKENS, a_life, child_spends, use

from subagents.domain.run.effects import TellSpent
from subagents.domain.run.events import RequestHeld
from subagents.domain.run.outcome import OK, Outcome, Status
from subagents.domain.run.spec import Budget, RunSpec
from subagents.domain.run.spending import held
from subagents.domain.run.usage import Amounts, Committed, Spent, Usage
from subagents.domain.run.values import RunId, replace


@pytest.mark.requirement("budget:told-in-totals")
def test_what_a_child_told_twice_changes_nothing() -> None:
    life = child_spends(a_life(parent=True).start().child(), 300)
    before, told = replace(life.run, seq=0), len(life.followups)

    step = child_spends(life, 300).last

    assert step is not None
    assert step.stale
    assert replace(life.run, seq=0) == before
    assert len(life.followups) == told


@pytest.mark.requirement("budget:told-in-totals")
def test_a_change_goes_up_before_the_end_that_comes_with_it() -> None:
    life = use(a_life(Budget(max_tokens=5_000, max_runs=4), parent=True).start(), 100)
    told = life.of(TellSpent, life.followups)
    assert told == [
        TellSpent(
            spent=Spent(tokens_in=80, tokens_out=20),
            committed=Committed(tokens=5_000, total_tokens=100, runs=4),
        )
    ]
    step = life.result("x").exit().last

    assert step is not None
    assert isinstance(step.followups[0], TellSpent)
    assert step.followups[0].committed == Committed(tokens=100, total_tokens=100)


@pytest.mark.requirement("budget:told-in-totals")
def test_a_top_level_run_tells_nobody_and_a_run_that_ends_at_once_gives_all_back() -> None:
    assert use(a_life().start(), 100).of(TellSpent) == []
    failed = Outcome(status=Status.ERROR, error="boom")
    unstarted = Life.begin(
        RunSpec(task="x", budget=TOKENS),
        requester_run=RunId("r-parent"),
        dependencies=(a_dependency(outcome=failed),),
    )

    assert unstarted.run.is_settled
    assert unstarted.of(TellSpent, unstarted.followups)[0].committed == Committed()


@pytest.mark.requirement("budget:totals-only-grow")
def test_an_older_total_that_comes_late_takes_nothing_back() -> None:
    life = use(use(a_life().start(), 500, 0.5), 200)

    assert life.run.attempt.usage == Usage(tokens_in=400, tokens_out=100, cost_usd=0.5)


@pytest.mark.requirement("budget:hold")
def test_a_further_turn_begins_without_what_the_one_before_held_for_a_request() -> None:
    life = a_life(Budget(max_tokens=5_000), parent=True).start().child()
    life.apply(RequestHeld(at_ms=life.at_ms, attempt=1, usage=Usage(), tokens=500))

    life.result("x").exit().child_ends(OK, "a").start()

    assert life.run.attempt.turn.number == 2
    assert held(life.run) == Amounts()
