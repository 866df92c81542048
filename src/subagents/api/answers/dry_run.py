"""A dry run as an answer: what a spawn would come to, from the runs that it would store."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import msgspec

from subagents.api.answers import run_building
from subagents.api.wire import run_answers as wire
from subagents.api.wire.wire_struct import NamedRun, made
from subagents.domain.rules.admission import lane_key, priority
from subagents.domain.rules.budgets import budgets
from subagents.domain.rules.budgets.budgets import Dimension
from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.outcome import CheckType
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.spec import Budget, Contract
from subagents.domain.run.values import RunId
from subagents.engine.runs.spawn import Receipt
from subagents.engine.runs.surroundings import Surroundings

REPORT: Final = "completion report"


def dry_run(
    receipts: Sequence[Receipt],
    environments: Sequence[CallerEnvironment | None],
    around: Surroundings,
    *,
    plan: Budget | None = None,
    warnings: Sequence[str] = (),
) -> wire.DryRun:
    """What the runs of a trial would come to.

    Args:
        receipts: The trial's.
        environments: The variables that were brought for each of their workers.
        around: What is at work now.
        plan: The budget that all of them share.
        warnings: The configuration's, for each of them.
    """
    planned = [each.run for each in receipts if not each.repeated]
    new = {run.id for run in planned}
    return wire.DryRun(
        runs=[
            _planned(each, brought, around, plan, warnings=warnings, new=new, beside=planned)
            for each, brought in zip(receipts, environments, strict=True)
        ],
        **{f"max_{each.field}": _together(planned, plan, each) for each in budgets.USED},
        max_seconds=None if plan is None else plan.max_seconds,
    )


def _planned(
    receipt: Receipt,
    brought: CallerEnvironment | None,
    around: Surroundings,
    plan: Budget | None,
    *,
    warnings: Sequence[str],
    new: Collection[RunId],
    beside: Sequence[Run],
) -> wire.PlannedRun:
    run = receipt.run
    # The other runs of the same call are not stored, so the engine does not count them.
    ahead, use = around.ahead_of(run) + _ahead_among(beside, run), around.lane(run)
    use = use._replace(limit=use.limit or _others_of_plan(beside, run))
    is_free = use.limit is None and use.used + ahead < use.slots
    return run_building.shown(
        wire.PlannedRun,
        run,
        run_id=run.id if receipt.repeated else None,
        environment=[] if brought is None else list(brought.given),
        lane=made(wire.LaneQueue, use, name=run.resolved.lane, ahead=ahead),
        starts_at_once=run.phase is Phase.QUEUED and not receipt.repeated and is_free,
        waits_for=[
            # The ids of a trial are thrown away: those of the real call will be others.
            NamedRun(run_id="" if link.run_id in new else link.run_id, label=link.label)
            for link in run.waiting.dependencies
            if link.outcome is None
        ],
        question=run.spec.gate if run.approval is None else run.approval.question,
        items_max=None if run.spec.for_each is None else run.spec.for_each.max_items,
        attempts_max=run.spec.attempts_max,
        run_timeout_seconds=run.resolved.timeout_ms / 1000 if run.resolved.timeout_ms else None,
        budget=_budget(run),
        overshoot=budgets.overshoot(_narrowed(run) or plan, run.resolved.abilities),
        checks=list(checks_of(run.spec.verification)),
        warnings=[*receipt.warnings, *warnings],
    )


def _ahead_among(planned: Sequence[Run], run: Run) -> int:
    """How many runs of the same call want a slot of the same lane and would get one first."""
    lane, own = lane_key(run), -priority(run)
    places = [
        (-priority(each), at)
        for at, each in enumerate(planned)
        if each.phase is Phase.QUEUED and lane_key(each) == lane
    ]
    at = next((at for at, each in enumerate(planned) if each is run), len(planned))
    return sum(place < (own, at) for place in places)


def _others_of_plan(planned: Sequence[Run], run: Run) -> str | None:
    """Why others of its plan work before it; None = they need not."""
    step = run.resolved.step
    if step is None or step.jobs is None:
        return None
    ahead = sum(
        each.phase is Phase.QUEUED and (-priority(each), at) < (-priority(run), step.position)
        for at, each in enumerate(planned)
    )
    return None if ahead < step.jobs else f"waits for others: at most {step.jobs} work at once"


def _narrowed(run: Run) -> Budget | None:
    """Its own limits, and what it shares where it has none."""
    own, shared = run.spec.budget, run.resolved.shared_budget
    if own is None or shared is None:
        return own or shared
    given = {name: value for name, value in msgspec.structs.asdict(own).items() if value}
    return msgspec.structs.replace(shared, **given)


def _budget(run: Run) -> wire.PlannedBudget | None:
    found = _narrowed(run)
    if found is None:
        return None
    return made(wire.PlannedBudget, found, shared=run.resolved.shared_budget is not None)


def _together(runs: Sequence[Run], plan: Budget | None, of: Dimension) -> Any:
    """What all of them may use; None = something is not bounded, or reports no usage."""
    if not all(run.resolved.abilities.usage for run in runs):
        return None
    own = [of.limit(run.spec.budget) for run in runs]
    shared = [of.limit(run.resolved.shared_budget) for run in runs]
    known = [] if (most := of.limit(plan)) is None else [most]
    if None not in own:
        known.append(sum(each for each in own if each is not None))
    elif all(mine is not None or ours is not None for mine, ours in zip(own, shared, strict=True)):
        # A run's own limit takes from what is left above, so the largest of those bounds them all.
        known.append(max(each for each in shared if each is not None))
    return min(known, default=None)


def checks_of(contract: Contract | None) -> Iterator[wire.PlannedCheck]:
    """What a contract will check, in its order."""
    if contract is None:
        return
    targets = (
        (CheckType.ARTIFACT, [each.path for each in contract.artifacts]),
        (CheckType.CHANGE, [*contract.must_change, *contract.must_not_change]),
        (CheckType.COMMAND, contract.commands),
        (CheckType.COMPLETION_REPORT, [REPORT] * contract.require_completion_report),
        (CheckType.JUDGE, [] if contract.judge is None else [contract.judge.agent_id]),
    )
    for kind, found in targets:
        for each in found:
            yield made(wire.PlannedCheck, type=kind, target=each)
