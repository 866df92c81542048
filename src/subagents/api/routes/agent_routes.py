"""The configured agents: their cards, and advice whom to choose."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from subagents.api.answers import agent_advice
from subagents.api.calls.auth import Caller
from subagents.api.calls.call import Query, answer, path_part, query_of, require_operator
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.services import services_of
from subagents.api.routes.daemon_routes import WHERE, cwd_in
from subagents.api.wire import agent_answers
from subagents.api.wire import requests as wire
from subagents.api.wire.decoding import one_of
from subagents.api.wire.parameters import choice, number, word
from subagents.api.wire.wire_struct import made
from subagents.config.agent_cards import allowed_agents, working_agents
from subagents.config.paths import Paths
from subagents.config.programs.program_catalog import installed, subject
from subagents.config.programs.scope_probes import read_probes
from subagents.config.settings import DEFAULT_LANE, Agent, Settings
from subagents.domain.agents.agent_stats import Stats
from subagents.domain.agents.suggest import COST_TIERS
from subagents.domain.run.values import agent_of
from subagents.engine.runs.agent_choice import ranked
from subagents.errors import ConfigError, Unavailable, UsageError
from subagents.ports import usable_abilities
from subagents.text import iso

LIMIT_MAX: Final = 100
TAGS_MAX: Final = 100
SUGGEST: Final = (
    word("hint", "What is to be done."),
    word("tags", "What it should be good at, with commas between them."),
    choice("costTier", "What it may cost.", COST_TIERS),
    number("limit", "At most so many.", low=1, high=LIMIT_MAX, default=LIMIT_MAX),
    *WHERE,
)


async def agents(request: Request) -> Response:
    """GET /v1/agents: the configured workers, and whether the caller may spawn them."""
    caller = Caller.of(request)
    settings = await _settings(request, query_of(request, WHERE), caller)
    services = services_of(request)
    allowed = allowed_agents(settings, agent_of(caller.session))
    able = working_agents(settings)
    records: Mapping[str, Stats] = {}
    probes = await services.off_loop(partial(_probes, services.paths, able))
    calls: Mapping[str, Sequence[str]] = {}
    with contextlib.suppress(Unavailable):
        # Without its records a card says what is configured.
        records = await services.engine.agent_stats()
    if caller.is_operator:
        calls = await services.off_loop(services.engine.adapters.logs.allowed_calls.read)
    found = [
        made(
            agent_answers.ConfiguredAgent,
            **msgspec.structs.asdict(
                agent_advice.filled(agent_advice.card(agent_id, agent), records.get(agent_id))
            ),
            allowed=caller.is_operator or agent_id in allowed,
            limits=_limits(agent_id, agent, settings),
            abilities=usable_abilities(
                services.engine.adapters.runtimes.get(agent.runtime or ""), agent.options
            ),
            probe=probes.get(agent_id),
            allowed_calls=list(calls.get(agent_id, ())),
        )
        for agent_id, agent in able.items()
    ]
    return answer(agent_answers.AgentList(**services.as_of(), agents=found))


def _probes(paths: Paths, agents: Mapping[str, Agent]) -> Mapping[str, agent_answers.AgentProbe]:
    """What the last probe of the installed version found, by agent. Blocking."""
    try:
        known = read_probes(paths)
    except ConfigError:
        return {}  # `doctor` says what is wrong with the file
    if not known:
        return {}
    found: dict[str, agent_answers.AgentProbe] = {}
    for agent_id, agent in agents.items():
        program = installed(agent, os.environ)
        probe = known.get(subject(agent, program)) if program is not None else None
        if probe is not None:
            found[agent_id] = made(agent_answers.AgentProbe, probe, probed_at=iso(probe.at_ms))
    return found


def _limits(agent_id: str, agent: Agent, settings: Settings) -> agent_answers.AgentLimits:
    """What bounds a run of it; None = nothing does."""
    lane = agent.lane or DEFAULT_LANE
    timeout_ms = settings.run_timeout_ms(agent_id)
    return agent_answers.AgentLimits(
        model=agent.model,
        run_timeout_seconds=timeout_ms / 1000 if timeout_ms else None,
        lane=lane,
        lane_slots=settings.lane_slots(lane),
        tools=None if agent.tools is None else list(agent.tools),
        allow_agents=list(agent.subagents.allow_agents),
        max_spawn_depth=settings.defaults.max_spawn_depth,
    )


async def revoke(request: Request) -> Response:
    """DELETE /v1/agents/{agent}/allowed-calls/{call}: ask again; harmless if it was not allowed."""
    services, agent = services_of(request), path_part(request, "agent")
    require_operator(Caller.of(request), "what an agent may do unasked")
    change = services.engine.adapters.logs.allowed_calls.change
    await services.off_loop(partial(change, agent, path_part(request, "call"), allow=False))
    return await agents(request)


async def suggestions(request: Request) -> Response:
    """GET /v1/agents/suggest?hint=&tags=&costTier=&limit=&cwd=: who fits; starts no run."""
    services, caller = services_of(request), Caller.of(request)
    query = query_of(request, SUGGEST)
    hint, tags = query.get("hint", ""), _tags(query.get("tags", ""))
    if len(hint) > wire.MESSAGE_CHARS_MAX:
        text = f"hint must have at most {wire.MESSAGE_CHARS_MAX} characters, not {len(hint)}"
        raise UsageError(text, details={"field": "hint"})
    cost_tier = query.get("costTier")
    if cost_tier is not None:
        one_of("costTier", cost_tier, COST_TIERS)
    settings = await _settings(request, query, caller)
    own = agent_of(caller.session)
    able = working_agents(settings) if caller.is_operator else allowed_agents(settings, own)
    found = await services.engine.agent_choice.known(settings, able, session=caller.session)
    order = ranked(found, hint=hint, tags=tags, cost_tier=cost_tier)
    listed = [agent_advice.suggested(each, found) for each in order[: query.number("limit")]]
    return answer(agent_answers.Suggestions(suggestions=listed, total=len(order)))


def _tags(text: str) -> Sequence[str]:
    tags = [tag.strip() for tag in text.split(",") if tag.strip()]
    if len(tags) > TAGS_MAX:
        raise UsageError(f"at most {TAGS_MAX} tags, not {len(tags)}", details={"field": "tags"})
    return tags


async def _settings(request: Request, query: Query, caller: Caller) -> Settings:
    """What holds where the caller is, as far as it holds for it."""
    services, where = services_of(request), cwd_in(query)
    return (await services.config_in(where, is_operator=caller.is_operator)).settings


OPERATIONS: Final = {
    ("GET", "/v1/agents"): Operation(agents, query=WHERE, answers=(agent_answers.AgentList,)),
    ("GET", "/v1/agents/suggest"): Operation(
        suggestions, query=SUGGEST, answers=(agent_answers.Suggestions,)
    ),
    ("DELETE", "/v1/agents/{agent}/allowed-calls/{call}"): Operation(
        revoke, query=WHERE, answers=(agent_answers.AgentList,)
    ),
}
ROUTES: Final = routes(OPERATIONS)
