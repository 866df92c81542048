"""Caps over several runs that are no tree: of a day, of an agent or tag on a day, of a tag, a plan.

Each run counts what its own attempts use towards every cap that it falls under; what runs below it
use they count themselves. A use counts on the day on which it is reported.

See docs/decisions/0036.
"""

from collections.abc import Iterable, Mapping
from operator import add, sub
from typing import Final, NamedTuple

from subagents.domain.rules.budgets.budgets import COST, Dimension, is_reached, limits_of
from subagents.domain.rules.budgets.request_holds import Cap, Counted, ahead
from subagents.domain.run import spending
from subagents.domain.run.run import Run
from subagents.domain.run.spec import Budget, Resolved, RunSpec
from subagents.domain.run.usage import amounts
from subagents.domain.run.values import Value

DAILY: Final = "budgets.daily"


class SharedCap(Value, frozen=True):
    """One cap over several runs."""

    key: str
    """Where it is configured: ``budgets.daily.agents.claude``; of a plan ``plan:r-…``."""
    limit: Budget
    """Its tokens and cost; the other dimensions are not capped."""
    is_daily: bool = False
    agent: str | None = None
    """Only runs of this agent."""
    tag: str | None = None
    """Only runs with this tag, and those below them."""
    plan: str | None = None
    """Only runs of this plan, and those below them."""

    @property
    def name(self) -> str:
        """``the budget of today ([budgets.daily])``."""
        if self.plan is not None:
            return f"the budget of the plan ({self.plan})"
        parts = [
            "the budget",
            f'of agent "{self.agent}"' if self.agent is not None else "",
            f'of tag "{self.tag}"' if self.tag is not None else "",
            "of today" if self.is_daily else "",
        ]
        return f"{' '.join(filter(None, parts))} ([{self.key}])"

    def holds_for(self, spec: RunSpec, resolved: Resolved) -> bool:
        """Whether a run that is spawned so counts towards it."""
        plan = None if resolved.plan is None else resolved.plan.id
        return (
            (self.agent is None or self.agent == resolved.agent_id)
            and (self.tag is None or self.tag in spec.tags or self.tag in resolved.tags_above)
            and (self.plan is None or self.plan == plan)
        )

    def is_of(self, run: Run) -> bool:
        """Whether the run counts towards it."""
        return self.holds_for(run.spec, run.resolved)


class Used(NamedTuple):
    """What runs used; the difference of two of them is what became of one run."""

    tokens: int = 0
    total_tokens: int = 0
    cost_usd: float = 0
    held_tokens: int = 0
    held_usd: float = 0
    cost_unknown: int = 0
    """Runs of which not all cost is known."""

    def held(self, dimension: Dimension) -> float:
        """How much of it is held for requests that are not answered yet."""
        return self.held_usd if dimension is COST else self.held_tokens

    def plus(self, other: "Used") -> "Used":
        return Used(*map(add, self, other))

    def minus(self, other: "Used") -> "Used":
        return Used(*map(sub, self, other))


NOTHING: Final = Used()


def used_by(run: Run) -> Used:
    """What the attempts of one run used and hold."""
    own, holds = spending.total_usage(run), spending.held(run)
    return Used(
        **amounts(lambda amount: amount, own),
        held_tokens=holds.tokens,
        held_usd=holds.cost_usd,
        cost_unknown=int(spending.is_cost_unknown(run)),
    )


def is_spent(cap: SharedCap, used: Used) -> bool:
    """Whether nothing is left of it."""
    return is_reached(cap.limit, used)


def text(cap: SharedCap, used: Used) -> str:
    """``80k of 100k tokens, ≥ $0.03 of $1.00``."""
    return ", ".join(
        each.text_of(each.of(used), limit, unknown=used.cost_unknown)
        for each, limit in limits_of(cap.limit)
    )


def caps_for(
    run: Run, caps: Iterable[SharedCap], used: Mapping[str, Used], counted: Counted
) -> list[Cap]:
    """What a request of the run must fit into, besides the budgets of runs above it."""
    own, more = used_by(run), ahead(run, counted)
    found = []
    for cap in caps:
        sums = used.get(cap.key, NOTHING)
        for each, limit in limits_of(cap.limit):
            spent = each.of(sums) + each.of(more) + each.of(counted.lost)
            held = sums.held(each) - own.held(each)
            found.append(Cap(cap.key, cap.name, each, limit, spent + held, spent))
    return found
