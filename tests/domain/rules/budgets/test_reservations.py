"""Whether children fit into what is left of the budgets above them."""

from typing import Any

import pytest
from tests.builders import NOW_MS, RUN, Life, a_resolved
from tests.domain.budget_lives import ABOVE, TOKENS, a_life, use

from subagents.domain.rules.budgets import reservations
from subagents.domain.run.linked_runs import Child, Children
from subagents.domain.run.run import BudgetState, Run
from subagents.domain.run.spec import Abilities, Budget, RunSpec
from subagents.domain.run.usage import Amounts, Committed
from subagents.domain.run.values import RunId, replace
from subagents.domain.text.prompt import system_prompt
from subagents.errors import Conflict, Forbidden, UsageError


def holder(budget: Budget | None, *children: Committed) -> Run:
    """A running run with such a budget and so much promised below it."""
    run = a_life(budget).start().run
    below = Children(
        Child(run_id=RunId(f"r-c{n}"), label=f"c{n}", committed=each)
        for n, each in enumerate(children)
    )
    return replace(run, children=below)


def refusal(above: list[Run], *wanted: Budget | None, after_ms: int = 0) -> Forbidden | None:
    try:
        reservations.check(above, wanted, now_ms=NOW_MS + after_ms)
    except Forbidden as error:
        return error
    return None


HALF = Committed(tokens=500, total_tokens=4_000, cost_usd=0.5, runs=2)


@pytest.mark.requirement("spawn:guardrail-budget", "budget:reserved-at-spawn")
@pytest.mark.parametrize(
    ("budget", "wanted", "says"),
    [
        (None, (None,), None),
        (TOKENS, (None,), None),
        (TOKENS, (Budget(max_tokens=400),), None),
        (TOKENS, (Budget(max_tokens=401),), "has 400 of 1k tokens left for sub-agents (100 more"),
        (TOKENS, (Budget(max_tokens=200), Budget(max_tokens=200)), None),
        (TOKENS, (Budget(max_tokens=200), Budget(max_tokens=201)), "and 401 tokens are asked for"),
        (TOKENS, (Budget(max_tokens=400), None), "and 400 tokens are asked for"),
        (TOKENS, (Budget(max_cost_usd=1000),), None),
        (Budget(max_cost_usd=1), (Budget(max_cost_usd=0.4),), None),
        (Budget(max_cost_usd=1), (Budget(max_cost_usd=0.5),), "has $0.40 of $1.00 left"),
        (Budget(max_tokens=555), (None,), "0 of 555 tokens left for sub-agents (55 more are kept"),
        (Budget(max_tokens=400), (None,), "and nothing is left for this one"),
        (Budget(max_total_tokens=5_000), (Budget(max_tokens=9_000, max_total_tokens=500),), None),
        (
            Budget(max_total_tokens=5_000),
            (Budget(max_total_tokens=501),),
            "has 500 of 5k total tokens left",
        ),
        (Budget(max_runs=4), (None,), None),
        (Budget(max_runs=4), (None, None), "has 1 of 4 runs left for sub-agents, and 2 runs"),
        (Budget(max_runs=4), (Budget(max_runs=2),), "has 1 of 4 runs left"),
        (Budget(max_seconds=100), (Budget(max_seconds=90),), None),
        (Budget(max_seconds=100), (Budget(max_seconds=91),), "has 1m 30s left for sub-agents"),
    ],
)
def test_a_spawn_must_fit_into_what_is_left(
    budget: Budget | None, wanted: tuple[Budget | None, ...], says: str | None
) -> None:
    error = refusal([holder(budget, HALF)], *wanted)

    assert (error is None) == (says is None)
    if error is not None:
        assert error.guardrail == "budget"
        assert (says or "") in error.message
        assert error.message.startswith(f'the budget of run "job" ({RUN}) ')
        assert error.hint is not None
        assert error.details["runId"] == RUN


@pytest.mark.requirement("budget:reserved-at-spawn")
def test_the_nearest_budget_decides_because_it_was_reserved_above() -> None:
    grandparent = holder(TOKENS, Committed(tokens=900, runs=2))
    parent = holder(Budget(max_tokens=900))

    assert refusal([parent, grandparent], Budget(max_tokens=810)) is None
    assert refusal([holder(None), grandparent], None) is not None
    assert refusal([holder(Budget(max_cost_usd=5)), grandparent], None) is not None


