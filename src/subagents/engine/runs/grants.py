"""What the worker of a run may do: which agent it is, at which access, and with which tools.

Asked at the spawn, for the run and for the judge of its contract; the answers are stored with the
run, so that later edits of the configuration change nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import structs

from subagents.config.programs.scope_probes import Proof
from subagents.config.settings import DEFAULT_LANE, Agent, AgentIsolation, Settings
from subagents.domain.rules import admission, ceilings, contract
from subagents.domain.rules.provider_limits import wanted as wanted_at_limits
from subagents.domain.rules.tool_kinds import abroad
from subagents.domain.run.access import Access, AccessLevel, Ceiling
from subagents.domain.run.events import Spawned
from subagents.domain.run.run import Run
from subagents.domain.run.spec import (
    Abilities,
    Isolation,
    Judge,
    LimitStep,
    Mode,
    Network,
    Resolved,
    ResolvedAgent,
    RunSpec,
)
from subagents.domain.run.values import SessionKey, agent_of, replace
from subagents.domain.text import judge_task
from subagents.engine.runs.spawn_call import SpawnCall
from subagents.engine.verification.work_root import real
from subagents.errors import Forbidden, SubagentsError, UsageError
from subagents.ports import (
    Bound,
    Bounded,
    Limited,
    OffLoop,
    Runtime,
    abilities_of,
    access_of,
    check_servers,
    unserved,
)
from subagents.text import whole_ms

ProofOf = Callable[[str, Agent], Proof]
"""What probes found, by an agent's id and its table; blocking."""


class Grant(NamedTuple):
    """What the worker of one run may do, and how it is kept to it."""

    agent_id: str
    agent: Agent
    runtime: Runtime
    abilities: Abilities
    access: Access
    question: str | None
    """What a person must allow before it begins."""
    tools: tuple[str, ...] | None
    deny: tuple[str, ...]
    unproven: tuple[str, ...]
    """Warnings: what of it was never tried, or does not reach it."""

    def resolved(
        self, spec: RunSpec, settings: Settings, *, cwd: str, fleet: tuple[str, ...]
    ) -> ResolvedAgent:
        """What is stored of it with a run of these parameters that works in ``cwd``."""
        agent_id, agent = self.agent_id, self.agent
        lane = spec.lane or agent.lane or DEFAULT_LANE
        return ResolvedAgent(
            agent_id=agent_id,
            runtime=self.runtime.name,
            lane=lane,
            lane_slots=settings.lane_slots(lane),
            model=spec.model or agent.model,
            thinking=spec.thinking or agent.thinking,
            instructions=agent.instructions,
            timeout_ms=(
                settings.run_timeout_ms(agent_id)
                if spec.run_timeout_seconds is None
                else whole_ms(spec.run_timeout_seconds * 1000)
            ),
            effective_tools=self.tools,
            tools_deny=self.deny,
            access=ceilings.placed(self.access, cwd),
            grace_ms=round(agent.grace_seconds * 1000),
            abilities=self.abilities,
            alerts=agent.alerts.rules,
            fleet=fleet,
            options=agent.options,
        )


def agent_that_spawns(parent: Run | None, requester: SessionKey) -> str:
    """Id of the agent that spawns: that of a run, or the one that a session is named after."""
    return parent.resolved.agent_id if parent is not None else agent_of(requester)


