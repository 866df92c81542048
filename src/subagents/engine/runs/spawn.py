"""Spawning: every guardrail first, then one commit, then the receipt.

What may need the disk or time (dependencies that ended long ago, schemas, the baseline of the
contract) is asked first; the decisions that two racing spawns must not both win (children,
idempotency) are taken and counted in one step without an ``await``.
"""

import asyncio
import os
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from msgspec import structs

from subagents.config import agent_cards
from subagents.config.settings import Settings
from subagents.domain.lifecycle import open_questions
from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.rules import admission, ceilings, continuation, contract, idempotency
from subagents.domain.rules.budgets import reservations
from subagents.domain.rules.places import check_place
from subagents.domain.rules.tool_kinds import intersection, offers
from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.events import ChildSpawned, Continued, Dismissed, Spawned
from subagents.domain.run.linked_runs import Child, Dependency
from subagents.domain.run.run import RULES, Phase, Run
from subagents.domain.run.spec import (
    BATCH_RUNS_MAX,
    Cleanup,
    OnDependencyFailure,
    PlanBudget,
    PlanStep,
    Resolved,
    RunSpec,
    ScheduledTime,
)
from subagents.domain.run.values import RunId, SessionKey, Value, replace
from subagents.engine.attempts.shared_spending import SharedSpending
from subagents.engine.attempts.workspaces import PlannedWorkspace, Workspaces
from subagents.engine.kernel.addresses import ancestors
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.runs import grants, session_chain
from subagents.engine.runs.agent_choice import AgentChoice
from subagents.engine.runs.dependencies import Dependencies, asked_dependencies, dependencies_first
from subagents.engine.runs.disk_probes import PROBES_MAX, CachedProbe
from subagents.engine.runs.environments import Environments, PassesProvider
from subagents.engine.runs.grants import Grants, ProofOf
from subagents.engine.runs.idempotency_keys import IdempotencyKeys
from subagents.engine.runs.queries import Queries
from subagents.engine.runs.spawn_call import (
    NOTHING_BESIDE,
    Beside,
    Draft,
    PlanAsked,
    RunAsked,
    SpawnCall,
    SpawnContext,
    Trial,
)
from subagents.engine.verification.verifier import Verifier, check_schemas
from subagents.engine.verification.work_root import below, real, root_of
from subagents.errors import (
    Conflict,
    ContractError,
    CorruptState,
    Forbidden,
    StoreUnavailable,
    SubagentsError,
    UsageError,
    together,
)
from subagents.ports import EnvironmentLog, Ids, RunFilter, Runtime
from subagents.text import one_line

LABEL_FROM_TASK_CHARS: Final = 32
SPAWN_TOOL: Final = "sessions_spawn"
RETRIES_LOOKED_AT: Final = 500
"""How many runs of its requester are looked at for retries of what a retried run waited for."""


class Receipt(Value, frozen=True):
    """What an accepted spawn answers."""

    run: Run
    warnings: tuple[str, ...] = ()
    repeated: bool = False
    """The idempotency key was known: this is the run of the first call."""


