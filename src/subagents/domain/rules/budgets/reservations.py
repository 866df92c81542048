"""May these runs be spawned under the budgets above them? Reserved in the spawn's own step.

What a child's own budget names is taken from the nearest run above that limits the same, and from
no run above that one: there it is part of what was reserved before. What a child does not name is
not reserved, but something must be left. Each run counts as one, or as its own ``maxRuns``.

See docs/decisions/0020.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from subagents.domain.rules.budgets import budgets
from subagents.domain.rules.budgets.budgets import COST, RUNS, USED, Dimension
from subagents.domain.rules.parameter_checks import without_effect
from subagents.domain.run import spending
from subagents.domain.run.run import Run
from subagents.domain.run.spec import Abilities, Budget, RunSpec
from subagents.domain.run.usage import Amounts, Committed
from subagents.errors import Conflict, Forbidden, UsageError
from subagents.text import duration

_RESERVED: Final = (*USED, RUNS)
COMMAND: Final = "command"
"""The runtime of plain programs: it passes usage on, but a program need not report any."""


def check(
    above: Sequence[Run], wanted: Sequence[Budget | None], *, now_ms: int, counts_runs: bool = True
) -> None:
    """Refuse a spawn that the budgets above it have no room for.

    Args:
        above: The run that spawns, then the run that spawned it, and so on to the top.
        wanted: The budgets of the runs it would spawn: all of them, or none is stored.
        now_ms: Now.
        counts_runs: Whether they need room below ``maxRuns``.

    Raises:
        Forbidden: Guardrail ``budget``: whose it is, what is left of it, and what to do.
    """
    if not above:
        return
    stop = above[0].budget.stop
    if stop is not None:
        raise _refused(
            f"{budgets.why(above[0], stop)}: no more sub-agents are started", holder=stop.by, left=0
        )
    # Each dimension may be limited by another run. The first that is short is named, with its
    # holder, so that the agent knows what to ask for less of.
    for holder in above:
        if holder.budget.reserve is not None:
            used = budgets.shares(holder, now_ms)[0].text
            raise _refused(
                f"{_of(holder)} is used up but for its own report ({used}): no more sub-agents "
                "are started",
                holder=holder.id,
                left=0,
            )
        _check_time(holder, wanted, now_ms)
    for dimension in _RESERVED if counts_runs else USED:
        _check_amount(dimension, above, wanted)


def _check_amount(
    dimension: Dimension, above: Sequence[Run], wanted: Sequence[Budget | None]
) -> None:
    """The nearest run that names this limit decides: that limit is reserved above already."""
    left = _left(dimension, above)
    if left is None:
        return
    holder, limit, amount = left
    limits = [dimension.limit(budget) for budget in wanted]
    each = int(dimension is RUNS)
    asked = sum(each if most is None else most for most in limits)
    # One that names no limit reserves nothing, but would be stopped at once where nothing is left.
    is_open = each == 0 and None in limits
    is_room = asked <= amount + budgets.DUST
    if is_room and (not is_open or amount - asked > budgets.DUST):
        return
    text, unit = dimension.text, dimension.unit
    kept = dimension.kept(limit)
    reserve = f" ({text(kept)} more are kept for its own report)" if kept else ""
    found = f"{text(max(amount, 0))} of {text(limit)}{unit} left for sub-agents{reserve}"
    wants = f"{text(asked)}{unit} are asked for" if asked else "nothing is left for this one"
    raise _refused(
        f"{_of(holder)} has {found}, and {wants}",
        holder=holder.id,
        left=max(amount, 0),
        dimension=dimension.name,
    )


def check_raise(run: Run, above: Sequence[Run], added: Amounts, *, now_ms: int) -> None:
    """Refuse to raise a run's budget by what it does not limit, or those above it have not left.

    Raises:
        UsageError: It limits no tokens, or no cost.
        Conflict: It is used up, and the run is being stopped.
        Forbidden: As ``check``.
    """
    limits = budgets.limits_of(run.spec.budget)
    wanted = Budget(**{f"max_{each.field}": each.of(added) or None for each, _ in limits})
    has_tokens = wanted.max_tokens or wanted.max_total_tokens
    if (added.tokens and not has_tokens) or (added.cost_usd and not wanted.max_cost_usd):
        raise UsageError(f"run {run.id} has no such limit of its own that could be raised")
    if run.budget.stop is not None and not run.is_settled:
        raise Conflict(
            f"{budgets.why(run, run.budget.stop)}: it is being stopped",
            hint=f"go on when it has ended: subagents continue {run.id} TEXT --add-tokens N",
        )
    check(above, [wanted], now_ms=now_ms, counts_runs=False)


def _left(dimension: Dimension, above: Sequence[Run]) -> tuple[Run, float, float] | None:
    """Who limits it, to what, and what sub-agents may still reserve."""
    for holder in above:
        if (limit := dimension.limit(holder.spec.budget)) is not None:
            gone = dimension.of(spending.promised(holder))
            return holder, limit, limit - dimension.kept(limit) - gone
    return None


def _check_time(holder: Run, wanted: Iterable[Budget | None], now_ms: int) -> None:
    """Time is not divided: every run below ends by the same clock."""
    left_ms = _left_ms(holder, now_ms)
    if left_ms is None:
        return
    limits = (budgets.limit_ms_of(budget) for budget in wanted if budget is not None)
    asked_ms = max((limit for limit in limits if limit is not None), default=0)
    if left_ms > 0 and asked_ms <= left_ms:
        return
    wants = f"{duration(asked_ms)} are asked for" if asked_ms else "no sub-agent is started in it"
    raise _refused(
        f"{_of(holder)} has {duration(left_ms)} left for sub-agents, and {wants}",
        holder=holder.id,
        left=max(left_ms, 0) / 1000,
        dimension="seconds",
    )


def _left_ms(holder: Run, now_ms: int) -> int | None:
    limit_ms = budgets.limit_ms_of(holder.spec.budget) if holder.spec.budget is not None else None
    if limit_ms is None or holder.times.started_at_ms is None:
        return None
    return holder.times.started_at_ms + budgets.part_ms(limit_ms, 100 - budgets.RESERVE) - now_ms


def _of(holder: Run) -> str:
    return f'the budget of run "{holder.resolved.label}" ({holder.id})'


def _refused(text: str, *, holder: str, left: float, dimension: str | None = None) -> Forbidden:
    error = Forbidden(
        text,
        guardrail="budget",
        hint="ask for less, wait until a sub-agent ends and gives back what it did not use, or "
        "finish with what there is",
    )
    of = {"of": dimension} if dimension else {}
    error.details = {**error.details, "runId": holder, "left": left, **of}
    return error


def left_for(above: Sequence[Run], spec: RunSpec, *, now_ms: int) -> Budget | None:
    """What a new run shares with others, in the dimensions that its own budget does not limit."""
    if not above:
        return None
    own = spec.budget or Budget()
    found: dict[str, Any] = {
        f"max_{each.field}": round(room[2], 6) if each is COST else int(room[2])
        for each in _RESERVED
        if each.limit(own) is None and (room := _left(each, above)) is not None
    }
    times = [left for holder in above if (left := _left_ms(holder, now_ms)) is not None]
    shared = Budget(
        **found,
        max_seconds=min(times) / 1000 if times and own.max_seconds is None else None,
    )
    return None if shared == Budget() else shared


def reserved(spec: RunSpec) -> Committed:
    """What a spawn takes from the budgets above, until the run itself reports more."""
    limits = {each.field: each.limit(spec.budget) or 0 for each in USED}
    return Committed(**limits, runs=RUNS.limit(spec.budget) or 1)


def warning(budget: Budget | None, runtime: str, abilities: Abilities) -> str | None:
    """What a receipt must say of a limit that may not hold; None = it holds."""
    exactness = budgets.overshoot(budget, abilities)
    if budget is None or exactness is None:
        return None
    names = [each.name for each, _ in budgets.limits_of(budget)]
    named = " and ".join(f"max{name[0].upper()}{name[1:]}" for name in names)
    if exactness is budgets.Overshoot.UNBOUNDED:
        return (
            f'runtime "{runtime}" reports no usage: {named} cannot stop this run itself, only what '
            "it spawns in runtimes that report it (maxSeconds and maxRuns hold everywhere)"
        )
    if runtime == COMMAND:
        return (
            f"against {named} counts only what the command itself reports, by lines of JSON "
            '{"subagents":"usage","tokensIn":…,"tokensOut":…,"costUsd":…} on its standard output'
        )
    if exactness is budgets.Overshoot.ONE_REQUEST:
        return (
            f'runtime "{runtime}" reports usage after each answer: {named} can be overspent by the '
            "answer that reaches it, with its whole context, and by a request that was sent before "
            "the program is stopped"
        )
    if exactness is budgets.Overshoot.ONE_TURN:
        return (
            f'runtime "{runtime}" reports usage at the end of a turn: {named} can be overspent by '
            "a whole turn, however many requests it makes (maxSeconds holds everywhere)"
        )
    if budget.max_cost_usd is not None:
        return (
            "maxCostUsd holds only for models whose price is known; without one the cost is "
            "unknown and only limits of tokens can be kept"
        )
    return None


def warnings(run: Run) -> tuple[str, ...]:
    """What its requester should know of a run that was just accepted: each one sentence."""
    vacuous = "the contract is met already, before any work: it proves nothing (vacuous)"
    unsure = warning(run.spec.budget, run.resolved.runtime, run.resolved.abilities)
    found = filter(None, (vacuous if run.verification.vacuous else "", unsure))
    return (*found, *without_effect(run.spec))
