"""What is known of the agents now, and which of them fits a task best."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Final, NamedTuple

from subagents.config import agent_cards
from subagents.config.settings import DEFAULT_LANE, Agent, Settings
from subagents.domain.agents.agent_stats import Stats, measured_cost_tier
from subagents.domain.agents.suggest import Candidate, Suggestion, suggest
from subagents.domain.rules.admission import holds_slot
from subagents.domain.run.run import Phase
from subagents.domain.run.spec import AgentChosen, Isolation, RunSpec
from subagents.domain.run.values import SessionKey, replace
from subagents.engine.runs.environments import PLAIN_COMMAND
from subagents.engine.runs.grants import agent_that_spawns
from subagents.engine.runs.queries import Queries
from subagents.engine.runs.spawn_call import RunAsked, SpawnCall
from subagents.errors import NotFound
from subagents.ports import Runtime, usable_abilities

SHELLS: Final = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})
AUTO: Final = "auto"
"""Instead of an agent's id: the one that fits best. An agent of that name is meant first."""


class Load(NamedTuple):
    """What an agent has to do now, and how full its lane is at the caller's depth."""

    active: int
    queued: int
    lane: str
    used: int
    slots: int


class Known(NamedTuple):
    """What is known of some agents, by their ids."""

    agents: Mapping[str, Agent]
    loads: Mapping[str, Load]
    records: Mapping[str, Stats]


class AgentChoice:
    """See the module."""

    def __init__(
        self,
        queries: Queries,
        agent_stats: Callable[[], Awaitable[Mapping[str, Stats]]],
        runtimes: Mapping[str, Runtime],
    ) -> None:
        self._queries = queries
        self._agent_stats = agent_stats
        self._runtimes = runtimes

    async def known(
        self, settings: Settings, agents: Mapping[str, Agent], *, session: SessionKey
    ) -> Known:
        """Gather it.

        Args:
            settings: As they hold for the caller.
            agents: Those that the caller may choose from.
            session: The caller's: lanes have slots by depth.

        Raises:
            Unavailable: The records cannot be read.
        """
        records = await self._agent_stats()
        return Known(agents, self._loads(settings, agents, session), records)

    async def choose(self, asked: list[RunAsked], call: SpawnCall) -> list[RunAsked]:
        """Each run that leaves its agent to us, with the one that fits its task best.

        Args:
            asked: Of one call: what one of them is given counts as load for the next.
            call: Says who asks: an agent may use those that it is allowed, an operator all.

        Raises:
            NotFound: No agent can take one of them.
            Unavailable: What is known of the agents cannot be read.
        """
        session, settings = call.context.session, call.context.settings
        if AUTO in settings.agents or AUTO not in [each.spec.agent_id for each in asked]:
            return asked
        able = (
            agent_cards.working_agents(settings)
            if call.is_free
            else agent_cards.allowed_agents(settings, agent_that_spawns(call.parent, session))
        )
        found = await self.known(settings, able, session=session)
        given: Counter[str] = Counter()
        chosen = []
        for each in asked:
            spec = each.spec
            if spec.agent_id != AUTO:
                chosen.append(each)
                continue
            fit = {name: agent for name, agent in able.items() if self._can_take(spec, agent)}
            order = ranked(found._replace(agents=fit), hint=spec.task, given=given)
            if not order:
                raise NotFound(
                    f"agentId auto: none of {len(able)} agents can take this task: each needs a"
                    " runtime that offers what it asks for; shells, and commands without a"
                    " description, are left out",
                    hint="subagents agents shows them; name one, or describe it in subagents.toml",
                )
            best = order[0]
            given[best.agent_id] += 1
            choice = AgentChosen(agent_id=best.agent_id, among=len(order), reasons=best.reasons)
            chosen.append(replace(each, chosen=choice))
        return chosen

    def _can_take(self, spec: RunSpec, agent: Agent) -> bool:
        runtime = self._runtimes.get(agent.runtime or "")
        if runtime is None:
            return False
        # A shell would run a task in words; what another command does with one was never said.
        if agent.runtime == PLAIN_COMMAND and (_is_shell(agent) or not agent.description):
            return False
        wants_model = spec.model is not None or spec.thinking is not None
        is_apart = spec.isolation is Isolation.SANDBOX
        abilities = usable_abilities(runtime, agent.options)
        if abilities is None:
            return False
        return (abilities.model or not wants_model) and (abilities.isolate or not is_apart)

    def _loads(
        self, settings: Settings, agents: Mapping[str, Agent], session: SessionKey
    ) -> dict[str, Load]:
        active: Counter[str] = Counter()
        queued: Counter[str] = Counter()
        for run in self._queries.open_runs:
            if holds_slot(run):
                active[run.resolved.agent_id] += 1
            elif run.phase is Phase.QUEUED:
                queued[run.resolved.agent_id] += 1
        own = self._queries.run_of(session)
        parent = None if own is None else self._queries.open_run(own)
        depth = 1 if parent is None else parent.lineage.depth + 1
        loads, held = {}, self._queries.slots_by_lane()
        for name, agent in agents.items():
            lane = agent.lane or DEFAULT_LANE
            used = held.get((lane, depth), 0)
            loads[name] = Load(active[name], queued[name], lane, used, settings.lane_slots(lane))
        return loads


def ranked(
    found: Known,
    *,
    hint: str,
    tags: Sequence[str] = (),
    cost_tier: str | None = None,
    given: Mapping[str, int] | None = None,
) -> tuple[Suggestion, ...]:
    """The agents, best first, each with its reasons; see ``suggest``.

    Args:
        found: What is known of them.
        hint: The work in words.
        tags: See ``suggest``.
        cost_tier: See there.
        given: What some of them will have to do in addition, in queued runs.
    """
    more = given or {}
    candidates = [
        Candidate(
            agent_id=name,
            description=agent.description or "",
            notes=agent.capabilities.notes or "",
            tags=agent.capabilities.tags,
            cost_tier=agent.capabilities.cost_tier or measured_cost_tier(found.records.get(name)),
            record=found.records.get(name),
            queued=found.loads[name].queued + more.get(name, 0),
        )
        for name, agent in found.agents.items()
    ]
    return suggest(candidates, hint=hint, tags=tags, cost_tier=cost_tier)


def _is_shell(agent: Agent) -> bool:
    return agent.command is not None and PurePath(agent.command[0]).name in SHELLS
