"""Runs with budgets, and what they and their children use, for tests by the reducer alone."""

from typing import Any

from tests.builders import ALL_ABILITIES, NOW_MS, Life, a_resolved

from subagents.domain.run.events import ChildSpent
from subagents.domain.run.run import BudgetStop
from subagents.domain.run.signals import UsageSeen
from subagents.domain.run.spec import Budget, RunSpec
from subagents.domain.run.usage import Committed, Spent, Usage
from subagents.domain.run.values import RunId, replace

TOKENS = Budget(max_tokens=1_000)

ABOVE = BudgetStop(by=RunId("r-root"), label="root", used="92k of 100k tokens", at_ms=NOW_MS)


def a_life(budget: Budget | None = TOKENS, *, parent: bool = False, **spec: Any) -> Life:
    requester = {"requester_run": RunId("r-parent")} if parent else {}
    wanted = RunSpec(task="do it", budget=budget, **spec)
    return Life.begin(wanted, a_resolved(abilities=ALL_ABILITIES), **requester)


def use(life: Life, tokens: int | None = None, cost: float | None = None) -> Life:
    """The worker reports totals: a fifth of the tokens is output."""
    usage = Usage()
    if tokens is not None:
        usage = replace(usage, tokens_in=tokens - tokens // 5, tokens_out=tokens // 5)
    return life.signal(UsageSeen(key="usage", usage=replace(usage, cost_usd=cost)))


def child_spends(life: Life, tokens: int, number: int = 1, **committed: Any) -> Life:
    promised = Committed(**{"tokens": tokens, **committed})
    life.apply(
        ChildSpent(
            at_ms=life.at_ms,
            child=RunId(f"r-c{number:09}"),
            spent=Spent(tokens_in=tokens),
            committed=promised,
        )
    )
    return life
