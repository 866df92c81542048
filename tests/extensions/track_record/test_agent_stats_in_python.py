"""What programs are told of agents' attempts."""

import asyncio
from pathlib import Path

import pytest

from subagents.api.wire.agent_answers import TokenSum
from subagents.client.orchestrator import Orchestrator
from subagents.errors import UsageError

CONFIG = {
    "agents.player.runtime": "scripted",
    "agents.player.script": [{"usage": {"tokensIn": 3, "tokensOut": 4}}, {"result": "the end"}],
    "agents.sitter.runtime": "scripted",
    "agents.sitter.script": [{"hang": True}],
}


@pytest.mark.requirement("python:agents")
def test_a_program_asks_how_agents_did_and_who_fits(tmp_path: Path) -> None:
    async def work(sub: Orchestrator) -> None:
        for _ in range(2):
            await (await sub.spawn("play", agent="player", tags=["music", "x"])).wait()
        sitter = await sub.spawn("sit", agent="sitter")
        await sitter.cancel()
        await sitter.wait()
        (player,) = await sub.agent_stats(agent="player")
        (sat,) = await sub.agent_stats(agent="sitter")

        assert (player.name, player.attempt_count, player.verified) == ("player", 2, None)
        assert player.tokens == TokenSum(input=6, output=8)
        assert player.cost_usd is None
        assert sat.success is None
        tags = await sub.agent_stats(by="tag", tag="music", days=1)
        assert [(each.name, each.attempt_count) for each in tags] == [("music", 2), ("x", 2)]
        best, *others = await sub.suggest_agents(cost_tier="free")
        assert best.id == "player"
        assert best.reasons == ["2 of 2 runs ok (34–100 %), without a contract"]
        assert {each.id for each in others} == {"command", "sitter"}
        assert all(each.reasons == [] for each in others)
        with pytest.raises(UsageError, match="days must be a whole number from 1 to 30"):
            await sub.agent_stats(days=31)

    async def main() -> None:
        home = tmp_path / "home"
        async with (
            asyncio.timeout(60),
            Orchestrator.open(home=home, config=CONFIG, cwd=tmp_path) as sub,
        ):
            await work(sub)

    asyncio.run(main())
