"""What a run used, and what it and everything below it may come to: sums over stored totals.

A run's children tell their totals in the same commit that changed them (``TellSpent``), so the
sums of one run are those of its whole subtree, without looking at any other run.
"""

from functools import reduce
from operator import add

from msgspec.structs import asdict

from subagents.domain.run.run import Attempt, Run
from subagents.domain.run.usage import Amounts, Committed, Spent, Usage, amounts, merged


def total_usage(run: Run) -> Usage:
    """The sum over the attempts; a field that was never reported stays None: unknown."""
    known = [attempt.usage for attempt in run.attempts if attempt.usage is not None]
    return reduce(lambda one, more: merged(one, more, add), known) if known else Usage()


def held(run: Run) -> Amounts:
    """What the newest attempt keeps free for its request; over with its answer or the attempt.

    With what lost ones may have used. Nobody knows before what will come from a cache.
    """
    attempt = run.attempts[-1] if run.attempts else None
    if attempt is None or attempt.hold is None or attempt.outcome is not None:
        return Amounts()
    hold = attempt.hold
    tokens, cost_usd = hold.lost_tokens, hold.lost_cost_usd
    # Any new usage means that the request was answered: there is one at a time.
    if attempt.usage is None or attempt.usage == hold.since:
        tokens, cost_usd = tokens + hold.tokens, cost_usd + hold.cost_usd
    return Amounts(tokens=tokens, total_tokens=tokens, cost_usd=cost_usd)


def is_cost_unknown(run: Run) -> bool:
    """Whether an attempt ended and its cost was not reported."""
    return any(each.outcome is not None and is_cost_missing(each) for each in run.attempts)


def is_cost_missing(attempt: Attempt) -> bool:
    """Whether the attempt may have cost something that was not reported so far."""
    has_started = attempt.times.started_at_ms is not None
    return has_started and (attempt.usage is None or attempt.usage.cost_usd is None)


def spent(run: Run) -> Spent:
    """What the run and everything below it used so far."""
    below = run.children.spent
    return Spent(
        **asdict(merged(total_usage(run), below, add)),
        runs=1 + below.runs,
        cost_unknown_runs=is_cost_unknown(run) + below.cost_unknown_runs,
    )


def promised(run: Run) -> Committed:
    """What is gone of the run's budget: its own use and hold, and what its children may come to."""
    below = run.children.committed
    own = amounts(lambda used, hold, more: used + hold + more, total_usage(run), held(run), below)
    return Committed(**own, runs=1 + below.runs)


def committed(run: Run) -> Committed:
    """What the run may come to: its whole budget while it is active, in the end what it used."""
    found, budget = promised(run), run.spec.budget
    if budget is None or run.is_settled:
        return found
    limits = {name: getattr(budget, f"max_{name}") or 0 for name in Committed.__struct_fields__}
    return Committed(**{name: max(getattr(found, name), most) for name, most in limits.items()})
