"""What simulated trees of runs used, counted from their attempts alone, against what they say."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from subagents.domain.rules.budgets.budgets import RESERVE
from subagents.domain.run.linked_runs import Children
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import RunId, replace


class Judge(Protocol):
    """Who hears of what does not hold."""

    view: dict[RunId, Run]

    def fail(self, invariant: str, detail: str) -> None:
        """The first one counts."""
        ...


class Bill(NamedTuple):
    """What a subtree used; None = nobody said."""

    tokens: int | None
    cost_usd: float | None
    runs: int

    def is_close_to(self, other: "Bill") -> bool:
        """Sums of dollars depend on their order."""
        if None in {self.cost_usd, other.cost_usd} and self.cost_usd is not other.cost_usd:
            return False
        off = abs((self.cost_usd or 0) - (other.cost_usd or 0))
        return (self.tokens, self.runs) == (other.tokens, other.runs) and off < 1e-6


def bill_of(runs: Mapping[RunId, Run], root: Run) -> Bill:
    """Of all attempts of the root and of every run below it, as the simulated workers use it."""
    tokens: int | None = None
    cost: float | None = None
    count, pending = 0, [root]
    while pending:
        run = pending.pop()
        count += 1
        for attempt in run.attempts:
            if attempt.usage is None or attempt.usage.tokens is None:
                continue
            tokens = (tokens or 0) + attempt.usage.tokens
            cost = (cost or 0) + (attempt.usage.cost_usd or 0)
        pending += [runs[child.run_id] for child in run.children]
    return Bill(tokens, cost, count)


def look_at_spending(judge: Judge, run: Run) -> None:
    """Compare the totals that were told up with those of the attempts themselves."""
    above = judge.view.get(run.lineage.requester_run) if run.lineage.requester_run else None
    if above is not None and not above.is_settled:
        record = next(child for child in above.children if child.run_id == run.id)
        seen = bill_of(judge.view, run)
        told = Bill(record.spent.tokens, record.spent.cost_usd, record.spent.runs)
        if not seen.is_close_to(told):
            judge.fail("totals are those of the subtree", f"{run.id}: told {told}, is {seen}")
        least, most = record.spent, record.committed
        if (least.tokens or 0) > most.tokens or least.runs > most.runs:
            judge.fail("never more spent than committed", f"{run.id}: {least} {most}")
    holder: Run | None = run
    while holder is not None:
        _look_at_budget(judge, holder)
        holder = (
            judge.view.get(holder.lineage.requester_run) if holder.lineage.requester_run else None
        )


def _look_at_budget(judge: Judge, holder: Run) -> None:
    budget = holder.spec.budget
    if budget is None or holder.is_settled:
        return
    used = bill_of(judge.view, holder)
    runs = used.runs - _judges_below(judge, holder)
    if budget.max_runs is not None and runs > budget.max_runs:
        judge.fail("caps are never exceeded", f"{holder.id}: {runs} runs")
    share = max(
        (used.tokens or 0) / budget.max_tokens if budget.max_tokens else 0,
        (used.cost_usd or 0) / budget.max_cost_usd if budget.max_cost_usd else 0,
    )
    own = bill_of(judge.view, replace(holder, children=Children()))
    reserve = holder.budget.reserve
    if reserve is not None and (
        (budget.max_tokens and (own.tokens or 0) + reserve.tokens >= budget.max_tokens)
        or (
            budget.max_cost_usd
            and (own.cost_usd or 0) + reserve.cost_usd >= budget.max_cost_usd + 1e-6
        )
    ):
        _look_at_stopped(judge, holder)
    if share >= (100 - RESERVE) / 100 + 1e-6:
        # One that is stopped for a budget above it needs none for a report of its own.
        if reserve is None and holder.budget.stop is None:
            judge.fail("no subtree works on without budget", f"{holder.id} spends its reserve")
        for child in holder.active_children:
            _look_at_stopped(judge, judge.view[child.run_id])


def _judges_below(judge: Judge, holder: Run) -> int:
    """Counted like any run, but never refused for their number."""
    count, pending = 0, [holder]
    while pending:
        run = pending.pop()
        count += run.lineage.judges is not None and run is not holder
        pending += [judge.view[child.run_id] for child in run.children]
    return count


def look_at_hold(judge: Judge, run: Run) -> None:
    """A request was just granted: it fits into what is left of the nearest limit above it."""
    # What has no price cannot be kept below a cost.
    for is_tokens in (True, False) if _held(run, is_tokens=False) else (True,):
        holder: Run | None = run
        while holder is not None:
            budget = holder.spec.budget
            limit: float | None = None
            if budget is not None:
                limit = budget.max_tokens if is_tokens else budget.max_cost_usd
            if limit is not None:
                _look_at_room(judge, holder, limit, is_tokens=is_tokens)
                break
            upper = holder.lineage.requester_run
            holder = judge.view.get(upper) if upper else None


def _look_at_room(judge: Judge, holder: Run, limit: float, *, is_tokens: bool) -> None:
    used, pending = 0.0, [holder]
    while pending:
        run = pending.pop()
        for attempt in run.attempts:
            usage = attempt.usage
            if usage is not None:
                used += (usage.tokens if is_tokens else usage.cost_usd) or 0
        used += _held(run, is_tokens=is_tokens)
        pending += [judge.view[child.run_id] for child in run.children]
    reserve = holder.budget.reserve
    if used > limit + 1e-6 and reserve is None:
        judge.fail("no request is granted that could cross a cap", f"{holder.id}: {used}/{limit}")


def _held(run: Run, *, is_tokens: bool) -> float:
    attempt = run.attempts[-1] if run.attempts else None
    if attempt is None or attempt.hold is None or attempt.outcome is not None:
        return 0.0
    hold = attempt.hold
    lost = hold.lost_tokens if is_tokens else hold.lost_cost_usd
    is_answered = attempt.usage is not None and attempt.usage != hold.since
    return lost + (0 if is_answered else hold.tokens if is_tokens else hold.cost_usd)


def _look_at_stopped(judge: Judge, run: Run) -> None:
    """What is out of budget is being stopped, with everything below it, or is almost over."""
    if run.is_settled:
        return
    # What is being verified goes on, but for the judge below it.
    is_ending = run.phase in {Phase.ENDING, Phase.VERIFYING}
    ends = is_ending or run.attempt.evidence.stop is not None
    if run.budget.stop is None or not ends:
        judge.fail("no subtree works on without budget", f"{run.id} is {run.phase}")
    for child in run.active_children:
        _look_at_stopped(judge, judge.view[child.run_id])