class Spawner:
    """Turns specs into runs."""

    def __init__(
        self,
        kernel: Kernel,
        *,
        queries: Queries,
        ids: Ids,
        runtimes: Mapping[str, Runtime],
        verifier: Verifier,
        workspaces: Workspaces,
        shared_spending: SharedSpending,
        agents: AgentChoice,
        proof_of: ProofOf,
        environments: EnvironmentLog,
        passes_provider: PassesProvider,
    ) -> None:
        self._agents = agents
        self._ledger, self._store, self._off_loop, self._clock = kernel
        self._queries = queries
        self._ids = ids
        self._grants = Grants(kernel.off_loop, runtimes, proof_of)
        self._verifier = verifier
        self._workspaces = workspaces
        self._shared_spending = shared_spending
        self.environments = Environments(kernel.off_loop, environments, passes_provider)
        self._dependencies = Dependencies(kernel.ledger, queries)
        self.keys = IdempotencyKeys(kernel)
        self._probe = CachedProbe(kernel.off_loop, kernel.clock)

    async def spawn(
        self, spec: RunSpec, context: SpawnContext, environment: CallerEnvironment | None = None
    ) -> Receipt:
        """As ``spawn_batch``, for one run."""
        asked = RunAsked(spec=spec, environment=environment)
        return (await self.spawn_batch([asked], context))[0]

    async def retry(
        self, run_id: RunId, context: SpawnContext, *, key: str | None = None
    ) -> Receipt:
        """Start a new run from the stored parameters of an ended one, under today's guardrails.

        Of what it waited for and was retried since, it waits for the newest. With an idempotency
        key it is started once.

        Raises:
            Conflict: The run has not ended, or its task was deleted.
        """
        run, instead = await self._queries.run(run_id), dict[RunId, RunId]()
        others = RunFilter(requester=run.requester, archived=True, limit=RETRIES_LOOKED_AT)
        for each in await self._queries.runs(others) if run.waiting.dependencies else ():
            if (before := each.lineage.retry_from) is not None:
                instead.setdefault(before, instead.get(each.id, each.id))
        return (await self.retry_all([run], context, instead=instead, key=key))[0]

    async def retry_all(
        self,
        runs: Sequence[Run],
        context: SpawnContext,
        *,
        instead: Mapping[RunId, RunId] | None = None,
        key: str | None = None,
    ) -> tuple[Receipt, ...]:
        """Start new runs from the stored parameters of ended ones: all of them, or none.

        Those that waited for each other do so again. Steps of a plan stay steps of it, under what
        is left of its budget.

        Args:
            runs: Ended ones.
            context: Of whoever retries; the directory is that of the runs.
            instead: Which run to wait for now where one waited for another.
            key: The idempotency key of the new run, where it is one.

        Raises:
            Conflict: One has not ended, or its task was deleted.
        """
        for run in runs:
            _check_retry(run)
        # Those that were given none have none that is theirs alone, and none waits for them.
        now = {run.id: run.spec.label for run in runs if run.spec.label}
        moved = instead or {}
        is_alone = len(runs) == 1
        asked = []
        for run in runs:
            after = tuple(
                now.get(newest := moved.get(each.run_id, each.run_id), newest)
                for each in run.waiting.dependencies
            )
            each_of = run.spec.for_each
            spec = replace(
                run.spec,
                for_each=None if each_of is None else replace(each_of, run=after[0]),
                agent_id=run.resolved.agent_id,
                cwd=run.spec.cwd if is_alone or run.spec.continues else run.resolved.project,
                chain_after=None,
                depends_on=after,
                idempotency_key=key,
            )
            environment = await self.environments.of(run) if context.is_operator else None
            asked.append(RunAsked(spec=spec, environment=environment, repeats=run))
        made = await self.spawn_batch(asked, replace(context, cwd=runs[0].resolved.project))
        # Whoever starts it again knows how it ended: it is no failure that needs a person. Should
        # that not be noted, the new runs are started all the same.
        seen = Dismissed(at_ms=self._clock.now_ms(), by=context.session)
        failed = [run for run in runs if run.has_failed and not run.verification.dismissed_at_ms]
        noted = (self._ledger.apply(each.id, seen) for each in failed)
        await asyncio.gather(*noted, return_exceptions=True)
        return made

    async def spawn_batch(
        self,
        asked: Sequence[RunAsked],
        context: SpawnContext,
        *,
        plan: PlanAsked | None = None,
        scheduled: ScheduledTime | None = None,
        beside: Beside = NOTHING_BESIDE,
        trial: Trial | None = None,
    ) -> tuple[Receipt, ...]:
        """Store all of these runs, or none, and return their receipts.

        Args:
            asked: At most 1,000; they may name each other by label.
            context: Who spawns, and what holds there.
            plan: They are the steps of this plan; None = of none.
            scheduled: For which time of which schedule; None = for none.
            beside: What is decided in the step that stores the runs.
            trial: Store nothing; () for one that could come later. None = this is none.

        Raises:
            UsageError: A parameter; nothing was stored.
            Forbidden: A guardrail, named; nothing was stored.
            IdempotencyConflict: A key stands for another request; nothing was stored.
            NotFound: An agent or dependency; nothing was stored.
            StoreUnavailable: The database cannot take new runs now; nothing was stored.
            Elsewhere: Another node has this session; nothing was stored.
        """
        partition = await self._require_room(len(asked), context.session)
        parent = self._parent(context.session, partition)
        call = SpawnCall(
            context=context,
            plan=plan,
            scheduled=scheduled,
            beside=beside,
            trial=trial,
            partition=partition,
            parent=parent,
            inbox=parent.session.first_key if parent is not None else context.session,
            is_free=context.is_operator and parent is None,
            digests=_digests(asked, context.cwd, plan),
        )
        # Before anything is looked up: what was accepted once is answered, even if its agent or
        # directory is gone by now.
        if call.digests and (known := self.keys.of(call.digests, call.inbox)):
            return await self._repeated(asked, known, call)
        found = [await self._looked_up(each, call) for each in asked]
        before = [each.previous for each in found if each.previous is not None]
        if before and parent is None:
            bound = session_chain.bound_requester(before, is_alone=len(asked) == 1)
            call = replace(call, inbox=bound or call.inbox)
        found = await self._agents.choose(found, call)
        # What a dependency turns out to be is not known yet; it is counted again at the end.
        self._count(call, [bool(each.labels) for each in found])
        drafts = await _for_each(self._draft(each, call) for each in found)
        awaited = await self._dependencies.find(drafts, call.inbox)
        drafts = await _for_each(self._check_contract(draft, call) for draft in drafts)
        if trial is Trial.LATER:
            await self._dependencies.look_again(drafts, awaited)
            return ()
        if trial is None and call.is_free:
            # Durable before the runs are: after a crash in between the sweep forgets them.
            drafts = await self.environments.keep(drafts)
        try:
            if before or asked[0].repeats is not None:
                earlier = (each.asked.repeats or each.asked.previous for each in drafts)
                await self._shared_spending.recall(filter(None, earlier))
            if before:
                await session_chain.load_runs(self._ledger, before)
            # Each read takes time, in which others end and leave memory.
            while awaited and self._dependencies.gone(drafts, awaited):
                await self._dependencies.look_again(drafts, awaited)
                await session_chain.load_runs(self._ledger, before)
            # The same key may have come in while this call was looking things up.
            known = self.keys.of(call.digests, call.inbox) if call.digests else {}
            if not known:
                drafts, runs = self._decided(drafts, awaited, call)
        except SubagentsError:
            session_chain.evict_runs(self._ledger, before)
            await self.environments.drop(drafts)
            raise
        if known:
            session_chain.evict_runs(self._ledger, before)
            await self.environments.drop(drafts)
            return await self._repeated(asked, known, call)
        if trial is None:
            await self._ledger.committed()
        else:
            session_chain.evict_runs(self._ledger, before)
        stored = {run.id: run for run in runs}
        strange = partial(_strangers, awaited=awaited if call.plan is not None else {})
        # In the order in which they were asked for, not in that in which they wait for each other.
        return tuple(
            Receipt(
                run=self._ledger.published.get(run.id, run),
                warnings=(*reservations.warnings(run), *draft.warnings, *strange(draft)),
            )
            for draft in drafts
            for run in (stored[draft.spawned.run_id],)
        )

    async def _require_room(self, number: int, requester: SessionKey) -> int | None:
        """The partition of the requester, which is ours; None = everything is."""
        if not number:
            raise UsageError("nothing to spawn")
        if number > BATCH_RUNS_MAX:
            raise UsageError(f"batch has {number} runs, at most {BATCH_RUNS_MAX}")
        if not await self._probe.is_well("room", self._store.has_room):
            raise StoreUnavailable(
                "the disk of the database is almost full: no new runs are accepted",
                hint="free disk space; runs that were accepted continue",
            )
        return await self._ledger.partitions.require_session(requester)

    async def _repeated(
        self, asked: Sequence[RunAsked], known: Mapping[str, RunId], call: SpawnCall
    ) -> tuple[Receipt, ...]:
        """The runs of earlier calls by their keys, once those are durable; the others are new."""
        # A batch of which some came through, say, and was sent again with others.
        left = [each for each in asked if each.spec.idempotency_key not in known]
        others: tuple[Receipt, ...] = ()
        if left:
            others = await self.spawn_batch(left, call.context, plan=call.plan, trial=call.trial)
        await self._ledger.committed()
        spawned = iter(others)
        receipts = []
        for each in asked:
            run_id = known.get(each.spec.idempotency_key or "")
            if run_id is None:
                receipts.append(next(spawned))
            else:
                receipts.append(Receipt(run=await self._queries.run(run_id), repeated=True))
        return tuple(receipts)

    async def _looked_up(self, asked: RunAsked, call: SpawnCall) -> RunAsked:
        """With the run whose session it continues, and what it has from there."""
        spec, previous = asked.spec, None
        if spec.continues is not None:
            previous = await session_chain.previous(self._queries, spec.continues, call)
            spec = continuation.inherited(spec, previous)
        return replace(
            asked,
            spec=spec,
            previous=previous,
            mode=admission.resolve_mode(spec),
            labels=asked_dependencies(spec),
        )

    # -- guardrails, in order --------------------------------------------------------------

    def _parent(self, requester: SessionKey, partition: int | None) -> Run | None:
        """The run whose agent spawns; None = a top-level session."""
        if partition is not None:
            self._ledger.partitions.require(partition)  # it may have been given back meanwhile
        run_id = self._ledger.lanes.run_of(requester)
        parent = self._ledger.live.get(run_id) if run_id is not None else None
        if parent is None:
            if ":subagent:" in requester:
                raise Forbidden(f"session {requester} has ended", guardrail="session")
            return None
        if parent.lineage.judges is not None:
            raise Forbidden(
                f"run {parent.id} judges a contract, which it does by itself: it spawns nothing",
                guardrail="depth",
            )
        if parent.phase not in {Phase.SPAWNING, Phase.RUNNING} or parent.control.cancel is not None:
            raise Conflict(f"run {parent.id} is {parent.phase}: it can spawn no more")
        return parent

    def _count(self, call: SpawnCall, waits: Sequence[bool]) -> None:
        """Refuse what is too deep, or too much for an agent; what an operator spawns is queued.

        Args:
            call: Counted are the children of its inbox.
            waits: For each run asked for, whether it waits for others.
        """
        parent, settings = call.parent, call.context.settings
        depth = parent.lineage.depth if parent is not None else 0
        admission.check_depth(depth, settings.defaults.max_spawn_depth)
        if call.is_free:
            return
        asked = admission.Children(active=waits.count(False), waiting=waits.count(True))
        most = settings.defaults.max_children_per_agent
        admission.check_children(self._ledger.lanes.children(call.inbox), asked, most)

    async def _draft(self, asked: RunAsked, call: SpawnCall) -> Draft:
        spec, previous, chosen = asked.spec, asked.previous, asked.chosen
        parent, settings = call.parent, call.context.settings
        if parent is not None and not offers(parent.resolved, SPAWN_TOOL):
            raise Forbidden(
                f"{SPAWN_TOOL} is not among the tools of run {parent.id} (toolsAllow, toolsDeny)",
                guardrail="tools",
            )
        if spec.for_each is not None and not call.is_free:
            admission.check_items(spec.for_each, settings.defaults.max_children_per_agent)
        wanted = spec.agent_id if chosen is None else chosen.agent_id
        agent_id, agent = self._grants.agent(wanted, call)
        cwd = spec.cwd or (agent.cwd or call.context.cwd)
        found = grants.ceilings_of(call.context.ceiling, parent, previous)
        is_apart = grants.shall_be_apart(spec, agent, found)
        project = cwd if previous is None else previous.resolved.project
        if cwd and (is_apart or ceilings.is_kept_near(found)):
            # A link could lead out of what is seen or written, later or by another worker's hand.
            look = partial(grants.without_links, found, cwd, project)
            found, cwd, project = await self._off_loop(look)
        above = [run for run in (parent, previous) if run is not None]
        inherited = grants.inherited_tools(None if parent is None else parent.resolved, agent_id)
        if previous is not None:
            session_chain.check_same_worker(
                previous, agent_id, self._grants.runtime(agent_id, agent)
            )
            inherited = intersection(inherited, previous.resolved.effective_tools)
        worker = await self._grants.grant(
            spec,
            agent_id,
            agent,
            # To a ceiling, a session goes on where it was: a worktree is where it comes from.
            cwd=project,
            found=found,
            may_ask=not above,
            inherited=inherited,
            deny=[name for run in above for name in run.resolved.tools_deny],
        )
        label_of_place = spec.place or agent.place
        if label_of_place is not None:
            check_place(label_of_place, self._ledger.partitions.labels)
        run_id, label = self._ids.run_id(), spec.label or label_from(spec, agent_id)
        here, due = label_of_place is None, bool(call.scheduled and not call.scheduled.by_hand)
        place = await self._place(spec, cwd, run_id, label, previous, is_here=here, is_due=due)
        depth = session_chain.depth(parent, previous)
        # Who else there is costs words in each prompt: only a worker that may spawn is told.
        may_spawn = depth < settings.defaults.max_spawn_depth
        fleet = agent_cards.rows(settings, agent_id) if may_spawn else ()
        theirs = worker.resolved(spec, settings, cwd=place.cwd, fleet=fleet)
        resolved = Resolved(
            **structs.asdict(theirs),
            mode=asked.mode,
            label=label,
            cwd=place.cwd,
            worktree=place.tree,
            place=label_of_place,
            max_spawn_depth=settings.defaults.max_spawn_depth,
            max_announce_chars=settings.defaults.max_announce_chars,
            max_transcript_mb=settings.defaults.max_transcript_mb,
            chosen=chosen,
        )
        if spec.verification is not None and spec.verification.judge is not None:
            judge = await self._grants.judge(spec.verification.judge, resolved, call)
            resolved = replace(resolved, judge=judge)
        if spec.on_dependency_failure is OnDependencyFailure.FALLBACK:
            # The model is the first agent's.
            fallback = await self._grants.fallback(
                replace(spec, model=None), resolved, call, found=found, inherited=inherited
            )
            resolved = replace(resolved, fallback=fallback)
        if texts := spec.on_limit or agent.on_limit:
            steps = await self._grants.at_limits(
                texts, spec, resolved, call, found=found, inherited=inherited
            )
            resolved = replace(resolved, on_limit=steps)
        spawned = Spawned(
            at_ms=self._clock.now_ms(),
            run_id=run_id,
            spec=spec,
            resolved=resolved,
            requester=call.inbox,
            requester_run=parent.id if parent is not None else None,
            depth=depth,
            session_key=SessionKey(f"agent:{agent_id}:subagent:{self._ids.session_uuid()}"),
            retry_from=None if asked.repeats is None else asked.repeats.id,
            continues=session_chain.continues(previous),
            rules=RULES,
        )
        return Draft(
            asked=asked,
            spawned=spawned,
            question=worker.question,
            warnings=(*place.warnings, *grants.narrowed(worker.access), *worker.unproven),
        )

    async def _place(
        self,
        spec: RunSpec,
        cwd: str,
        run_id: RunId,
        label: str,
        previous: Run | None,
        *,
        is_here: bool,
        is_due: bool,
    ) -> PlannedWorkspace:
        """Where the run works: in ``cwd``, or in its own worktree, made when it starts.

        Without its directory a start fails on another node, and when due: nobody hears a refusal.
        """
        before = None if previous is None else previous.resolved
        if before is not None and before.worktree is not None and cwd == before.cwd:
            # Not looked at: after a while the tree may be gone, and is then made again.
            return PlannedWorkspace(cwd=cwd, tree=before.worktree)
        if not cwd:
            raise UsageError(
                "cwd is required: neither the call nor the agent's configuration names one",
                hint="give cwd, or set agents.<id>.cwd",
                details={"field": "cwd"},
            )
        directory = _plain(cwd)
        if not directory.startswith("/"):
            raise UsageError(f'cwd must be absolute, not "{cwd}"', details={"field": "cwd"})
        if is_here and not await self._probe.is_well(directory, partial(os.path.isdir, directory)):
            if is_due:
                return PlannedWorkspace(cwd=directory)
            raise UsageError(f'cwd "{cwd}" is not a directory', details={"field": "cwd"})
        return await self._workspaces.plan(
            spec, directory, run_id=run_id, label=label, is_here=is_here
        )

    async def _check_contract(self, draft: Draft, call: SpawnCall) -> Draft:
        """Refuse a contract that cannot run; look at its files before any work."""
        wanted = draft.spawned.spec.verification
        if wanted is None:
            return draft
        settings, parent, before = call.context.settings, call.parent, draft.asked.previous
        is_inherited = before is not None and wanted is before.spec.verification
        # Whoever goes on with the session: the contract is that of whoever gave it.
        is_trusted = call.is_free or (
            before is not None and is_inherited and before.resolved.commands_trusted
        )
        spawned = draft.spawned
        judge = None if wanted.judge is None else wanted.judge.verification
        contract.validate(
            wanted,
            commands_allowed=is_trusted
            or settings.verification.dangerously_allow_validation_commands,
            within=None if is_trusted else spawned.resolved.cwd,
        )
        if not is_inherited:
            grants.check_within_reach(spawned, previous=before)
        own = () if judge is None else (judge,)
        if is_trusted:
            commands = any(each.commands for each in (wanted, *own))
            draft = draft.with_resolved(commands_trusted=commands)
        elif any(each.names_files for each in (wanted, *own)):
            # Where the caller is, or its run works.
            roots = [call.context.cwd]
            if parent is not None:
                roots = [parent.resolved.cwd, parent.resolved.project]
            if before is not None and is_inherited:
                roots.append(before.resolved.project)
            root = await self._contract_root(spawned.resolved, settings, roots)
            draft = draft.with_resolved(contract_root=root)
        spawned = draft.spawned
        for field, checks in (("verification", wanted), (contract.JUDGES_OWN, judge)):
            if checks is not None and checks.has_patterns:
                await self._off_loop(partial(check_schemas, checks, field=field))
        repeated = draft.asked.repeats
        if repeated is not None and (repeated.outcome is None or repeated.outcome.is_ok):
            repeated = None
        earlier = before if is_inherited else repeated
        if earlier is not None and earlier.verification.baseline is not None:
            # The same promise goes on: what its session, or the run that failed, has done for it
            # so far counts.
            record = earlier.verification
            spawned = replace(spawned, baseline=record.baseline, left=record.left)
            return replace(draft, spawned=spawned)
        if spawned.resolved.worktree is not None or spawned.resolved.place is not None:
            return draft  # not made yet, or not known where: looked at when it is
        # For its warnings alone: what others write before it starts is not its work.
        found = await self._verifier.before(wanted, root_of(spawned.resolved))
        told = () if draft.asked.labels else contract.old_files(wanted, found.baseline)
        return replace(
            draft,
            spawned=replace(spawned, vacuous=found.is_vacuous),
            warnings=(*draft.warnings, *told),
        )

    async def _contract_root(
        self, resolved: Resolved, settings: Settings, caller_roots: Sequence[str]
    ) -> str:
        """The real directory to which the checks of an agent's contract are kept.

        Checks read with the rights of the daemon, and their verdicts tell of what they read. So
        an agent has them where it works itself, or where the configuration lets its worker work.

        Raises:
            ContractError: The run works elsewhere.
        """
        own = settings.agent(resolved.agent_id).cwd
        roots = [each for each in (*caller_roots, own) if each]
        if resolved.place is None:
            root = await self._off_loop(lambda: below(resolved.project, roots, real))
        else:
            root = below(resolved.project, roots)  # its links are seen where it is, and refused
        if root is None:
            places = " or ".join(dict.fromkeys(roots)) or "a directory that is not known here"
            raise ContractError(
                f"verification needs a cwd below {places}, not {resolved.project}: an agent's"
                " contract tells of no files elsewhere",
                hint="leave verification out, or ask the user to set"
                f" agents.{resolved.agent_id}.cwd",
            )
        if resolved.cwd == resolved.project:
            return root
        return await self._off_loop(lambda: real(resolved.cwd))

    # -- storing ---------------------------------------------------------------------------

    def _decided(
        self, drafts: list[Draft], awaited: Mapping[str, Dependency], call: SpawnCall
    ) -> tuple[list[Draft], list[Run]]:
        """The runs as they are stored now, or would be, and what their receipts say.

        No await in here: what was counted and what is stored are one step.
        """
        # Once more: it may have ended, or been cancelled, while this call looked things up.
        call = replace(call, parent=self._parent(call.context.session, call.partition))
        self._count(call, [self._dependencies.waits(draft, awaited) for draft in drafts])
        drafts = _under_shared_caps(_as_steps(drafts, call), call)
        call.beside.check()
        spawned = self._spawned(drafts, awaited, call.parent)
        if call.trial is None:
            return drafts, self._store_all(spawned, call)
        return drafts, [reduce(None, event).run for event in spawned]

    def _spawned(
        self, drafts: Sequence[Draft], found: Mapping[str, Dependency], parent: Run | None
    ) -> Iterator[Spawned]:
        """The first events of the runs, each after those of the runs it waits for.

        Each is made when it is asked for: what was stored before it may have ended already.
        """
        session_chain.check_free(self._ledger, drafts)
        for draft in drafts:
            self._dependencies.refuse_waiting_ancestors(parent, draft, found)
        now = self._clock.now_ms()
        above = self._above(parent)
        budgets = [draft.spawned.spec.budget for draft in drafts]
        reservations.check(above, budgets, now_ms=now)
        for draft in drafts:
            self._shared_spending.check(draft.spawned.spec, draft.spawned.resolved)
        for draft in dependencies_first(drafts, found):
            resolved = draft.spawned.resolved
            shared = reservations.left_for(above, draft.spawned.spec, now_ms=now)
            if shared is not None:
                resolved = replace(resolved, shared_budget=shared)
            run_id, asked = draft.spawned.run_id, draft.question
            yield replace(
                draft.spawned,
                at_ms=now,
                resolved=resolved,
                dependencies=tuple(self._dependencies.newest(found[n]) for n in draft.asked.labels),
                approval=None
                if asked is None
                else open_questions.by_person(run_id, asked, number=1, at_ms=now),
            )

    def _store_all(self, spawned: Iterator[Spawned], call: SpawnCall) -> list[Run]:
        parent = call.parent
        runs: list[Run] = []
        for event in spawned:
            spec, now = event.spec, event.at_ms
            if event.continues is not None:
                later = Continued(at_ms=now, run_id=event.run_id)
                # The first run of a session knows the newest, the one before only the next.
                for each in dict.fromkeys((event.continues.root, event.continues.run_id)):
                    if each in self._ledger.live:
                        self._ledger.apply_now(each, later)
            if parent is not None:
                # First: a run whose dependency had failed ends at once, and tells its parent so.
                child = Child(
                    run_id=event.run_id,
                    label=event.resolved.label,
                    committed=reservations.reserved(spec),
                )
                self._ledger.apply_now(parent.id, ChildSpawned(at_ms=now, child=child))
            run = self._ledger.apply_now(event.run_id, event)
            runs.append(run)
            if spec.idempotency_key is not None:
                key = spec.idempotency_key
                self.keys.remember(call.inbox, key, run.id, digest=call.digests[key])
        call.beside.note(runs)
        return runs

    def _above(self, parent: Run | None) -> list[Run]:
        """The run that spawns and the runs above it, the nearest first."""
        if parent is None:
            return []
        found = [parent, *ancestors(self._ledger.live, parent)]
        upper = found[-1].lineage.requester_run
        if upper is not None and upper in self._ledger.aside:
            # What is left of its budget, which counts for all below it, is not known.
            raise CorruptState(
                f"run {upper}, which is above this one, is set aside: {self._ledger.aside[upper]}",
                hint="see: subagents doctor",
                details={"runId": upper},
            )
        return found


