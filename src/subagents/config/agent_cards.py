"""Whom an agent may spawn, and how they are presented to it; what is odd about their cards.

The descriptions are the operator's own words. Rows end in prompts and in the context of clients,
so they are short and bounded.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from subagents.config.settings import (
    ANY_AGENT,
    Agent,
    Capabilities,
    CostTier,
    Settings,
)
from subagents.domain.agents.agent_stats import Stats
from subagents.errors import SubagentsError, UsageError
from subagents.text import duration, money, one_line, parse_duration

AGENTS_MAX: Final = 20
"""Rows of the fleet table; ``agents_list`` has the others."""
ROW_CHARS_MAX: Final = 200
LATENCY_FACTOR: Final = 3
"""A card that is wrong by this factor misleads whoever chooses by it."""
LATENCY_RUNS_MIN: Final = 10
"""Fewer attempts are no measure of a card's latency."""


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


# -- cards ---------------------------------------------------------------------------------------


class Oddity(NamedTuple):
    """Something about an agent that misleads whoever chooses by it, and the way out."""

    agent_id: str
    text: str
    fix: str


def oddities(settings: Settings, stats: Sequence[Stats] = ()) -> Iterator[Oddity]:
    """What is odd about the agents' cards; what is wrong with them the loader refuses.

    Args:
        settings: The effective ones.
        stats: What their attempts came to, by agent.
    """
    records = {each.name: each for each in stats}
    for agent_id, agent in sorted(settings.agents.items()):
        for text, fix in _odd(agent, records.get(agent_id)):
            yield Oddity(agent_id, text, fix)
        for name in agent.subagents.allow_agents:
            if name != ANY_AGENT and name not in settings.agents:
                yield Oddity(
                    agent_id,
                    f'may spawn "{name}", which is not configured',
                    f"add [agents.{name}], or take it out of subagents.allow_agents",
                )


def _odd(agent: Agent, record: Stats | None) -> Iterator[tuple[str, str]]:
    card = agent.capabilities
    if agent.runtime is None:
        if card != Capabilities():
            yield (
                "has a card but no runtime: nobody can choose it",
                "set runtime, or take the card out",
            )
        return
    plain = [" ".join(tag.split()).casefold() for tag in card.tags]
    double = sorted({tag for tag in plain if plain.count(tag) > 1})
    if double:
        yield f"has tags twice: {', '.join(double)}", "name each of capabilities.tags once"
    if any(not tag for tag in plain):
        yield "has a blank tag", "take it out of capabilities.tags"
    yield from _odd_latency(card, record)
    if card.cost_tier is CostTier.FREE and record is not None and record.cost_usd:
        cost = money(record.cost_usd)
        text = f"is declared free, but {record.cost_known} attempts cost {cost} together"
        yield text, "set capabilities.cost_tier to cheap, medium or expensive"


def _odd_latency(card: Capabilities, record: Stats | None) -> Iterator[tuple[str, str]]:
    if card.typical_latency is None or record is None or record.took is None:
        return
    try:
        said_ms = parse_duration(_plain(card.typical_latency), field="typical_latency")
    except UsageError:
        return  # words, such as "a coffee": nothing to compare with
    found_ms, is_known = record.took.p50_ms, record.attempt_count >= LATENCY_RUNS_MIN
    # At least 1 ms: anything is infinitely longer than nothing.
    low, high = sorted((max(said_ms, 1), max(found_ms, 1)))
    if is_known and high > LATENCY_FACTOR * low:
        half = f"{'more' if found_ms > said_ms else 'less'} than {duration(found_ms)}"
        text = f"is declared to take {card.typical_latency}, but half of its attempts took {half}"
        yield text, f'set capabilities.typical_latency = "{duration(found_ms)}"'


def _plain(latency: str) -> str:
    """``~3m 5s`` and ``about 90s`` as durations."""
    return "".join(latency.casefold().removeprefix("about").lstrip("~ ").split())