class Grants:
    """Looks up agents, and narrows what they may do to what everybody above them may."""

    def __init__(
        self, off_loop: OffLoop, runtimes: Mapping[str, Runtime], proof_of: ProofOf
    ) -> None:
        self._off_loop = off_loop
        self._runtimes = runtimes
        self._proof_of = proof_of
        self._warned: set[str] = set()
        """Warnings about scopes that were never tried: each is given once."""

    def agent(self, wanted: str | None, call: SpawnCall) -> tuple[str, Agent]:
        """The agent asked for, by its id, or that of the caller, or the default one.

        Raises:
            UsageError: None was asked for, and there is no default.
            NotFound: It is not configured.
            Forbidden: The caller may not spawn it.
        """
        settings = call.context.settings
        # An operator may use any agent; whoever is an agent, those that its own table allows.
        if wanted is not None and call.is_free:
            agent_id = wanted.strip().lower()
            return agent_id, settings.agent(agent_id)
        own = agent_that_spawns(call.parent, call.inbox)
        own_agent = settings.agents.get(own)
        if wanted is None:
            has_runtime = own_agent is not None and own_agent.runtime is not None
            wanted = own if has_runtime else settings.defaults.agent
        if wanted is None:
            able = sorted(
                name for name, each in settings.agents.items() if each.runtime is not None
            )
            raise UsageError(
                "agentId is missing and agents.defaults.subagents.agent is not set",
                hint=f"agents that can work here: {', '.join(able) or 'none'}",
                details={"field": "agentId"},
            )
        wanted = wanted.strip().lower()
        if not call.is_free:
            allow = own_agent.subagents.allow_agents if own_agent is not None else ()
            admission.check_allowed(wanted, requester_agent=own, allow_agents=allow)
        return wanted, settings.agent(wanted)

    def runtime(self, agent_id: str, agent: Agent) -> Runtime:
        """What its workers run in.

        Raises:
            UsageError: It has none, or one that this version does not know.
        """
        if agent.runtime is None:
            raise UsageError(f"agents.{agent_id}.runtime is not set: it can call, but not work")
        runtime = self._runtimes.get(agent.runtime)
        if runtime is None:
            known = ", ".join(sorted(self._runtimes))
            raise UsageError(
                f'agents.{agent_id}.runtime "{agent.runtime}" is not available in this version '
                f"(available: {known})",
                hint="is it new? subagents down --yes && subagents up; else ask: subagents doctor",
            )
        return runtime

    async def grant(
        self,
        spec: RunSpec,
        agent_id: str,
        agent: Agent,
        *,
        cwd: str,
        found: Sequence[Ceiling],
        may_ask: bool,
        inherited: tuple[str, ...] | None,
        deny: Iterable[str],
    ) -> Grant:
        """What the agent's worker may do in this run, and how it is kept to it.

        Raises:
            Forbidden: It is more than it may have, or nothing can keep it to less.
            UsageError: Its runtime cannot do what is asked.
        """
        runtime = self.runtime(agent_id, agent)
        servers = ceilings.servers(agent.mcp_servers, found) if found else agent.mcp_servers
        if servers is not None:
            agent = _served(agent_id, agent, runtime, servers)
        runtime.check(agent.options)
        if agent.limits.given:
            await self._check_limits(agent_id, agent, runtime)
        bound, question = await self._bound(
            spec, agent_id, agent, runtime, cwd=cwd, found=found, may_ask=may_ask
        )
        # A runtime may keep a worker to its access by taking tools away: those count as denied.
        deny = tuple(dict.fromkeys((*spec.tools_deny, *deny, *bound.deny)))
        tools = admission.effective_tools(
            agent.tools, allow=spec.tools_allow, deny=deny, inherited_allow=inherited
        )
        abilities = abilities_of(runtime, agent.options)
        if (tools is not None or deny) and not abilities.scope_tools:
            raise Forbidden(
                f'runtime "{runtime.name}" cannot enforce tool scoping',
                guardrail="tools",
                hint=_why_scoped(spec, agent_id, agent, bound),
            )
        unproven: tuple[str, ...] = ()
        if tools is not None or deny:
            runtime.check_scope(agent.options, tools, deny)
            unproven = await self._unproven(agent_id, agent)
        if told := unserved(runtime, agent.options):
            unproven = (*unproven, "; ".join(told))
        admission.check_usable(spec, runtime.name, abilities)
        return Grant(
            agent_id, agent, runtime, abilities, bound.access, question, tools, deny, unproven
        )

    async def _unproven(self, agent_id: str, agent: Agent) -> tuple[str, ...]:
        """Warnings for the receipt of a spawn with a scope.

        Raises:
            Forbidden: A probe saw a denied tool work.
        """
        proof = await self._off_loop(partial(self._proof_of, agent_id, agent))
        if proof.refusal is not None:
            raise Forbidden(
                proof.refusal,
                guardrail="tools",
                hint="spawn it without a scope, choose another agent, or update the program and "
                f"try again: subagents doctor --probe {agent_id}",
            )
        if proof.warning is None or proof.warning in self._warned:
            return ()
        self._warned.add(proof.warning)
        return (proof.warning,)

    async def _check_limits(self, agent_id: str, agent: Agent, runtime: Runtime) -> None:
        limits = agent.limits.given
        unkept: str | None = f'runtime "{runtime.name}" cannot hold its workers to any'
        if isinstance(runtime, Limited):
            unkept = await self._off_loop(partial(runtime.unkept_limits, limits))
        if unkept is not None:
            raise Forbidden(
                f"agents.{agent_id}.limits cannot be kept here: {unkept}",
                guardrail="limits",
                hint=f"mend that (subagents doctor), or remove [agents.{agent_id}.limits]",
            )

    async def judge(self, judge: Judge, judged: Resolved, call: SpawnCall) -> Resolved:
        """What the judge of a contract comes to: an agent that its requester may use, too.

        Raises:
            SubagentsError: As for any spawn; the message names ``verification.judge``.
        """
        spec = judge_task.parameters(judge)
        try:
            agent_id, agent = self.agent(judge.agent_id, call)
            above = [replace(each, source="the judged run") for each in ceilings.of_run(judged, "")]
            worker = await self.grant(
                spec,
                agent_id,
                agent,
                cwd=judged.cwd,
                found=above,
                may_ask=False,
                inherited=inherited_tools(judged, agent_id),
                deny=judged.tools_deny,
            )
        except SubagentsError as error:
            _move(error, "verification.judge", "verification.judge.agentId")
            if isinstance(error, Forbidden) and error.guardrail == ceilings.GUARDRAIL:
                error.hint = _more_or_less(judge, error.hint)
            raise
        theirs = worker.resolved(spec, call.context.settings, cwd=judged.cwd, fleet=())
        return replace(judged, mode=Mode.RUN, worktree=None, **structs.asdict(theirs))

    async def fallback(
        self,
        spec: RunSpec,
        resolved: Resolved,
        call: SpawnCall,
        *,
        found: Sequence[Ceiling],
        inherited: tuple[str, ...] | None,
        agent_id: str | None = None,
        named: str = "fallbackAgentId",
    ) -> ResolvedAgent:
        """What an agent comes to that takes over: when a dependency fails, or at a limit.

        Args:
            spec: What was asked of it.
            resolved: What the run came to with its first agent.
            call: Says who spawns.
            found: The ceilings above the run.
            inherited: The tools that it may have at most, None = any.
            agent_id: Which; None = that of the spec for failed dependencies.
            named: The parameter that names it.

        Raises:
            SubagentsError: As for any spawn; the message names the parameter.
        """
        # Resolved at the spawn, though it may never be needed: when it takes over, whoever spawned
        # may be gone, and with it what it was allowed.
        try:
            agent_id, agent = self.agent(agent_id or spec.fallback_agent_id, call)
            worker = await self.grant(
                spec,
                agent_id,
                agent,
                cwd=resolved.cwd,
                found=found,
                # No person is there to be asked when it takes over.
                may_ask=False,
                inherited=inherited,
                deny=resolved.tools_deny,
            )
        except SubagentsError as error:
            _move(error, named, named)
            raise
        return worker.resolved(spec, call.context.settings, cwd=resolved.cwd, fleet=resolved.fleet)

    async def at_limits(
        self,
        texts: Sequence[str],
        spec: RunSpec,
        resolved: Resolved,
        call: SpawnCall,
        *,
        found: Sequence[Ceiling],
        inherited: tuple[str, ...] | None,
    ) -> tuple[LimitStep, ...]:
        """What the run does at limits of its provider; arguments as of ``fallback``.

        Raises:
            SubagentsError: As for any spawn; the message names ``onLimit``.
        """
        made: list[LimitStep] = []
        agent_id = resolved.agent_id
        for step in wanted_at_limits(texts):
            agent = None
            if step.agent_id is not None or step.model is not None:
                # A model is another one of the agent before it.
                agent_id = step.agent_id or agent_id
                asked = replace(spec, model=step.model)
                agent = await self.fallback(
                    asked, resolved, call,
                    found=found, inherited=inherited, agent_id=agent_id, named="onLimit",
                )  # fmt: skip
            made.append(LimitStep(step.wait_ms, agent))
        return tuple(made)

    async def _bound(
        self,
        spec: RunSpec,
        agent_id: str,
        agent: Agent,
        runtime: Runtime,
        *,
        cwd: str,
        found: Sequence[Ceiling],
        may_ask: bool,
    ) -> tuple[Bound, str | None]:
        """What the run may do, how it is kept to it, and what a person must be asked before.

        Raises:
            Forbidden: It is more than it may have, or nothing can keep it to less.
        """
        is_apart = shall_be_apart(spec, agent, found)
        if is_apart and spec.isolation is Isolation.WORKTREE:
            raise UsageError(
                'isolation "worktree" does not work in a sandbox, which hides the repository',
                hint="leave isolation out: it works in the sandbox of its agent or requester",
                details={"field": "isolation"},
            )
        if spec.network is Network.HOST and agent.network is Network.NONE:
            raise Forbidden(
                f'network "host" is more than agent "{agent_id}" has ("none"; '
                f"agents.{agent_id}.network)",
                guardrail=ceilings.GUARDRAIL,
                hint="leave network out, or ask the user to change that",
            )
        decision = ceilings.decide(
            access_of(runtime, agent.options, agent.access),
            spec.access,
            agent_id=agent_id,
            cwd=cwd,
            ceilings=found,
            may_ask=may_ask,
            is_apart=is_apart,
            network=None if spec.network is None else spec.network is Network.HOST,
            network_unasked=None if agent.network is None else agent.network is Network.HOST,
        )
        if decision.access.sees is not None and not abilities_of(runtime, agent.options).isolate:
            raise Forbidden(
                f'isolation "sandbox": runtime "{runtime.name}" cannot work in one: its program '
                f"needs files of its user's{_because(decision.access)}",
                guardrail=ceilings.GUARDRAIL,
                hint='name an agent of the runtime "command", or leave isolation out and give '
                'access ("read", "write")',
            )
        if not decision.access.is_bound:
            return Bound(decision.access), decision.question
        if not isinstance(runtime, Bounded):
            raise Forbidden(
                f'runtime "{runtime.name}" cannot keep a worker to access '
                f'"{decision.access.level}"{_because(decision.access)}',
                guardrail=ceilings.GUARDRAIL,
                hint="choose an agent of another runtime (agents_list)",
            )
        keep = partial(runtime.bound, agent.options, decision.access)
        try:
            return await self._off_loop(keep), decision.question
        except Forbidden as error:
            because = _because(decision.access)
            raise Forbidden(
                f"{error.message}{because}", guardrail=error.guardrail, hint=error.hint
            ) from error


