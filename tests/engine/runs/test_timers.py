"""Due times are met, whatever the wall clock does."""

from pathlib import Path

import pytest
from tests.engine.world import World, in_world

from subagents.domain.run.run import (
    Phase,
)


@pytest.mark.requirement("timers:clock-jumps")
def test_when_the_wall_clock_jumps_everything_due_happens_soon(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        run_id = await world.spawn("fail", retry_count=1, retry_delay=3_000_000)
        await world.until(run_id, Phase.RETRY_WAIT)
        world.clock.jump(4_000)

        run = await world.until(run_id, within_s=10)

        assert len(run.attempts) == 2

    in_world(tmp_path, scenario)
