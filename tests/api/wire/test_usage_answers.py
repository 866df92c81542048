"""What runs used and what is left of their budgets, as callers and people are shown it."""

import pytest
from tests.api import run_journals as runs
from tests.api.run_journals import journal, run_after, slot, spawned, started, steps

from subagents.api.answers import run_building
from subagents.api.answers.explain import why_now
from subagents.api.wire.run_answers import RunRow
from subagents.api.wire.wire_struct import document_of
from subagents.cli.show import render
from subagents.domain.run import events as e
from subagents.domain.run.linked_runs import Child
from subagents.domain.run.run import BudgetStop, Run
from subagents.domain.run.signals import UsageSeen
from subagents.domain.run.spec import Budget, RunSpec
from subagents.domain.run.usage import Committed, Spent, Usage
from subagents.domain.run.values import RunId

CHILD = RunId("r-child")
BUDGET = Budget(max_tokens=1_000, max_runs=4)
UNKNOWN = {"tokensOut": None, "tokensCacheRead": None, "tokensCacheWrite": None}
STOP = BudgetStop(by=RunId("r-lead"), label="lead", used="900 of 1k tokens", at_ms=2)


def family(budget: Budget | None = BUDGET, tokens: int = 700) -> list[e.Event]:
    """A run that used 100 tokens itself, and a child that used more with one below it."""
    return [
        spawned(RunSpec(task="x", budget=budget)),
        slot(),
        started(),
        runs.signal(UsageSeen(key="u", usage=Usage(tokens_in=100))),
        e.ChildSpawned(at_ms=2, child=Child(run_id=CHILD, label="c")),
        e.ChildSpent(
            at_ms=3,
            child=CHILD,
            spent=Spent(tokens_in=tokens, cost_usd=0.25, runs=2),
            committed=Committed(tokens=tokens, runs=2),
        ),
    ]


def node_of(run: Run) -> str:
    return render.node_text(run_building.node(run, [], 1000))


@pytest.mark.requirement("budget:shown", "budget:rolled-up")
def test_a_row_has_the_runs_own_usage_and_that_of_its_subtree() -> None:
    row = document_of(run_building.shown(RunRow, run_after(*family()), 1000))

    usage = {"tokens": 100, "tokensIn": 100, "costUsd": None, "costUnknownRuns": 0}
    assert row["usage"] == usage | UNKNOWN
    assert row["subtreeUsage"] == UNKNOWN | {
        "tokens": 800,
        "tokensIn": 800,
        "costUsd": 0.25,
        "costUnknownRuns": 0,
        "runs": 3,
    }
    assert (
        document_of(run_building.shown(RunRow, run_after(*family()[:4]), 1000))["subtreeUsage"]
        is None
    )


@pytest.mark.requirement("budget:shown")
def test_details_show_every_limit_what_is_spent_and_what_is_left() -> None:
    run = run_after(*family())

    assert document_of(run_building.detail(run, 1000))["budget"] == {
        "maxTokens": 1_000,
        "maxTotalTokens": None,
        "maxCostUsd": None,
        "maxRuns": 4,
        "maxSeconds": None,
        "spent": {
            **UNKNOWN,
            "tokens": 800,
            "tokensIn": 800,
            "costUsd": 0.25,
            "costUnknownRuns": 0,
            "runs": 3,
        },
        "overshoot": "unbounded",
        "left": {"tokens": 200, "totalTokens": None, "costUsd": None, "runs": 1, "seconds": None},
        "percent": 80,
        "text": "800 of 1k tokens, 3 of 4 runs",
        "exhausted": False,
    }
    assert document_of(run_building.detail(run_after(*family(None)), 1000))["budget"] is None
    assert document_of(run_building.shown(RunRow, run, 1000))["budget"] == {
        "percent": 80,
        "text": "800 of 1k tokens, 3 of 4 runs",
        "exhausted": False,
    }


@pytest.mark.requirement("budget:shown", "usage:cached-apart")
def test_a_line_of_the_tree_says_apart_what_came_from_a_cache() -> None:
    cached = Usage(tokens_in=98_100, tokens_out=20, tokens_cache_read=98_000)
    read = runs.signal(UsageSeen(key="v", usage=cached))

    assert "  820 tokens, 98k cached, $0.25 in 3 runs" in node_of(run_after(*family(None), read))


@pytest.mark.requirement("budget:shown")
def test_a_line_of_the_tree_has_what_all_of_it_used_and_how_much_of_its_budget() -> None:
    whole = "working  quick  0ms  800 tokens, $0.25 in 3 runs  budget 80%"

    assert node_of(run_after(*family())).startswith(whole)
    assert node_of(run_after(*family(None)[:4])).startswith("working  quick  0ms  100 tokens")
    assert "tokens" not in node_of(run_after(*family(None)[:3]))


@pytest.mark.requirement("budget:shown")
def test_the_history_tells_what_was_used_below_and_whose_budget_ended() -> None:
    events = [*family(), e.BudgetExhausted(at_ms=9, stop=STOP)]
    texts = [step.text for step in steps(journal(*events))]

    assert "sub-agent r-child and all below it: 2 runs, 700 tokens, $0.25" in texts
    assert 'the budget of run "lead" (r-lead) is used up: 900 of 1k tokens' in texts
    assert why_now(run_after(*events), 10) == (
        'the budget of run "lead" (r-lead) is used up: 900 of 1k tokens; attempt 1 is being stopped'
    )
    assert why_now(run_after(*family(tokens=700), *used_up()), 10).startswith(
        "its budget is used up: 1k of 1k tokens"
    )


def used_up() -> list[e.Event]:
    return [runs.signal(UsageSeen(key="v", usage=Usage(tokens_in=300)))]


@pytest.mark.requirement("budget:cost-bound")
def test_cost_of_which_a_part_is_unknown_is_a_bound_and_says_of_how_many_runs() -> None:
    told = e.ChildSpent(
        at_ms=4,
        child=CHILD,
        spent=Spent(tokens_in=700, cost_usd=0.25, runs=3, cost_unknown_runs=2),
        committed=Committed(tokens=700, runs=3),
    )
    run = run_after(*family(None), told)

    assert "≥ $0.25 in 4 runs, 2 runs not reported" in node_of(run)
    usage = run_building.shown(RunRow, run, 1000).subtree_usage
    assert usage is not None
    assert usage.cost_unknown_runs == 2


@pytest.mark.requirement("budget:cost-bound")
def test_an_attempt_that_ends_without_saying_what_it_cost_makes_the_cost_of_its_run_a_bound() -> (
    None
):
    events: list[e.Event] = [
        spawned(RunSpec(task="x", retry_count=1)),
        slot(),
        started(),
        runs.exited(1),
        e.TimerFired(at_ms=10**6),
        slot(),
        started(attempt=2),
        runs.signal(UsageSeen(key="u", usage=Usage(tokens_in=5, cost_usd=0.03)), attempt=2),
    ]
    usage = run_building.shown(RunRow, run_after(*events), 10**6).usage

    assert usage is not None
    assert (usage.cost_usd, usage.cost_unknown_runs) == (0.03, 1)