def _move(error: SubagentsError, where: str, agent_field: str) -> None:
    """It is about an agent that another parameter names."""
    error.message = f"{where}: {error.message}"
    error.args = (error.message,)
    if error.details.get("field") == "agentId":
        error.details = {**error.details, "field": agent_field}


def shall_be_apart(spec: RunSpec, agent: Agent, found: Sequence[Ceiling]) -> bool:
    """Whether its worker sees nothing of its user's but its working directory."""
    if spec.isolation is Isolation.SANDBOX or agent.isolation is AgentIsolation.SANDBOX:
        return True
    return bool(found) and any(each.sees is not None for each in found)


def inherited_tools(above: Resolved | None, agent_id: str) -> tuple[str, ...] | None:
    """What everybody above may use: each was narrowed to those above it.

    Another agent's program may name its tools differently, so there it holds by kind.
    """
    if above is None:
        return None
    tools = above.effective_tools
    return tools if above.agent_id == agent_id else abroad(tools)


def ceilings_of(own: Ceiling | None, parent: Run | None, previous: Run | None) -> list[Ceiling]:
    """Of the caller, the run above and the run before."""
    found = [own] if own is not None else []
    if parent is not None:
        found += ceilings.of_run(parent.resolved, parent.id)
    if previous is not None:
        before = ceilings.of_run(previous.resolved, previous.id)
        found += [replace(each, below=None) for each in before]
    return found


