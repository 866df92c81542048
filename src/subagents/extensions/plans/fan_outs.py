"""Spawns the runs of ``for_each`` once their list is there.

They are stored in the commit that says so, as children of the run that stands for all of them: a
crash before it leaves the list unread, and one after it leaves nothing to do. What they may do was
decided with that run, whose agent, access and variables they have.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

import msgspec

from subagents.domain.rules import ceilings, contract
from subagents.domain.rules.budgets import reservations
from subagents.domain.run.events import ChildSpawned, FannedOut, Spawned
from subagents.domain.run.linked_runs import Child
from subagents.domain.run.outcome import OK
from subagents.domain.run.run import RULES, Phase, Run
from subagents.domain.run.spec import PlanStep, Resolved, RunSpec
from subagents.domain.run.values import RunId, SessionKey, replace
from subagents.domain.text.announcement import append_children, result_for_others
from subagents.engine.engine import Engine, HasSession, Part
from subagents.engine.kernel.addresses import ancestors
from subagents.errors import (
    Elsewhere,
    Fenced,
    NotFound,
    StoreUnavailable,
    SubagentsError,
    UsageError,
)
from subagents.extensions.plans.plans import ITEMS_FROM, Plans
from subagents.extensions.plans.result_items import items_of, specs_of
from subagents.ports import Batch
from subagents.text import counted

log = logging.getLogger(__name__)

LIST_BYTES_MAX: Final = 16 * 1024 * 1024


class _Item(NamedTuple):
    run_id: RunId
    spec: RunSpec
    resolved: Resolved


class _List(NamedTuple):
    new: list[_Item]
    done: list[Run]
    """Runs of the fan-out that is retried, which ended ok."""


def is_due(run: Run) -> bool:
    """Whether a run with ``for_each`` waits for nothing more, so that its list is to be read."""
    if run.phase is not Phase.WAITING or run.control.paused:
        return False
    # Its gate is asked in the step in which the last of those runs ended.
    return not run.waiting.dependencies.active and not run.pending_requests


class FanOuts(Part):
    """See the module."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._ledger = engine, engine.ledger
        self._plans = Plans(engine.queries, engine.spawner)
        self._due: dict[RunId, None] = {}
        self._working: asyncio.Task[None] | None = None

    async def read(self, has: HasSession) -> Callable[[], None]:  # noqa: ARG002
        """See ``Part``: the runs alone say what is due."""
        return lambda: self.on_commit(Batch(runs=dict(self._ledger.published)))

    def on_commit(self, batch: Batch) -> None:
        """See ``Part``."""
        for run_id, run in batch.runs.items():
            # No call for the others: this is done for every run of every commit.
            if run.spec.for_each is not None and is_due(run):
                self._due[run_id] = None
                if self._working is None or self._working.done():
                    self._working = self._engine.keep(self.run, "fan-outs")

    async def run(self) -> None:
        """Read every list that is due."""
        while self._due:
            run_id = next(iter(self._due))
            run = self._ledger.published.get(run_id)
            if run is not None and is_due(run):
                await self._fan_out(run)
            self._due.pop(run_id, None)

    async def _fan_out(self, run: Run) -> None:
        try:
            self._store(run, await self._read(run))
        except (StoreUnavailable, Fenced, Elsewhere):
            raise  # nothing was stored: it is still due
        except SubagentsError as error:
            label, hint = run.waiting.dependencies[0].label, f"; {error.hint}" if error.hint else ""
            self._refuse(run, f'the list of for_each, from run "{label}": {error.message}{hint}')
        except Exception as error:
            # One must not keep the others from theirs.
            log.exception("the list of %s", run.id)
            self._refuse(run, repr(error))
        await self._ledger.committed()

    def _refuse(self, run: Run, error: str) -> None:
        if is_due(self._ledger.live.get(run.id, run)):
            now = self._engine.adapters.clock.now_ms()
            self._ledger.apply_now(run.id, FannedOut(at_ms=now, error=error))

    # -- the list ----------------------------------------------------------------------------

    async def _read(self, run: Run) -> _List:
        specs = specs_of(run.spec, items_of(await self._text(run)))
        step = await self._step(run)
        before = {_work(each.spec): each for each in await self._before(run, step)}
        new = [
            await self._item(run, spec, replace(step, position=step.position + at))
            for at, spec in enumerate(specs)
            if _work(spec) not in before
        ]
        brought = await self._engine.spawner.environments.of(run)
        if brought is not None and new:
            environments = self._engine.adapters.logs.environments
            keep = partial(environments.keep, [each.run_id for each in new], brought)
            await self._engine.adapters.off_loop(keep)
        return _List(new, [before[key] for key in map(_work, specs) if key in before])

    async def _text(self, run: Run) -> str:
        source = await self._engine.queries.run(run.waiting.dependencies[0].run_id)
        file = None if run.spec.for_each is None else run.spec.for_each.file
        if file is not None:
            opened = await self._engine.artifacts.open(source, file)
            size, pages = opened.size, opened.pages(0, LIST_BYTES_MAX)
        elif source.result is None:
            raise UsageError("it has no result")
        else:
            results = self._engine.results
            size, pages = results.size(source), results.pages(source, limit=LIST_BYTES_MAX)
        found = b"".join([page async for page in pages])
        if size > LIST_BYTES_MAX:
            raise UsageError("is larger than 16 MiB")
        try:
            return found.decode()
        except UnicodeDecodeError as error:
            raise UsageError(f"is no UTF-8: {error}") from error

    async def _step(self, run: Run) -> PlanStep:
        """That of the first item: behind those of the plan, and those of earlier fan-outs in it."""
        own, first = run.resolved.step, run
        with suppress(NotFound):
            while own is None and first.lineage.retry_from is not None:
                first = await self._engine.queries.run(first.lineage.retry_from)
        own = own or PlanStep(plan=first.id, position=0)
        most = run.spec.for_each and run.spec.for_each.max_parallel
        jobs = min((each for each in (own.jobs, most) if each), default=None)
        return replace(own, position=ITEMS_FROM * (own.position + 1), jobs=jobs)

    async def _before(self, run: Run, step: PlanStep) -> list[Run]:
        """The items that ended ok of the run of which this one is a retry."""
        if run.lineage.retry_from is None:
            return []
        plans = await self._plans.plans([step.plan])
        ended = [each for plan in plans for each in plan.steps if each.outcome == OK]
        places = range(step.position, step.position + ITEMS_FROM)
        return [
            each for each in ended if each.resolved.step and each.resolved.step.position in places
        ]

    async def _item(self, run: Run, spec: RunSpec, step: PlanStep) -> _Item:
        """With its place, which is checked as that of a spawn is."""
        resolved = run.resolved
        run_id, label = self._engine.adapters.ids.run_id(), spec.label or resolved.label
        if spec.verification is not None:
            within = None if resolved.contract_root is None else resolved.cwd
            contract.validate(spec.verification, commands_allowed=True, within=within)
        resolved = replace(resolved, label=label, fallback=None, step=step)
        if resolved.worktree is not None:
            is_here = resolved.place is None
            planned = await self._engine.workspaces.plan(
                spec, resolved.project, run_id=run_id, label=label, is_here=is_here
            )
            access, root = resolved.access, resolved.contract_root
            if root is not None:
                realpath = partial(os.path.realpath, planned.cwd)
                root = await self._engine.adapters.off_loop(realpath)
            resolved = replace(
                resolved,
                cwd=planned.cwd,
                worktree=planned.tree,
                access=None if access is None else ceilings.placed(access, planned.cwd),
                contract_root=root,
            )
        return _Item(run_id, spec, resolved)

    # -- storing -----------------------------------------------------------------------------

    def _store(self, before: Run, found: _List) -> None:
        """All of it, in one step without an ``await``."""
        run = self._ledger.live.get(before.id, before)
        if not is_due(run):
            return  # cancelled or paused meanwhile
        now = self._engine.adapters.clock.now_ms()
        above = [run, *ancestors(self._ledger.live, run)]
        reservations.check(above, [None] * len(found.new), now_ms=now)
        for each in found.new[:1]:
            self._engine.shared_spending.check(each.spec, each.resolved)
        shared = reservations.left_for(above, found.new[0].spec, now_ms=now) if found.new else None
        lists = run.waiting.dependencies if run.spec.include_dependency_result else ()
        said = FannedOut(at_ms=now, items=len(found.new), text=_text_of(found))
        self._ledger.apply_now(run.id, said)
        for run_id, spec, resolved in found.new:
            reserved = reservations.reserved(spec)
            child = Child(run_id=run_id, label=resolved.label, committed=reserved)
            self._ledger.apply_now(run.id, ChildSpawned(at_ms=now, child=child))
            key = f"agent:{resolved.agent_id}:subagent:{self._engine.adapters.ids.session_uuid()}"
            spawned = Spawned(
                at_ms=now,
                run_id=run_id,
                spec=spec,
                resolved=replace(resolved, shared_budget=shared),
                requester=run.session.first_key,
                requester_run=run.id,
                # No agent is between them: its own may spawn what one of its parent might.
                depth=run.lineage.depth,
                session_key=SessionKey(key),
                dependencies=tuple(lists),
                rules=RULES,
            )
            self._ledger.apply_now(run_id, spawned)


def _work(spec: RunSpec) -> tuple[object, ...]:
    """What makes two runs the same work, checked in the same way; of one list no two are."""
    return spec.label, spec.task, msgspec.json.encode(spec.verification)


def _text_of(found: _List) -> str:
    text, result_of = counted(len(found.new) + len(found.done), "item"), result_for_others
    done = tuple(
        Child(
            run_id=each.id, label=each.resolved.label, outcome=each.outcome, result=result_of(each)
        )
        for each in found.done
    )
    return append_children(f"{text}, {len(done)} done before", done) if done else text
