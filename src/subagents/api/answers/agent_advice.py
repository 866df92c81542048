"""What is known of the agents: their cards, their load, their track records, and who fits best.

For the tool ``agents_list`` and the calls below ``/v1/agents``. Nothing here starts a run.
"""

from typing import Final

from msgspec import structs

from subagents.api.wire import agent_answers as wire
from subagents.api.wire.wire_struct import made
from subagents.config.settings import Agent
from subagents.domain.agents.agent_stats import Stats, measured_cost_tier, measured_latency
from subagents.domain.agents.suggest import Suggestion, record_text
from subagents.engine.runs.agent_choice import Known
from subagents.text import shortened

TEXT_CHARS_MAX: Final = 500


def card(agent_id: str, agent: Agent) -> wire.AgentCard:
    """What its configuration says of it to whoever chooses."""
    found = agent.capabilities
    return made(
        wire.AgentCard,
        found,
        id=agent_id,
        runtime=agent.runtime,
        description=shortened(agent.description, TEXT_CHARS_MAX),
        measured=(),
        notes=shortened(found.notes, TEXT_CHARS_MAX),
    )


def filled(found: wire.AgentCard, record: Stats | None) -> wire.AgentCard:
    """The card with what it leaves open, as far as the agent's own attempts say it."""
    latency = None if found.typical_latency else measured_latency(record)
    tier = None if found.cost_tier else measured_cost_tier(record)
    return structs.replace(
        found,
        typical_latency=found.typical_latency or latency,
        cost_tier=found.cost_tier or tier,
        measured=[*(["costTier"] if tier else []), *(["typicalLatency"] if latency else [])],
    )


def available(agent_id: str, found: Known) -> wire.AvailableAgent:
    """An agent's card, load and track record."""
    record = found.records.get(agent_id)
    return wire.AvailableAgent(
        **structs.asdict(filled(card(agent_id, found.agents[agent_id]), record)),
        load=made(wire.AgentLoad, found.loads[agent_id]),
        record=None if record is None else _short(record),
    )


def suggested(each: Suggestion, found: Known) -> wire.SuggestedAgent:
    """The same, with what speaks for and against it."""
    return wire.SuggestedAgent(
        **structs.asdict(available(each.agent_id, found)),
        score=each.score,
        reasons=list(each.reasons),
    )


def _short(record: Stats) -> wire.ShortRecord:
    return made(
        wire.ShortRecord,
        record,
        text=record_text(record),
        outcomes={name: number for name, number in record.outcomes.items() if number},
    )