def without_links(
    found: Sequence[Ceiling], cwd: str, project: str
) -> tuple[list[Ceiling], str, str]:
    """The same ceilings and directories as real paths. Blocking."""
    kept = [each if each.below is None else replace(each, below=real(each.below)) for each in found]
    return kept, real(cwd), real(project)


def _more_or_less(judge: Judge, hint: str | None) -> str:
    """The way out of an access that cannot be had."""
    if judge.access is not AccessLevel.READ:
        return "leave judge.access out (--judge-access), and it only reads"
    more = "let the judge do as much as the judged run: judge.access (--judge-access)"
    return f"{hint}; or {more}" if hint else more


def narrowed(access: Access) -> tuple[str, ...]:
    """What a receipt says of a run that may do less than its agent."""
    if access.narrowed is None:
        return ()
    said = f"it {access.text}, because {access.narrowed}"
    if access.sees is not None:
        return (said,)
    return (f"{said}; for more, name it in access, and the user is asked",)


def _served(agent_id: str, agent: Agent, runtime: Runtime, servers: tuple[str, ...]) -> Agent:
    """The agent with these MCP servers alone.

    Raises:
        Forbidden: Nothing can keep its worker to them.
    """
    whose = f"agents.{agent_id}.mcp_servers"
    if agent.mcp_servers is None:
        whose = "mcp_servers of a run above it, which hold for everything below"
    agent = structs.replace(agent, mcp_servers=servers)
    try:
        check_servers(runtime, agent.options)
    except Forbidden as error:
        _move(error, whose, whose)
        raise
    return agent


