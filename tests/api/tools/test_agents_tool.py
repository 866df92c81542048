"""The tool agents_list: whom the caller may spawn, and who fits best."""

from pathlib import Path

import pytest
from tests.api.home_daemon import until
from tests.api.tools.tool_callers import CONFIG, ToolCaller, play


@pytest.mark.requirement("tools:agents")
async def test_the_agents_one_may_spawn_are_listed_with_card_and_load(desk: ToolCaller) -> None:
    await desk.spawn("leaf")
    await desk.spawn("leaf")
    ledger = desk.home.services.engine.ledger
    await until(lambda: ledger.lanes.held(("narrow", 1)) == 1)
    found = {each["id"]: each for each in (await desk.ok("agents_list"))["agents"]}
    boss = await desk.worker("boss")

    assert set(found) == {
        "quick",
        "hang",
        "bad",
        "shell",
        "slow",
        "long",
        "boss",
        "leaf",
        "proud",
    }
    assert found["quick"]["tags"] == ["fast"]
    assert found["quick"]["typicalLatency"] == "1s"
    assert found["quick"]["record"] is None
    # Without a capability card an agent appears all the same.
    assert found["leaf"]["description"] is None
    assert found["leaf"]["load"] == {
        "active": 1,
        "queued": 1,
        "lane": "narrow",
        "used": 1,
        "slots": 1,
    }
    assert "env" not in found["shell"]
    mine = [each["id"] for each in (await boss.ok("agents_list"))["agents"]]
    assert mine == ["boss", "hang", "quick"]
    assert (await desk.ok("sessions_list"))["total"] == 3


@pytest.mark.requirement("tools:agents")
async def test_a_hint_or_tags_rank_the_agents_with_reasons_and_start_none(desk: ToolCaller) -> None:
    hinted = await desk.call("agents_list", hint="review the tests of my code", limit=2)
    tagged = await desk.ok("agents_list", tags=["FAST"], costTier="cheap")

    agents = hinted.structured["agents"]
    assert isinstance(agents, list)
    assert hinted.structured["ranked"] is True
    assert agents[0]["id"] == "bad"
    assert len(agents) == 2
    assert "the hint names its tags: review" in agents[0]["reasons"]
    assert "the hint names its tags: review" in hinted.text
    assert "7 more: raise limit" in hinted.text
    assert tagged["agents"][0]["id"] == "quick"
    assert tagged["agents"][-1]["id"] == "bad"
    assert (await desk.ok("sessions_list"))["total"] == 0


@pytest.mark.requirement("tools:agents")
def test_whoever_may_spawn_nobody_is_told_which_key_says_so(tmp_path: Path) -> None:
    async def scenario(desk: ToolCaller) -> None:
        answer = await desk.call("agents_list")

        assert answer.structured["agents"] == []
        assert "agents.main.subagents.allow_agents" in answer.text
        assert answer.structured["hint"] == answer.text, "Claude Code shows the data alone"

    start = CONFIG.index("subagents.allow_agents")
    end = CONFIG.index("\n", start)
    play(tmp_path, scenario, CONFIG[:start] + "subagents.allow_agents = []" + CONFIG[end:])