async def _for_each(drafts: Iterable[Awaitable[Draft]]) -> list[Draft]:
    """All of them, one after the other.

    Raises:
        SubagentsError: Some are refused: the first one, whose details name them all.
    """
    found: list[Draft] = []
    refused: dict[int, SubagentsError] = {}
    for at, draft in enumerate(drafts):
        try:
            found.append(await draft)
        except SubagentsError as error:
            refused[at] = error
    if refused:
        raise together(refused, of=len(found) + len(refused))
    return found


def _digests(asked: Sequence[RunAsked], cwd: str, plan: PlanAsked | None) -> dict[str, str]:
    """Of what is asked for under each idempotency key.

    Raises:
        UsageError: One stands for two runs.
    """
    keyed = [
        (each.spec.idempotency_key, each.spec)
        for each in asked
        if each.spec.idempotency_key is not None
    ]
    if not keyed:
        return {}
    budget = None if plan is None else plan.budget
    found = {key: idempotency.digest_of(spec, cwd=cwd, plan=budget) for key, spec in keyed}
    if len(found) != len(keyed):
        raise UsageError("an idempotencyKey is used twice in this batch")
    return found


def _check_retry(run: Run) -> None:
    """Raise Conflict unless it ended and still says what it was to do."""
    if not run.is_settled:
        raise Conflict(f"run {run.id} is {run.phase}; cancel it first")
    if run.times.erased_at_ms is not None:
        raise Conflict(
            f"the task of run {run.id} was deleted when it ended (cleanup: delete)",
            hint="spawn a new run with the task",
        )