def _why_scoped(spec: RunSpec, agent_id: str, agent: Agent, bound: Bound) -> str:
    """Where a scope comes from that a runtime cannot keep, and so the way out."""
    if spec.tools_allow is not None or spec.tools_deny:
        return "leave toolsAllow and toolsDeny out, or choose an agent of another runtime"
    if bound.deny:
        return (
            f'it must keep the worker to access "{bound.access.level}"'
            f"{_because(bound.access)}; choose an agent that can be kept to it"
        )
    if agent.tools is not None:
        return f"agents.{agent_id}.tools is set in the configuration"
    return "its requester has a scope, which holds for everything below it"


def _because(access: Access) -> str:
    return "" if access.narrowed is None else f" ({access.narrowed})"


def check_within_reach(spawned: Spawned, *, previous: Run | None) -> None:
    """Refuse a contract whose files no worker of the run could write.

    Args:
        spawned: The run, as it would be.
        previous: The one whose session it continues.

    Raises:
        ContractError: Names what to add.
    """
    spec, resolved = spawned.spec, spawned.resolved
    wanted, judge, fallback = spec.verification, resolved.judge, resolved.fallback
    if wanted is None:
        return
    more = 'add access: "write" (--access write)'
    access = resolved.access
    if spec.access is None and access is not None:
        if access.narrowed is None:
            more = _writer(resolved.agent_id)
        elif spawned.requester_run is not None:
            more = "ask your requester for it (request_orchestrator)"
        elif previous is not None:
            more = "spawn a run of its own, which may write"
        else:
            more += ", and the user is asked"
    tools = resolved.effective_tools
    contract.check_can_be_met("verification", wanted, access, tools, way_out=more)
    at_limits = [("onLimit", each.agent) for each in resolved.on_limit]
    for named, agent in [("fallbackAgentId", fallback), *at_limits]:
        if agent is not None:
            contract.check_can_be_met(
                f"{named}: agent {agent.agent_id}: verification",
                wanted,
                agent.access,
                agent.effective_tools,
                way_out=_writer(agent.agent_id),
            )
    if judge is not None and wanted.judge is not None and wanted.judge.verification is not None:
        contract.check_can_be_met(
            contract.JUDGES_OWN,
            wanted.judge.verification,
            judge.access,
            judge.effective_tools,
            way_out='let the judge write: access: "write" of the judge (--judge-access write)',
        )


def _writer(agent_id: str) -> str:
    """Where a worker that may write comes from, if its agent only reads."""
    return (
        "choose an agent that may write (agents_list), or ask the user to set"
        f' agents.{agent_id}.access = "write"'
    )
