"""Whom an agent may spawn, and how they are presented to it.

The descriptions are the operator's own words. Rows end in prompts and in the context of clients,
so they are short and bounded.
"""

from typing import Final

from subagents.config.settings import ANY_AGENT, Agent, Settings
from subagents.errors import SubagentsError
from subagents.text import one_line

AGENTS_MAX: Final = 20
"""Rows of the fleet table; ``agents_list`` has the others."""
ROW_CHARS_MAX: Final = 200


def allowed_agents(settings: Settings, own: str) -> dict[str, Agent]:
    """The agents that can work and that an agent of this id may spawn, by name."""
    section = settings.agents.get(own)
    allowed = {own, *(section.subagents.allow_agents if section is not None else ())}
    return {
        name: agent
        for name, agent in working_agents(settings).items()
        if name in allowed or ANY_AGENT in allowed
    }


def working_agents(settings: Settings) -> dict[str, Agent]:
    """All agents that can work, by name."""
    return {
        name: agent for name, agent in sorted(settings.agents.items()) if agent.runtime is not None
    }


def none_allowed(own: str) -> str:
    """What to do when an agent may spawn none; in the data, too, as some clients show only that.

    Args:
        own: The caller's agent id.
    """
    return (
        "You may spawn no agent yet. Do the work yourself, or ask the user to name some in"
        f" agents.{own}.subagents.allow_agents of subagents.toml (`subagents init` writes one;"
        " `subagents config` shows the effective configuration)."
    )


# -- the table -----------------------------------------------------------------------------------


def fleet(settings: Settings, own: str) -> str:
    """The agents that ``own`` may spawn, one line each, as an MCP client is shown them."""
    found = rows(settings, own)
    if not found:
        return none_allowed(own)
    chosen = settings.defaults.agent
    default = f" (default: {chosen})" if chosen is not None else ""
    return "\n".join((f"Agents you may name as agentId{default}:", *found))


def unreadable(error: SubagentsError) -> str:
    """What stands in the table's place where the configuration is wrong."""
    return f"The configuration cannot be read: {one_line(error.message)}"


def rows(settings: Settings, own: str) -> tuple[str, ...]:
    """The agents that ``own`` may spawn, one line each; empty when there are none."""
    found = [row(agent_id, agent) for agent_id, agent in allowed_agents(settings, own).items()]
    more = len(found) - AGENTS_MAX
    end = (f"… {more} more: agents_list",) if more > 0 else ()
    return (*found[:AGENTS_MAX], *end)


def row(agent_id: str, agent: Agent) -> str:
    """``- id: description (tags; cost; latency; notes)``; less for an agent without a card."""
    card = agent.capabilities
    facts = _given(
        ", ".join(card.tags),
        f"cost {card.cost_tier}" if card.cost_tier else None,
        f"about {card.typical_latency}" if card.typical_latency else None,
        card.notes,
    )
    says = _given(agent.description, f"({'; '.join(facts)})" if facts else None)
    return one_line(f"- {agent_id}{': ' if says else ''}{' '.join(says)}", ROW_CHARS_MAX)


def _given(*parts: str | None) -> list[str]:
    return [part for part in parts if part]
