"""What is odd about agents' capability cards: what misleads whoever chooses an agent by them."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from subagents.config.settings import ANY_AGENT, Agent, Capabilities, CostTier, Settings
from subagents.domain.agents.agent_stats import Stats
from subagents.errors import UsageError
from subagents.text import duration, money, parse_duration

LATENCY_FACTOR: Final = 3
"""A card that is wrong by this factor misleads whoever chooses by it."""
LATENCY_RUNS_MIN: Final = 10
"""Fewer attempts are no measure of a card's latency."""


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
