"""Whom an agent may spawn, and how they are presented to it."""

import pytest

from subagents.config.agent_cards import (
    AGENTS_MAX,
    ROW_CHARS_MAX,
    allowed_agents,
    row,
    rows,
    working_agents,
)
from subagents.config.settings import (
    Agent,
    AgentSubagents,
    Capabilities,
    CostTier,
    Settings,
)

CARD = Capabilities(
    tags=("research", "review"),
    cost_tier=CostTier.MEDIUM,
    typical_latency="90s",
    notes="No file\nwrites",
)


def worker(**changes: object) -> Agent:
    return Agent(runtime="scripted", **changes)  # type: ignore[arg-type]  # as the test says


@pytest.mark.requirement("fleet:row")
def test_a_row_has_the_card_where_there_is_one_and_less_where_there_is_none() -> None:
    whole = row("athena", worker(description="Deep analysis", capabilities=CARD))

    assert whole == (
        "- athena: Deep analysis (research, review; cost medium; about 90s; No file writes)"
    )
    assert row("plain", worker(description="Deep analysis")) == "- plain: Deep analysis"
    assert row("bare", worker()) == "- bare"
    long = row("long", worker(description="x" * 4000))
    assert len(long) == ROW_CHARS_MAX
    assert long.endswith("…")


@pytest.mark.requirement("fleet:row")
def test_the_table_has_whom_the_agent_may_name_and_a_bounded_number_of_rows() -> None:
    many = {f"w{number:02}": worker() for number in range(AGENTS_MAX + 5)}
    boss = worker(subagents=AgentSubagents(allow_agents=("w01", "caller", "gone")))
    everybody = worker(subagents=AgentSubagents(allow_agents=("*",)))
    agents = {"caller": Agent(), "boss": boss, "any": everybody, **many}
    settings = Settings(agents=agents)

    assert rows(settings, "boss") == ("- boss", "- w01")
    assert rows(settings, "caller") == ()
    found = rows(settings, "any")
    assert len(found) == AGENTS_MAX + 1
    assert found[-1] == "… 7 more: agents_list"
    assert set(allowed_agents(settings, "any")) == set(working_agents(settings))
