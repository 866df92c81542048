"""What an event changed of a subtree's spending: reported upwards and assessed, in the same commit.

A part of the reducer (``reduce``). See docs/decisions/0020.
"""

from collections.abc import Callable
from typing import TypeAlias

from subagents.domain.lifecycle.steps import with_attempt
from subagents.domain.rules.budgets import budgets
from subagents.domain.rules.evidence import most
from subagents.domain.run import spending
from subagents.domain.run.effects import Raise, StopChildren, TellSpent, Transition
from subagents.domain.run.events import ChildSpent, Event, RequestHeld, TimerFired
from subagents.domain.run.run import SETTLED, BudgetStop, Hold, Run
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import replace

Stop: TypeAlias = Callable[[Run, BudgetStop, int], Transition]
"""What ends a run whose own budget is used up."""


def child_spent(run: Run, event: ChildSpent) -> Transition:
    children = run.children.reported(event.child, event.spent, event.committed)
    if children is run.children:
        return Transition(run, stale=True)
    return Transition(replace(run, children=children))


def request_held(run: Run, event: RequestHeld) -> Transition:
    """Keep free what the request may use; the worker's own count may be ahead of its stream."""
    attempt = run.attempt
    if event.attempt != attempt.number or attempt.outcome is not None:
        return Transition(run, stale=True)
    usage = attempt.usage
    if event.usage != Usage():
        usage = most(usage or Usage(), event.usage)
    hold = Hold(
        tokens=event.tokens,
        cost_usd=event.cost_usd,
        since=usage or Usage(),
        lost_tokens=event.lost_tokens,
        lost_cost_usd=event.lost_cost_usd,
    )
    return Transition(with_attempt(run, replace(attempt, usage=usage, hold=hold)))


def settle_up(before: Run, step: Transition, event: Event, *, stop: Stop) -> Transition:
    """The step with what follows from the spending that it changed."""
    run = step.run
    is_settled = run.phase in SETTLED
    if is_settled and run.lineage.requester_run is None:
        return step  # no run above it counts, and nothing of it is left to be stopped
    budget = run.spec.budget
    is_timed = type(event) is TimerFired and budget is not None and budget.max_seconds is not None
    # Nearly every event ends here: what was used is summed up only where it can have changed.
    is_same = run.children.sums is before.children.sums and is_settled == (before.phase in SETTLED)
    if is_same and budget is before.spec.budget and not is_timed and _used_alike(before, run):
        return step
    known, found = _report(before), _report(run)
    if not is_settled and (is_timed or found != known):
        step = _check_budget(before, step, event.at_ms, stop)
        found = found if step.run is run else _report(step.run)
    return step if found == known else _told(step, found)


def _used_alike(before: Run, run: Run) -> bool:
    """Most events leave what was used alone: seen without summing it up."""
    if run.attempts is before.attempts:
        return True
    for known, now in zip(before.attempts, run.attempts, strict=False):
        if known is now:
            continue
        if known.usage is not now.usage or known.hold is not now.hold:
            return False
        # An end alone changes the sums where it releases a hold, or leaves a cost unknown for good.
        has_ended = known.outcome is None and now.outcome is not None
        if has_ended and (now.hold is not None or spending.is_cost_missing(now)):
            return False
    new = run.attempts[len(before.attempts) :]
    return not new or all(each.usage is None for each in new)


def report_spending(step: Transition) -> Transition:
    """Before all other follow-ups: one of those may settle the run above, which must know first."""
    return _told(step, _report(step.run))


def _report(run: Run) -> TellSpent:
    return TellSpent(spent=spending.spent(run), committed=spending.committed(run))


def _told(step: Transition, report: TellSpent) -> Transition:
    if step.run.lineage.requester_run is None:
        return step
    return step._replace(followups=(report, *step.followups))


def _check_budget(before: Run, step: Transition, at_ms: int, stop: Stop) -> Transition:
    assessed = budgets.assess(before, step.run, at_ms)
    if assessed == budgets.Assessment(step.run):
        return step
    run, followups = assessed.run, step.followups
    if assessed.alerts:
        followups += (Raise(alerts=assessed.alerts),)
    if assessed.stop_below is not None and run.children.active:
        followups += (StopChildren(stop=assessed.stop_below),)
    # A timer that found nothing else to do is not stale when it is the budget's time that passed.
    step = step._replace(run=run, followups=followups, stale=False)
    if assessed.stop is None:
        return step
    more = stop(run, assessed.stop, at_ms)
    return Transition(
        more.run,
        effects=(*step.effects, *more.effects),
        followups=(*step.followups, *more.followups),
        messages=(*step.messages, *more.messages),
    )
