"""What a run used, and what it and everything below it may come to: sums over stored totals.

A run's children tell their totals in the same commit that changed them (``TellSpent``), so the
sums of one run are those of its whole subtree, without looking at any other run.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from subagents.domain.run.run import (
    Committed,
    Run,
    Spent,
    Usage,
)

N = TypeVar("N", int, float)


class Account(NamedTuple):
    """What a run reports to the run that spawned it."""

    spent: Spent
    committed: Committed


def total_usage(run: Run) -> Usage:
    """The sum over the attempts; a field nobody reported stays None, which means unknown."""
    known = [attempt.usage for attempt in run.attempts if attempt.usage is not None]
    return Usage(
        tokens_in=_total(usage.tokens_in for usage in known),
        tokens_out=_total(usage.tokens_out for usage in known),
        cost_usd=_total(usage.cost_usd for usage in known),
    )


def spent(run: Run) -> Spent:
    """What the run and everything below it used so far."""
    own = total_usage(run)
    below = [child.spent for child in run.children]
    return Spent(
        tokens_in=_total([own.tokens_in, *(each.tokens_in for each in below)]),
        tokens_out=_total([own.tokens_out, *(each.tokens_out for each in below)]),
        cost_usd=_total([own.cost_usd, *(each.cost_usd for each in below)]),
        runs=1 + sum(each.runs for each in below),
    )


def promised(run: Run) -> Committed:
    """What is gone of the run's budget: what it used itself, and what its children may come to."""
    own = total_usage(run)
    below = [child.committed for child in run.children]
    return Committed(
        tokens=(tokens(own) or 0) + sum(each.tokens for each in below),
        cost_usd=(own.cost_usd or 0) + sum(each.cost_usd for each in below),
        runs=1 + sum(each.runs for each in below),
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


def account(run: Run) -> Account:
    """Both at once."""
    return Account(spent(run), committed(run))


def tokens(used: Usage | Spent) -> int | None:
    """Input and output together; None when neither was reported."""
    if used.tokens_in is None and used.tokens_out is None:
        return None
    return (used.tokens_in or 0) + (used.tokens_out or 0)


def _total(values: Iterable[N | None]) -> N | None:
    present = [value for value in values if value is not None]
    return sum(present) if present else None
