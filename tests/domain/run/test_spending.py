"""What a run and everything below it used: sums in which the unknown stays unknown."""

import pytest
from tests.builders import NOW_MS
from tests.domain.budget_lives import a_life, child_spends, use

from subagents.domain.run import spending
from subagents.domain.run.events import ChildSpent
from subagents.domain.run.signals import UsageSeen
from subagents.domain.run.usage import Committed, Spent, Usage
from subagents.domain.run.values import RunId
from subagents.domain.text.announcement import stats_line


@pytest.mark.requirement("budget:usage-unknown")
def test_usage_that_nobody_reported_stays_unknown_in_every_sum() -> None:
    life = a_life(None).start().child()

    assert spending.spent(life.run) == Spent(runs=2)
    life.apply(
        ChildSpent(
            at_ms=NOW_MS,
            child=RunId("r-c000000001"),
            spent=Spent(tokens_in=5, cost_usd=0.5),
            committed=Committed(),
        )
    )
    assert spending.spent(life.run) == Spent(tokens_in=5, cost_usd=0.5, runs=2)


@pytest.mark.requirement("usage:cached-apart")
def test_tokens_are_what_was_read_afresh_and_written_with_what_a_cache_took() -> None:
    usage = Usage(tokens_in=1_000, tokens_out=50, tokens_cache_read=900, tokens_cache_write=60)

    assert (usage.tokens, usage.total_tokens) == (150, 1_050)
    assert (Usage(tokens_out=5).tokens, Usage(cost_usd=1).tokens) == (5, None)


@pytest.mark.requirement("usage:cached-apart", "budget:rolled-up")
def test_what_came_from_caches_is_summed_up_over_attempts_and_runs_below() -> None:
    life = use(a_life(None, retry_count=1).start(), 100).exit(1).timer().start().child().child(2)
    cached = Usage(tokens_in=500, tokens_cache_read=480, tokens_cache_write=10)
    life.signal(UsageSeen(key="u", usage=cached))
    below = Spent(tokens_in=1_000, tokens_cache_read=700)
    for number, spent in ((1, below), (2, Spent(tokens_in=7))):
        child = RunId(f"r-c{number:09}")
        life.apply(ChildSpent(at_ms=NOW_MS, child=child, spent=spent, committed=Committed()))

    found = spending.spent(life.run)

    assert (found.tokens, found.total_tokens) == (100 + 20 + 300 + 7, 1_607)
    assert (found.tokens_cache_read, found.tokens_cache_write) == (1_180, 10)


@pytest.mark.requirement("budget:rolled-up", "field:cost-blindness")
def test_a_subtree_is_all_attempts_of_the_run_and_all_that_its_children_told() -> None:
    life = use(a_life(None, retry_count=1).start(), 100, 0.25).exit(1).timer().start()
    use(life, 40, 0.25).child().child(2)
    child_spends(child_spends(life, 300), 60, 2)

    found = spending.spent(life.run)

    assert (found.tokens, found.cost_usd, found.runs) == (500, 0.5, 3)
    assert "tokens 140 (in 112 / out 28) - all 3 runs: tokens 500, $0.50" in stats_line(life.run)
