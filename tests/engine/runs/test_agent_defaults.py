"""What an agent's table says holds for spawns that say nothing themselves."""

import pytest
from tests.engine.world import World, settings_of

from subagents.config.settings import Agent
from subagents.domain.run.values import replace

WISE = Agent(runtime="scripted", script=({"result": "done"},), model="big", thinking="high")


@pytest.mark.requirement("config:thinking")
async def test_an_agents_thinking_level_is_that_of_its_runs(world: World) -> None:
    world.settings = replace(settings_of(), agents={"wise": WISE})
    run_id = await world.spawn("wise")
    resolved = (await world.run(run_id)).resolved

    assert (resolved.model, resolved.thinking) == ("big", "high")
