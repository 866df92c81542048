"""What doctor finds odd about the cards of agents."""

import pytest
from tests.builders import a_record

from subagents.config.settings import Agent, AgentSubagents, Capabilities, CostTier, Settings
from subagents.domain.agents.agent_stats import Stats
from subagents.extensions.doctor.card_oddities import oddities

CARD = Capabilities(tags=("research", "review"), typical_latency="90s")


def worker(**changes: object) -> Agent:
    return Agent(runtime="scripted", **changes)  # type: ignore[arg-type]  # as the test says


def told(settings: Settings, *stats: Stats) -> list[tuple[str, str]]:
    return [(each.agent_id, each.text) for each in oddities(settings, stats)]


@pytest.mark.requirement("doctor:cards")
@pytest.mark.parametrize(
    ("agent", "text"),
    [
        (Agent(capabilities=CARD), "has a card but no runtime: nobody can choose it"),
        (worker(capabilities=Capabilities(tags=("A", " a"))), "has tags twice: a"),
        (worker(capabilities=Capabilities(tags=(" ",))), "has a blank tag"),
        (
            worker(subagents=AgentSubagents(allow_agents=("gone", "*"))),
            'may spawn "gone", which is not configured',
        ),
    ],
)
def test_a_card_that_misleads_is_odd_and_has_a_way_out(agent: Agent, text: str) -> None:
    settings = Settings(agents={"a": agent, "b": worker()})

    assert told(settings) == [("a", text)]
    assert all(each.fix for each in oddities(settings))


@pytest.mark.requirement("doctor:cards")
@pytest.mark.parametrize(
    ("said", "p50_ms", "is_odd"),
    [
        ("90s", 91_000, False),
        ("90s", 300_000, True),
        ("~90s", 20_000, True),
        ("about 1m 30s", 90_000, False),
        ("a coffee", 5, False),
        (None, 5, False),
    ],
)
def test_a_latency_that_is_off_by_far_is_odd_once_enough_is_known(
    said: str | None,
    p50_ms: int,
    is_odd: bool,  # noqa: FBT001 - a case of the table
) -> None:
    settings = Settings(agents={"a": worker(capabilities=Capabilities(typical_latency=said))})

    assert bool(told(settings, a_record("a", p50_ms=p50_ms))) == is_odd
    assert told(settings, a_record("a", p50_ms=p50_ms, attempts=9)) == []
    assert told(settings, a_record("b", p50_ms=p50_ms)) == []
    if p50_ms == 300_000:
        (found,) = oddities(settings, [a_record("a", p50_ms=p50_ms)])
        assert found.text == "is declared to take 90s, but half of its attempts took more than 5m"
        assert found.fix == 'set capabilities.typical_latency = "5m"'


@pytest.mark.requirement("doctor:cards")
def test_an_agent_said_to_be_free_that_costs_money_is_odd() -> None:
    free = worker(capabilities=Capabilities(cost_tier=CostTier.FREE))
    settings = Settings(agents={"a": free})

    assert told(settings, a_record("a", cost_usd=1.5)) == [
        ("a", "is declared free, but 10 attempts cost $1.50 together")
    ]
    assert told(settings, a_record("a", cost_usd=0.0)) == []
    assert told(settings, a_record("a")) == []


@pytest.mark.requirement("doctor:cards")
def test_without_cards_nothing_is_odd() -> None:
    agents = {"main": Agent(description="The caller"), "a": worker(), "b": worker(description="d")}

    assert told(Settings(agents=agents), a_record("a", cost_usd=3.0)) == []