def _as_steps(drafts: list[Draft], call: SpawnCall) -> list[Draft]:
    """Each as the step of the plan that it is, or that the run was which it repeats."""
    plan, is_new = call.plan, drafts[0].asked.repeats is None
    if plan is None and call.scheduled is None and is_new:
        return drafts
    first = drafts[0].spawned.run_id
    found = []
    for at, draft in enumerate(drafts):
        repeats = draft.asked.repeats
        step = None if repeats is None else repeats.resolved.step
        if plan is not None:
            step = PlanStep(plan=first, position=at, name=plan.name, jobs=plan.jobs)
        found.append(draft.with_resolved(step=step, scheduled=call.scheduled))
    said = () if plan is None else _said_of_all(found, plan)
    found[0] = replace(found[0], warnings=(*found[0].warnings, *said))
    return found


def _strangers(draft: Draft, awaited: Mapping[str, Dependency]) -> Iterator[str]:
    """Of labels that a plan has not itself: a step of it may have been meant that is not there."""
    for label in draft.asked.labels if awaited else ():
        if (found := awaited[label]).outcome is not None and label != found.run_id:
            yield f'"{label}" is no run of this plan, but {found.run_id}, which has ended'


def _said_of_all(drafts: Sequence[Draft], plan: PlanAsked) -> Iterator[str]:
    every = [each.spawned.resolved for each in drafts]
    lane, slots = every[0].lane, max(each.lane_slots for each in every)
    if plan.jobs is not None and slots < min(plan.jobs, len(drafts)):
        yield (
            f'lane "{lane}" has {slots} slots, so at most {slots} work at once and not {plan.jobs} '
            "(max_concurrent, or the slots of [lanes], in subagents.toml)"
        )
    unsure = {reservations.warning(plan.budget, each.runtime, each.abilities) for each in every}
    if len(unsure) == 1:
        yield from filter(None, unsure)


