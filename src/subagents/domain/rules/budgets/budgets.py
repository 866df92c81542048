"""Budgets: what a run and everything below it may use together, and what follows at its edges.

- Four dimensions are *used*: tokens (uncached input, and output), total tokens (all of both), US
  dollars, and wall-clock seconds from the first attempt's start. One is *counted*: runs, of which
  each is taken at its spawn, for good.
- ``RESERVE`` percent of what is used is kept for the run that holds the budget: when no more than
  that is left, everything below it is stopped, so that its own report is always possible; what
  calls under way still add below is not charged to it. At 100 % the run itself is stopped too.
- A spawn reserves the budgets of its runs with the nearest run above that holds one (``check``).
  What a run without a budget uses is bounded by the stop, not by a reservation.
- What is not reported cannot be bounded; unknown is never taken for 0.

See docs/decisions/0020 and 0104.
"""

from collections.abc import Callable
from enum import StrEnum
from operator import add, sub
from typing import Any, Final, NamedTuple

from msgspec import structs

from subagents.domain.run import spending
from subagents.domain.run.alert import Alert, AlertKind
from subagents.domain.run.outcome import Outcome, Reason, Status
from subagents.domain.run.run import BudgetStop, Phase, Reserve, Run
from subagents.domain.run.spec import COST_USD_MAX, TOKENS_MAX, Abilities, Budget
from subagents.domain.run.usage import Amounts, Spent, amounts
from subagents.domain.run.values import Value, replace
from subagents.text import compact, cost_bound, duration, money

RESERVE: Final = 10
"""Percent of a budget that only the run that holds it may use."""

DUST: Final = 1e-9
"""US dollars below which a difference is one of floating point."""


class Dimension(NamedTuple):
    """One amount that a budget can limit."""

    field: str
    """Its name where it is counted; ``max_`` and this where it is limited."""
    name: str
    """Its name in answers."""
    text: Callable[[float], str]
    unit: str
    most: float = TOKENS_MAX
    """The highest limit."""
    kept_percent: int = RESERVE

    def of(self, found: object) -> Any:
        """How much of it that is."""
        return getattr(found, self.field)

    def limit(self, budget: Budget | None) -> Any:
        """What a budget allows of it; None = it does not limit it."""
        return None if budget is None else getattr(budget, f"max_{self.field}")

    def kept(self, limit: float) -> float:
        """How much of a limit is kept for the holder's own report."""
        part = limit * self.kept_percent
        return part / 100 if self is COST else part // 100

    def text_of(self, amount: float, limit: float, *, unknown: int = 0) -> str:
        """``80k of 100k tokens``; of a cost with how many runs did not report theirs."""
        shown = cost_bound(amount, unknown_runs=unknown) if self is COST else self.text(amount)
        return f"{shown} of {self.text(limit)}{self.unit}"


TOKENS: Final = Dimension("tokens", "tokens", lambda amount: compact(int(amount)), " tokens")
TOTAL: Final = TOKENS._replace(field="total_tokens", name="totalTokens", unit=" total tokens")
COST: Final = Dimension("cost_usd", "costUsd", money, "", COST_USD_MAX)
RUNS: Final = Dimension("runs", "runs", lambda amount: f"{amount:.0f}", " runs", kept_percent=0)
USED: Final = (TOKENS, TOTAL, COST)


def limits_of(budget: Budget | None) -> list[tuple[Dimension, Any]]:
    """What a budget limits of all that is used up, and how much it allows."""
    return [(each, limit) for each in USED if (limit := each.limit(budget)) is not None]


class Overshoot(StrEnum):
    """By how much a budget of tokens or dollars can be overspent by its holder's own worker."""

    NONE = "none"
    """It asks before each request, and none starts that could cross the budget."""
    ONE_REQUEST = "one_request"
    """Its usage is read after each answer: by the one that reaches the budget, with its context,
    and by a request that its program sent before it is stopped."""
    ONE_TURN = "one_turn"
    """Its usage is read when a turn ends, with all that was asked of the model in it."""
    UNBOUNDED = "unbounded"
    """Its usage is not reported."""


def overshoot(budget: Budget | None, abilities: Abilities) -> Overshoot | None:
    """How exactly a budget is kept; None = it limits neither tokens nor cost."""
    if not limits_of(budget):
        return None
    if not abilities.usage:
        return Overshoot.UNBOUNDED
    if abilities.holds:
        return Overshoot.NONE
    return Overshoot.ONE_TURN if abilities.usage_by_turn else Overshoot.ONE_REQUEST


# -- how much of it is used ---------------------------------------------------------------------


