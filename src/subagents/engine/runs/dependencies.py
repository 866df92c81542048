"""What a spawn waits for: found by name, refused in circles, taken over as it is at the commit."""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from subagents.domain.rules import admission
from subagents.domain.run.linked_runs import Dependency
from subagents.domain.run.run import Run
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import RunId, SessionKey
from subagents.domain.run.workspace import branch_left
from subagents.domain.text.announcement import result_for_others
from subagents.engine.kernel.addresses import ancestors
from subagents.engine.kernel.ledger import Ledger
from subagents.engine.runs.queries import Queries
from subagents.engine.runs.spawn_call import Draft
from subagents.errors import NotFound, UsageError


class Dependencies:
    """Looks dependencies up among the open runs, the ended ones and those of the same batch."""

    def __init__(self, ledger: Ledger, queries: Queries) -> None:
        self._ledger = ledger
        self._queries = queries

    async def find(self, drafts: Sequence[Draft], requester: SessionKey) -> dict[str, Dependency]:
        """Every dependency asked for, by the name it was asked by; ended ones have an outcome.

        Raises:
            NotFound: A name fits no run of this requester.
            UsageError: A label is used twice, or the batch waits for itself in a circle.
        """
        if len(drafts) == 1 and not drafts[0].asked.labels:
            return {}  # as most spawns are
        here: dict[str, RunId] = {}
        for each in (draft.spawned for draft in drafts if draft.spawned.spec.label):
            if each.resolved.label in here:
                raise UsageError(f'label "{each.resolved.label}" is used twice in this batch')
            here[each.resolved.label] = each.run_id

        async def is_own(run: Run) -> bool:
            return run.requester == requester

        names = dict.fromkeys(name for draft in drafts for name in draft.asked.labels)
        above = self._ancestors(requester) if names else {}
        found: dict[str, Dependency] = {}
        for name in names:
            if name in here:
                found[name] = Dependency(run_id=here[name], label=name)
                continue
            if name in above:
                own = next(
                    each.spawned.resolved.label for each in drafts if name in each.asked.labels
                )
                raise admission.circular((own, *above[name], own))
            try:
                run_id = await self._queries.resolve(name, requester, may_see=is_own)
                run = await self._queries.run(run_id)
            except NotFound as error:
                raise _not_found(name) from error
            if run.requester != requester:
                raise _not_found(name)
            found[name] = _dependency(run)
        dependencies_first(drafts, found)
        return found

    def _ancestors(self, requester: SessionKey) -> dict[str, tuple[str, ...]]:
        """Every name of the run that spawns and of those above it, with the labels down to it.

        They end only after what they spawn, so none can be waited for. An ancestor is no run of its
        descendant's, either, but "not found" would not say what is wrong.
        """
        found: dict[str, tuple[str, ...]] = {}
        path: tuple[str, ...] = ()
        own = self._ledger.live.get(self._queries.run_of(requester) or RunId(""))
        for run in () if own is None else (own, *ancestors(self._ledger.live, own)):
            path = (run.resolved.label, *path)
            for name in (run.id, run.session_key, run.resolved.label):
                found.setdefault(name, path)
        return found

    async def look_again(self, drafts: Sequence[Draft], found: dict[str, Dependency]) -> None:
        """Complete what ended, and left memory, while the caller was looking other things up."""
        # Each read takes time, in which others may end and leave.
        while gone := self.gone(drafts, found):
            for name in gone:
                found[name] = _dependency(await self._queries.run(found[name].run_id))

    def gone(self, drafts: Sequence[Draft], found: Mapping[str, Dependency]) -> list[str]:
        """The names of dependencies that are neither open nor known to have ended."""
        here = {draft.spawned.run_id for draft in drafts}
        return [
            name
            for name, each in found.items()
            if each.outcome is None
            and each.run_id not in here
            and each.run_id not in self._ledger.live
        ]

    def newest(self, dependency: Dependency) -> Dependency:
        """The dependency as it is at this instant: it may have ended since it was looked up."""
        run = self._ledger.live.get(dependency.run_id)
        return dependency if run is None else _dependency(run)

    def waits(self, draft: Draft, found: Mapping[str, Dependency]) -> bool:
        """Whether a run of this draft, stored at this instant, would wait for another one."""
        return any(self.newest(found[name]).outcome is None for name in draft.asked.labels)

    def refuse_waiting_ancestors(
        self, parent: Run | None, draft: Draft, found: Mapping[str, Dependency]
    ) -> None:
        """A run may not wait for an ancestor, which itself waits for this run to end.

        Raises:
            UsageError: ``Circular dependency: a → b → a``.
        """
        if parent is None:
            return
        above = {parent.id, *(run.id for run in ancestors(self._ledger.live, parent))}

        def waits_for(run_id: RunId) -> list[RunId]:
            run = self._ledger.live.get(run_id)
            if run is None:
                return []
            unsettled = [d.run_id for d in run.waiting.dependencies if d.outcome is None]
            return unsettled + [child.run_id for child in run.active_children]

        wanted = [self.newest(found[name]) for name in draft.asked.labels]
        start = [dependency.run_id for dependency in wanted if dependency.outcome is None]
        path = admission.find_path(start, waits_for, above)
        if path is not None:
            live, own = self._ledger.live, draft.spawned.resolved.label
            labels = (live[each].resolved.label if each in live else each for each in path)
            raise admission.circular((own, *labels, own))


def dependencies_first(drafts: Sequence[Draft], found: Mapping[str, Dependency]) -> list[Draft]:
    """An order in which every run of the batch comes after those it waits for.

    Raises:
        UsageError: ``Circular dependency: a → b → a``.
    """
    if not found:
        return list(drafts)
    by_id = {draft.spawned.run_id: draft for draft in drafts}
    awaited = {
        run_id: [found[name].run_id for name in draft.asked.labels]
        for run_id, draft in by_id.items()
    }
    graph = {run_id: [each for each in ids if each in by_id] for run_id, ids in awaited.items()}
    try:
        return [by_id[run_id] for run_id in TopologicalSorter(graph).static_order()]
    except CycleError as error:
        # graphlib names each run before the one that waits for it.
        circle: list[RunId] = list(reversed(error.args[1]))
        raise admission.circular(
            by_id[run_id].spawned.resolved.label for run_id in circle
        ) from error


def _not_found(name: str) -> NotFound:
    return NotFound(
        f"Dependency run not found: {name}",
        hint="see: subagents list",
        details={"field": "dependsOn"},
    )


def asked_dependencies(spec: RunSpec) -> tuple[str, ...]:
    """Names of the runs to wait for, each once, in the order given."""
    listing = () if spec.for_each is None else (spec.for_each.run,)
    chained = (spec.chain_after,) if spec.chain_after is not None else ()
    return tuple(dict.fromkeys((*listing, *chained, *spec.depends_on)))


def _dependency(run: Run) -> Dependency:
    settled = run.outcome if run.is_settled else None
    return Dependency(
        run_id=run.id,
        label=run.resolved.label,
        outcome=settled,
        result=result_for_others(run) if settled is not None else None,
        left=branch_left(run.resolved.worktree, run.remains.changes) if settled else None,
    )
