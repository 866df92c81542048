"""What an agent's table says holds for spawns that say nothing themselves."""

from pathlib import Path

import pytest
from tests.engine.world import World, in_world, settings_of

from subagents.config.settings import Agent
from subagents.domain.run.values import replace

WISE = Agent(runtime="scripted", script=({"result": "done"},), model="big", thinking="high")


@pytest.mark.requirement("config:thinking")
def test_an_agents_thinking_level_is_that_of_its_runs(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.settings = replace(settings_of(), agents={"wise": WISE})
        run_id = await world.spawn("wise")
        resolved = (await world.run(run_id)).resolved

        assert (resolved.model, resolved.thinking) == ("big", "high")

    in_world(tmp_path, scenario)
