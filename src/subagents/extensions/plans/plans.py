"""Plans: batches with an id and a name, whose steps are looked at, waited for and retried together.

A plan is nothing besides its runs: each knows which step of which plan it is (``PlanStep``), and
what a plan came to is read from them.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from subagents.domain.run.run import Run
from subagents.domain.run.spec import BATCH_RUNS_MAX, PlanStep
from subagents.domain.run.values import RunId, replace
from subagents.engine.runs.queries import Queries
from subagents.engine.runs.spawn import Receipt, Spawner
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.errors import Conflict, NotFound
from subagents.ports import Place, RunFilter

PAGE: Final = 500
ITEMS_FROM: Final = BATCH_RUNS_MAX
"""The places of runs for items begin here: so many for each step, which has fewer."""


class Plan(NamedTuple):
    """A plan as its runs tell it."""

    id: str
    name: str | None
    steps: tuple[Run, ...]
    """The newest run of each step, in the order of the plan."""
    instead: Mapping[RunId, RunId] = {}
    """Of steps that were retried: the newest run, by each one before."""


class Plans:
    """See the module."""

    def __init__(self, queries: Queries, spawner: Spawner) -> None:
        self._queries = queries
        self._spawner = spawner

    async def plan(self, plan_id: str) -> Plan:
        """One plan.

        Raises:
            NotFound: None of its runs is stored any more.
        """
        found = await self.plans([plan_id])
        if not found:
            raise NotFound(f'no plan "{plan_id}"', hint="see: subagents plan list")
        return found[0]

    async def plans(self, plan_ids: Sequence[str]) -> list[Plan]:
        """Those of these plans of which a run is still stored, in this order.

        Their steps are asked for together: so many plans cost no more calls than so many steps.
        """
        newest: dict[str, dict[int, Run]] = {plan_id: {} for plan_id in plan_ids}
        instead: dict[str, dict[RunId, RunId]] = {plan_id: {} for plan_id in plan_ids}
        where: RunFilter | None = RunFilter(steps_of=tuple(plan_ids), archived=True, limit=PAGE)
        while where is not None and plan_ids:
            page = await self._queries.runs(where)
            for run in page:
                step = _step(run)
                counts = newest[step.plan].setdefault(step.position, run)
                if counts.id != run.id:
                    instead[step.plan][run.id] = counts.id
            last = page[-1] if len(page) == PAGE else None
            behind = None if last is None else Place(last.times.created_at_ms, last.id)
            where = None if behind is None else replace(where, behind=behind)
        return [
            Plan(
                plan_id,
                _step(newest[plan_id][min(newest[plan_id])]).name,
                tuple(newest[plan_id][at] for at in sorted(newest[plan_id])),
                instead[plan_id],
            )
            for plan_id in plan_ids
            if newest[plan_id]
        ]

    async def retry(self, plan_id: str, context: SpawnContext) -> tuple[Receipt, ...]:
        """Start the failed steps again, and those that waited for them: all of them, or none.

        Raises:
            Conflict: A step has not ended, or every one ended ok; nothing was stored.
            SubagentsError: As ``Spawner.spawn_batch`` raises it; nothing was stored.
        """
        plan = await self.plan(plan_id)
        live = [run for run in plan.steps if not run.is_settled]
        if live:
            raise Conflict(
                f"{len(live)} of the {len(plan.steps)} steps of plan {plan_id} have not ended",
                hint=f"subagents wait plan:{plan_id}, or: subagents cancel plan:{plan_id}",
            )
        due = _failed_with_dependants(plan)
        if not due:
            raise Conflict(f"every step of plan {plan_id} ended ok: there is nothing to retry")
        return await self._spawner.retry_all(due, context, instead=plan.instead)


def _step(run: Run) -> PlanStep:
    return run.resolved.step or PlanStep(plan=run.id, position=0)


def _failed_with_dependants(plan: Plan) -> list[Run]:
    """Steps that did not end ok, and all that waited for one of them, in the order of the plan."""
    steps = plan.steps
    waited_for = {
        run.id: {plan.instead.get(each.run_id, each.run_id) for each in run.waiting.dependencies}
        for run in steps
    }
    due: set[RunId] = {run.id for run in steps if run.outcome is None or not run.outcome.is_ok}
    # The step of which they are items starts those again that failed.
    due -= {run.id for run in steps if _step(run).position >= ITEMS_FROM}
    while True:
        more = {run.id for run in steps if run.id not in due and waited_for[run.id] & due}
        if not more:
            return [run for run in steps if run.id in due]
        due |= more