@pytest.mark.requirement("budget:reserved-at-spawn")
def test_what_the_run_above_used_itself_is_gone_too() -> None:
    run = use(a_life().start(), 700).run

    assert refusal([run], Budget(max_tokens=200)) is None
    assert refusal([run], Budget(max_tokens=201)) is not None


@pytest.mark.requirement("budget:raised")
def test_a_budget_is_raised_only_by_what_those_above_it_have_left() -> None:
    run, lead = holder(Budget(max_tokens=500)), holder(TOKENS, HALF)
    stopped = replace(run, budget=BudgetState(stop=ABOVE))

    def check(run: Run, *above: Run, **added: Any) -> None:
        reservations.check_raise(run, above, Amounts(**added), now_ms=NOW_MS)

    check(run, tokens=10**9)
    check(run, lead, tokens=400)
    with pytest.raises(Forbidden, match="has 400 of 1k tokens left") as refused:
        check(run, lead, tokens=401)
    assert refused.value.guardrail == "budget"
    with pytest.raises(UsageError, match="no such limit of its own"):
        check(run, cost_usd=1)
    with pytest.raises(UsageError, match="no such limit of its own"):
        check(holder(None), tokens=1)
    with pytest.raises(Conflict, match="it is being stopped") as late:
        check(stopped, tokens=1)
    assert "subagents continue" in (late.value.hint or "")


@pytest.mark.requirement("spawn:guardrail-budget")
def test_nothing_is_spawned_where_a_budget_is_used_up() -> None:
    low = use(a_life().start(), 900).run
    stopped = replace(holder(None), budget=BudgetState(stop=ABOVE))
    late = holder(Budget(max_seconds=100))

    assert "used up but for its own report (900 of 1k tokens)" in str(refusal([low], None))
    assert "used up but for its own report" in str(refusal([holder(None), low], None))
    assert 'the budget of run "root" (r-root) is used up' in str(refusal([stopped], None))
    assert refusal([late], None, after_ms=89_999) is None
    assert "no sub-agent is started in it" in str(refusal([late], None, after_ms=90_000))


@pytest.mark.requirement("budget:told-to-worker")
def test_a_worker_is_told_what_was_left_where_it_has_no_budget_of_its_own() -> None:
    limits = Budget(
        max_tokens=1_000, max_total_tokens=5_000, max_cost_usd=1, max_runs=4, max_seconds=100
    )
    above = [holder(limits, HALF)]
    shared = reservations.left_for(above, RunSpec(task="x"), now_ms=NOW_MS + 30_000)
    own = reservations.left_for(
        above, RunSpec(task="x", budget=Budget(max_tokens=5, max_runs=1)), now_ms=NOW_MS
    )

    assert shared == Budget(
        max_tokens=400, max_total_tokens=500, max_cost_usd=0.4, max_runs=1, max_seconds=60
    )
    assert own == Budget(max_total_tokens=500, max_cost_usd=0.4, max_seconds=90)
    assert reservations.left_for([holder(None)], RunSpec(task="x"), now_ms=NOW_MS) is None
    run = Life.begin(None, a_resolved(shared_budget=shared)).start().run
    assert (
        "- Left for you and all others below your requester at your spawn: 400 tokens, "
        "500 total tokens, $0.4, 1 runs, 1m." in system_prompt(run)
    )


@pytest.mark.requirement("budget:honest-receipt")
def test_a_receipt_says_which_limit_cannot_hold_on_a_runtime() -> None:
    both = Budget(max_tokens=1, max_cost_usd=1)
    silent = reservations.warning(both, "acp", Abilities())
    command = reservations.warning(both, "command", Abilities(usage=True))

    assert silent is not None
    assert silent.startswith('runtime "acp" reports no usage: maxTokens and maxCostUsd cannot')
    assert command is not None
    assert command.startswith("against maxTokens and maxCostUsd counts only what the command")
    after = reservations.warning(both, "claude", Abilities(usage=True))
    assert after is not None
    assert "answer that reaches it" in after
    late = reservations.warning(both, "acp", Abilities(usage=True, usage_by_turn=True))
    assert late is not None
    assert "overspent by a whole turn" in late
    exact = Abilities(usage=True, holds=True)
    assert reservations.warning(Budget(max_tokens=10), "llm", exact) is None
    timed = Budget(max_seconds=1, max_runs=2)
    assert reservations.warning(timed, "acp", Abilities()) is None