class Share(NamedTuple):
    """How much of one dimension of a budget is used."""

    percent: int
    """Rounded down; 100 and more = used up."""
    is_below_reserve: bool
    """Only what is kept for the holder's own report is left."""
    text: str
    """``80k of 100k tokens``."""
    is_cost: bool = False


def shares(run: Run, now_ms: int) -> tuple[Share, ...]:
    """What is known to be used, the largest share first; runs are counted, not used."""
    budget = run.spec.budget
    if budget is None:
        return ()
    used, leap = spending.spent(run), run.budget.leap or Amounts()
    found = []
    for each, limit in limits_of(budget):
        if (amount := each.of(used)) is None:
            continue
        text = each.text_of(amount, limit, unknown=used.cost_unknown_runs)
        if amount > limit + DUST and each.of(leap):
            text += f" (what was under way reported {each.text(each.of(leap))} at once)"
        is_late = amount >= limit - each.kept(limit) - DUST
        found.append(Share(_percent(amount + DUST, limit), is_late, text, is_cost=each is COST))
    if (limit_ms := limit_ms_of(budget)) is not None and run.times.started_at_ms is not None:
        passed_ms = max(now_ms - run.times.started_at_ms, 0)
        text = f"{duration(passed_ms)} of {duration(limit_ms)}"
        is_late = passed_ms >= part_ms(limit_ms, 100 - RESERVE)
        found.append(Share(_percent(passed_ms, limit_ms), is_late, text))
    return tuple(sorted(found, key=lambda share: -share.percent))