def _under_shared_caps(drafts: list[Draft], call: SpawnCall) -> list[Draft]:
    """With what decides under which caps they fall: those above a run hold for it, too.

    Raises:
        UsageError: Its plan has a budget already.
    """
    parent, plan = call.parent, call.plan
    above = None if parent is None else parent.resolved
    share = None
    if plan is not None and plan.budget is not None:
        share = PlanBudget(id=drafts[0].spawned.run_id, budget=plan.budget)
    if above is not None and above.plan is not None:
        if share is not None:
            raise UsageError(
                "budget: the plan to which this run belongs has a budget already, which holds for "
                "the new runs, too; give none",
                details={"field": "budget"},
            )
        share = above.plan
    earlier = [each.asked.repeats or each.asked.previous for each in drafts]
    if above is None and share is None and not any(earlier):
        return drafts
    tags = () if parent is None or above is None else (*parent.spec.tags, *above.tags_above)
    found = []
    for draft, run in zip(drafts, earlier, strict=True):
        before = None if run is None else run.resolved.plan
        found.append(
            draft.with_resolved(plan=share or before, tags_above=tuple(dict.fromkeys(tags)))
        )
    return found


@lru_cache(maxsize=PROBES_MAX)
def _plain(directory: str) -> str:
    """Without doubled slashes and dots: one name for one place."""
    return str(Path(directory))


def label_from(spec: RunSpec, agent_id: str) -> str:
    """A label for a run that was given none: the beginning of its task, on one line.

    Labels are shown and stored in many places, also of other runs. So a task that will be deleted
    lends none: the label is then the agent's name.
    """
    if spec.cleanup is Cleanup.DELETE:
        return agent_id
    return one_line(spec.task, LABEL_FROM_TASK_CHARS) or "task"
