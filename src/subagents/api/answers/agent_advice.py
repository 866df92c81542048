"""What is known of the agents: their cards, their load, their track records, and who fits best.

For the tool ``agents_list`` and the calls below ``/v1/agents``. Nothing here starts a run.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import structs

from subagents.api.calls.services import Services
from subagents.api.wire import agent_answers as wire
from subagents.config.settings import DEFAULT_LANE, Agent, Settings
from subagents.domain.rules.admission import holds_slot
from subagents.domain.run.run import Phase
from subagents.domain.run.values import SessionKey
from subagents.domain.track_record.suggest import (
    Candidate,
    Suggestion,
    record_text,
    suggest,
)
from subagents.domain.track_record.track_record import Rate, Runtime, Stats, Wanted
from subagents.errors import Unavailable
from subagents.text import shortened

TEXT_CHARS_MAX: Final = 500


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


async def known(
    services: Services, settings: Settings, agents: Mapping[str, Agent], *, session: SessionKey
) -> Known:
    """Gather it.

    Args:
        services: The daemon.
        settings: As they hold for the caller.
        agents: Those that the caller may choose from.
        session: The caller's: lanes have slots by depth.

    Raises:
        Unavailable: The records cannot be read.
    """
    stats = await stats_of(services, Wanted())
    records = {each.name: each for each in stats if each.name in agents}
    found = {name: record for name, record in records.items() if name is not None}
    return Known(agents, _loads(services, settings, agents, session), found)


async def stats_of(
    services: Services, wanted: Wanted, *, days: int | None = None
) -> Sequence[Stats]:
    """What ended attempts came to.

    Raises:
        Unavailable: The records cannot be read.
    """
    try:
        if days is None:
            return await services.engine.stats(wanted)
        return await services.engine.stats(wanted, days=days)
    except OSError as error:
        raise Unavailable(
            f"the performance records cannot be read: {error.strerror or error}",
            hint=f"see agent-performance-*.jsonl in {services.paths.state_dir}",
        ) from error


def ranked(
    found: Known, *, hint: str, tags: Sequence[str], cost_tier: str | None
) -> tuple[Suggestion, ...]:
    """The agents, best first, each with its reasons; see ``suggest``."""
    candidates = [
        Candidate(
            agent_id=name,
            description=agent.description or "",
            notes=agent.capabilities.notes or "",
            tags=agent.capabilities.tags,
            cost_tier=agent.capabilities.cost_tier,
            record=found.records.get(name),
            queued=found.loads[name].queued,
        )
        for name, agent in found.agents.items()
    ]
    return suggest(candidates, hint=hint, tags=tags, cost_tier=cost_tier)


def card(agent_id: str, agent: Agent) -> wire.AgentCard:
    """What its configuration says of it to whoever chooses."""
    found = agent.capabilities
    return wire.AgentCard(
        id=agent_id,
        runtime=agent.runtime,
        description=shortened(agent.description, TEXT_CHARS_MAX),
        tags=list(found.tags),
        cost_tier=found.cost_tier,
        typical_latency=found.typical_latency,
        notes=shortened(found.notes, TEXT_CHARS_MAX),
    )


def available(agent_id: str, found: Known) -> wire.AvailableAgent:
    """An agent's card, load and track record."""
    record = found.records.get(agent_id)
    return wire.AvailableAgent(
        **structs.asdict(card(agent_id, found.agents[agent_id])),
        load=wire.AgentLoad(**found.loads[agent_id]._asdict()),
        record=None if record is None else _short(record),
    )


def suggested(each: Suggestion, found: Known) -> wire.SuggestedAgent:
    """The same, with what speaks for and against it."""
    return wire.SuggestedAgent(
        **structs.asdict(available(each.agent_id, found)),
        score=each.score,
        reasons=list(each.reasons),
    )


def track_record(stats: Stats) -> wire.TrackRecord:
    return wire.TrackRecord(
        name=stats.name,
        runs=stats.runs,
        attempt_count=stats.attempts,
        outcomes=dict(stats.outcomes),
        reasons=dict(stats.reasons),
        success=_rate(stats.success),
        verified=_rate(stats.verified),
        runtime=_spread(stats.runtime),
        tokens=wire.TokenSum(input=stats.tokens.input, output=stats.tokens.output),
        tokens_known=stats.tokens_known,
        cost_usd=stats.cost_usd,
        cost_known=stats.cost_known,
    )


def _short(record: Stats) -> wire.ShortRecord:
    return wire.ShortRecord(
        text=record_text(record),
        outcomes={name: number for name, number in record.outcomes.items() if number},
        success=_rate(record.success),
        verified=_rate(record.verified),
        runtime=_spread(record.runtime),
        cost_usd=record.cost_usd,
    )


def _rate(value: Rate | None) -> wire.Rate | None:
    return None if value is None else wire.Rate(**structs.asdict(value))


def _spread(value: Runtime | None) -> wire.RuntimeSpread | None:
    return None if value is None else wire.RuntimeSpread(**structs.asdict(value))


def _loads(
    services: Services, settings: Settings, agents: Mapping[str, Agent], session: SessionKey
) -> dict[str, Load]:
    queries = services.queries
    active: Counter[str] = Counter()
    queued: Counter[str] = Counter()
    for run in queries.open_runs:
        if holds_slot(run):
            active[run.resolved.agent_id] += 1
        elif run.phase is Phase.QUEUED:
            queued[run.resolved.agent_id] += 1
    own = queries.run_of(session)
    parent = queries.open_run(own) if own is not None else None
    depth = parent.lineage.depth + 1 if parent is not None else 1
    loads = {}
    for name, agent in agents.items():
        lane = agent.lane or DEFAULT_LANE
        held = queries.slots_held((lane, depth))
        loads[name] = Load(active[name], queued[name], lane, held, settings.lane_slots(lane))
    return loads