def _percent(used: float, limit: float) -> int:
    return int(used * 100 // limit) if limit > 0 else 100


def is_ended_by(holder: Run, more: Amounts, *, by_holder: bool) -> bool:
    """Whether so much more use ends what the budget is for: the holder's work, or that below."""
    budget = holder.spec.budget
    if budget is None or (not by_holder and holder.budget.reserve is not None):
        return False
    used = Amounts(**amounts(add, spending.spent(holder), more))
    share = 100 if by_holder else 100 - RESERVE
    limits = limits_of(budget)
    return any((each.of(used) + DUST) * 100 >= limit * share for each, limit in limits)


def limit_ms_of(budget: Budget) -> int | None:
    return None if budget.max_seconds is None else max(round(budget.max_seconds * 1000), 1)


def part_ms(limit_ms: int, percent: int) -> int:
    """The first millisecond in which so many percent of the time are over."""
    return -(-limit_ms * percent // 100)


def is_used(budget: Budget | None) -> bool:
    """Whether anything of it is used up over time; a number of runs is not."""
    return budget is not None and (budget.max_seconds is not None or bool(limits_of(budget)))


def due_ms(run: Run) -> int | None:
    """When time alone will next pass an edge of the run's budget: an alert, the reserve, the end.

    Only while something of it can be stopped; the clock runs from the first attempt on, through
    waits and retries.
    """
    budget = run.spec.budget
    if budget is None or run.times.started_at_ms is None or run.budget.stop is not None:
        return None
    limit_ms = limit_ms_of(budget)
    if limit_ms is None:
        return None
    edges = [100]
    if run.budget.reserve is None:
        edges.append(100 - RESERVE)
    edges += [edge for edge in run.resolved.alerts.budget_percent if run.budget.mark < edge < 100]
    return run.times.started_at_ms + part_ms(limit_ms, min(edges))


# -- what follows -------------------------------------------------------------------------------


class Assessment(NamedTuple):
    """What a change of a subtree's spending leads to."""

    run: Run
    """The run with its marks: what was alerted or done once is not repeated."""
    alerts: tuple[Alert, ...] = ()
    stop: BudgetStop | None = None
    """The budget is used up: the run and everything below it ends."""
    stop_below: BudgetStop | None = None
    """What is left is kept for the run's own report: everything below it ends."""


def assess(before: Run, run: Run, at_ms: int) -> Assessment:
    """Look at the budget of an open run after something was used, or time passed."""
    budget = run.spec.budget
    if budget is None or not is_used(budget):
        return _assess_cost(run)
    run = _with_leap(budget, before, run)
    found = shares(run, at_ms)
    if not found or run.budget.stop is not None:
        return Assessment(run)
    late = next((share for share in found if share.is_below_reserve), None)
    is_new = late is not None and run.budget.reserve is None
    if is_new:
        reserve = _reserve(budget, before, run, at_ms)
        run = replace(run, budget=replace(run.budget, reserve=reserve))
    is_over = _is_over(budget, run, at_ms)
    run, alerts = _alert(run, found[0], is_over=is_over)
    if late is None or not (is_new or is_over):
        return Assessment(run, alerts)
    stop = BudgetStop(by=run.id, label=run.resolved.label, used=found[0].text, at_ms=at_ms)
    if is_over:
        return Assessment(run, alerts, stop)
    # Nothing below may start any more, so that the holder can still report in its reserve.
    stop = replace(stop, used=f"{late.text}, the rest is kept for its own report")
    return Assessment(run, alerts, stop_below=stop)


def _with_leap(budget: Budget, before: Run, run: Run) -> Run:
    """Remember by how much the report grew the sums with which a limit was passed."""
    if run.budget.leap is not None or not run.rules:
        return run  # the first one explains it; runs of 0.1.0 had none, and fold as they were
    used = Amounts(**amounts(lambda amount: amount, spending.spent(run)))
    if not any(each.of(used) > limit + DUST for each, limit in limits_of(budget)):
        return run
    leap = Amounts(**amounts(sub, used, spending.spent(before)))
    return replace(run, budget=replace(run.budget, leap=leap))


def _reserve(budget: Budget, before: Run, run: Run, at_ms: int) -> Reserve:
    """A leap below is borne by the holder up to the edge, not into what is kept for its report."""
    # At least what was known below before this report: that the holder could have reacted to.
    own, found = spending.total_usage(run), {}
    for each, limit in limits_of(budget):
        room = max(limit - each.kept(limit) - (each.of(own) or 0), 0)
        below, known = (each.of(one.children.spent) or 0 for one in (run, before))
        found[each.field] = max(known, min(below, room))
    return Reserve(at_ms=at_ms, **found)


def _is_over(budget: Budget, run: Run, at_ms: int) -> bool:
    """Whether the holder itself must end: nothing is left, not even for its report."""
    # Once everything below was stopped, what counts is the holder's own use and what it must bear.
    own, reserve = spending.total_usage(run), run.budget.reserve
    if reserve is None:
        return False
    if is_reached(budget, Amounts(**amounts(add, own, reserve))):
        return True
    limit_ms, started_ms = limit_ms_of(budget), run.times.started_at_ms
    return limit_ms is not None and started_ms is not None and at_ms - started_ms >= limit_ms


def is_reached(budget: Budget, used: object) -> bool:
    """Whether so much is all that a budget of tokens or cost allows."""
    return any(each.of(used) >= limit - DUST for each, limit in limits_of(budget))


def _alert(run: Run, most: Share, *, is_over: bool) -> tuple[Run, tuple[Alert, ...]]:
    """One alert for the highest threshold passed since the last one."""
    rules = run.resolved.alerts
    passed = [mark for mark in rules.budget_percent if run.budget.mark < mark <= most.percent]
    if not passed:
        return run, ()
    # One alert, for the highest mark: a report that passes three of them is one piece of news.
    used, of = most.text.split(" of ", 1)
    text = f"{used} spent (budget: {of})"
    if not most.is_cost:
        text = f"{most.percent}% of the budget: {most.text}"
    text += "; it is stopped" if is_over else ""
    return _alerted(run, max(passed), text, f"{max(passed)}", percent=most.percent)


def _alerted(
    run: Run, mark: float, text: str, key: str, **more: int
) -> tuple[Run, tuple[Alert, ...]]:
    fields = {**_fields(run), **more}
    kind = AlertKind.BUDGET_ALERT
    alert = Alert(kind=kind, text=f"💰 {text}", key=f"budget:{key}", fields=fields)
    return replace(run, budget=replace(run.budget, mark=mark)), (alert,)


def _assess_cost(run: Run) -> Assessment:
    """Without a budget the requester is alerted to what the run and all below it cost."""
    cost = spending.spent(run).cost_usd
    marks = run.resolved.alerts.cost_usd
    passed = [mark for mark in marks if run.budget.mark < mark <= (cost or 0) + DUST]
    if cost is None or not passed:
        return Assessment(run)
    text = f"{money(cost)} spent (no budget)"
    return Assessment(*_alerted(run, max(passed), text, f"${max(passed):g}"))


def _fields(run: Run) -> dict[str, str | int | float | bool | None]:
    """Spent and granted, of dollars and of tokens."""
    used, budget = spending.spent(run), run.spec.budget or Budget()
    return {
        "costUsd": used.cost_usd,
        "budgetUsd": budget.max_cost_usd,
        "tokens": used.tokens,
        "budgetTokens": budget.max_tokens,
    }


def why(run: Run, stop: BudgetStop) -> str:
    """``its budget is used up: 101k of 100k tokens``, or whose."""
    whose = "its budget" if stop.by == run.id else stop.whose
    return f"{whose} is used up: {stop.used}"


def stopped(run: Run, stop: BudgetStop) -> Outcome:
    """Of a run that had begun: what exists so far is its result, and never a success."""
    return Outcome(status=Status.PARTIAL, reason=Reason.BUDGET, error=f"stopped: {why(run, stop)}")


def not_started(run: Run, stop: BudgetStop) -> Outcome:
    """Of a run whose next attempt was still to come: nothing usable exists.

    A contract that failed stays the reason: the worker did its work, and it was found wrong.
    """
    because = why(run, stop)
    attempt = run.attempts[-1] if run.attempts else None
    before = run.retry.cause.reason or (attempt.retry.reason if attempt is not None else None)
    if run.retry.cause.verifies:
        error = f"{before} (not tried again: {because})"
        return Outcome(status=Status.ERROR, reason=Reason.VERIFICATION_FAILED, error=error)
    error = f"not started: {because}"
    if before:
        error = f"not tried again: {because}; the attempt before: {before}"
    return Outcome(status=Status.ERROR, reason=Reason.BUDGET, error=error)


def raised(budget: Budget | None, added: Amounts, used: Spent | None = None) -> Budget:
    """With so much more of what it limits; with ``used``, of what was left of that."""
    limits = {}
    for each, limit in limits_of(budget):
        if more := each.of(added):
            left = limit if used is None else max(limit - (each.of(used) or 0), 0)
            limits[f"max_{each.field}"] = min(left + more, each.most)
    return replace(budget or Budget(), **limits)


def with_raised(run: Run, added: Amounts, at_ms: int) -> Run:
    """The run with a raised budget; at the edges of that the same follows as at those before."""
    more = raised(run.spec.budget, added)
    run = replace(run, spec=replace(run.spec, budget=more))
    mark = max((share.percent for share in shares(run, at_ms)), default=0)
    return replace(run, budget=replace(run.budget, mark=mark, reserve=None, leap=None, raised=more))


# -- as it is shown -----------------------------------------------------------------------------


class Left(Value, frozen=True):
    """What is not used yet; None = no limit, or usage is not reported."""

    tokens: int | None = None
    total_tokens: int | None = None
    cost_usd: float | None = None
    runs: int | None = None
    seconds: float | None = None


class BudgetView(Budget, frozen=True, kw_only=True):
    """A run's budget with what it and everything below it used."""

    spent: Spent
    left: Left
    percent: int | None
    """How much of the dimension used most is used; None = nothing is known to be used of any."""
    text: str
    """``80k of 100k tokens, ? of $1.00, 3 of 10 runs``; ? = it was not reported."""
    exhausted: bool
    overshoot: Overshoot | None
    """How exactly tokens and cost are kept by the run's own worker."""


def view(run: Run, now_ms: int) -> BudgetView | None:
    """The run's own budget for status and tree; None = it has none."""
    budget = run.spec.budget
    if budget is None:
        return None
    at_ms = run.ended_at_ms or now_ms
    used, found = spending.spent(run), shares(run, at_ms)
    parts = [share.text for share in found]
    parts += [
        f"? of {each.text(limit)}{each.unit}"
        for each, limit in limits_of(budget)
        if each.of(used) is None
    ]
    if budget.max_runs is not None:
        parts.append(f"{used.runs} of {budget.max_runs} runs")
    return BudgetView(
        **structs.asdict(budget),
        spent=used,
        left=_view_left(run, budget, used, at_ms),
        percent=found[0].percent if found else None,
        text=", ".join(parts),
        exhausted=run.budget.stop is not None and run.budget.stop.by == run.id,
        overshoot=overshoot(budget, run.resolved.abilities),
    )


def _view_left(run: Run, budget: Budget, used: Spent, at_ms: int) -> Left:
    # Before anything was started the whole is left, though no usage is reported yet.
    is_fresh = run.phase in {Phase.WAITING, Phase.QUEUED} and not run.attempts
    left = {
        each.field: _rest(each.limit(budget), 0 if is_fresh else each.of(used)) for each in USED
    }
    seconds = budget.max_seconds
    if seconds is not None and run.times.started_at_ms is not None:
        seconds = max(seconds - (at_ms - run.times.started_at_ms) / 1000, 0)
    return Left(
        **left,
        runs=_rest(budget.max_runs, spending.promised(run).runs),
        seconds=seconds,
    )


def _rest(limit: Any, used: Any) -> Any:
    return None if limit is None or used is None else max(limit - used, 0)
