"""What a run used, and what it and everything below it may come to: sums over stored totals.

A run's children tell their totals in the same commit that changed them (``TellSpent``), so the
sums of one run are those of its whole subtree, without looking at any other run.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from subagents.domain.run.linked_runs import Committed, Spent
from subagents.domain.run.run import Attempt, Run, Usage

N = TypeVar("N", int, float)


def total_usage(run: Run) -> Usage:
    """The sum over the attempts; a field that was never reported stays None: unknown."""
    known = [attempt.usage for attempt in run.attempts if attempt.usage is not None]
    if len(known) <= 1:
        return known[0] if known else Usage()
    return Usage(
        tokens_in=_total(usage.tokens_in for usage in known),
        tokens_out=_total(usage.tokens_out for usage in known),
        cost_usd=_total(usage.cost_usd for usage in known),
    )


class Held(NamedTuple):
    """What the request under way may use, with what lost ones may have used."""

    tokens: int = 0
    cost_usd: float = 0


def held(run: Run) -> Held:
    """What the newest attempt keeps free for its request; over with its answer or the attempt."""
    attempt = run.attempts[-1] if run.attempts else None
    if attempt is None or attempt.hold is None or attempt.outcome is not None:
        return Held()
    hold = attempt.hold
    # Any new usage means that the request was answered: there is one at a time.
    if attempt.usage is not None and attempt.usage != hold.since:
        return Held(hold.lost_tokens, hold.lost_cost_usd)
    return Held(hold.tokens + hold.lost_tokens, hold.cost_usd + hold.lost_cost_usd)


def is_cost_unknown(run: Run) -> bool:
    """Whether an attempt ended and its cost was not reported."""
    return any(each.outcome is not None and is_cost_missing(each) for each in run.attempts)


def is_cost_missing(attempt: Attempt) -> bool:
    """Whether the attempt may have cost something that was not reported so far."""
    has_started = attempt.times.started_at_ms is not None
    return has_started and (attempt.usage is None or attempt.usage.cost_usd is None)


def spent(run: Run) -> Spent:
    """What the run and everything below it used so far."""
    own = total_usage(run)
    below = run.children.spent
    return Spent(
        tokens_in=_plus(own.tokens_in, below.tokens_in),
        tokens_out=_plus(own.tokens_out, below.tokens_out),
        cost_usd=_plus(own.cost_usd, below.cost_usd),
        runs=1 + below.runs,
        cost_unknown_runs=is_cost_unknown(run) + below.cost_unknown_runs,
    )


def promised(run: Run) -> Committed:
    """What is gone of the run's budget: its own use and hold, and what its children may come to."""
    own, holds = total_usage(run), held(run)
    below = run.children.committed
    return Committed(
        tokens=(tokens(own) or 0) + holds.tokens + below.tokens,
        cost_usd=(own.cost_usd or 0) + holds.cost_usd + below.cost_usd,
        runs=1 + below.runs,
    )


def committed(run: Run) -> Committed:
    """What the run may come to: its whole budget while it is active, in the end what it used."""
    found, budget = promised(run), run.spec.budget
    if budget is None or run.is_settled:
        return found
    return Committed(
        tokens=max(found.tokens, budget.max_tokens or 0),
        cost_usd=max(found.cost_usd, budget.max_cost_usd or 0),
        runs=max(found.runs, budget.max_runs or 0),
    )


def tokens(used: Usage | Spent) -> int | None:
    """Input and output together; None when neither was reported."""
    if used.tokens_in is None and used.tokens_out is None:
        return None
    return (used.tokens_in or 0) + (used.tokens_out or 0)


def _plus(one: N | None, other: N | None) -> N | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _total(values: Iterable[N | None]) -> N | None:
    present = [value for value in values if value is not None]
    return sum(present) if present else None
