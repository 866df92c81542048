"""An effect that keeps failing for reasons of ours is tried seldom and told once."""

import pytest
from tests.engine.world import ME, WatchedRuntime, World

from subagents.domain.run.run import Phase
from subagents.engine.kernel.quarantine import FAILURES, TRY_AGAIN_S
from subagents.ports import AttemptRef

HOURS_S = 8 * 3600


class Unforgetful(WatchedRuntime):
    """Its files cannot be deleted, until they can."""

    is_stuck = True
    tries = 0

    async def stop(self, ref: AttemptRef, *, grace_s: float) -> None:
        self.tries += 1
        if self.is_stuck:
            raise PermissionError("read-only file system")
        await super().stop(ref, grace_s=grace_s)


@pytest.mark.requirement("field:paperclip-9766")
async def test_the_same_failure_again_and_again_is_quarantined_with_one_alert(world: World) -> None:
    runtime = Unforgetful(world.clock)
    await world.crash()
    await world.boot(runtime)
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    await world.clock.result(world.engine.control.cancel(run_id, by="me"))
    await world.clock.advance(HOURS_S)

    assert runtime.tries <= FAILURES + HOURS_S / TRY_AGAIN_S + 1
    rows = await world.engine.queries.inbox(ME)
    alerts = [row.message.text for row in rows if "10 failures" in row.message.text]
    assert len(alerts) == 1
    assert "10 failures in a row of ending its worker: read-only file system" in alerts[0]
    found = await world.engine.queries.attention(ME)
    assert ("quarantined", run_id) in [(item.kind, item.run.id) for item in found]

    runtime.is_stuck = False
    await world.until(run_id, Phase.ANNOUNCING, Phase.CLEANUP_PENDING, Phase.COMPLETED)
    assert all(i.kind != "quarantined" for i in await world.engine.queries.attention(ME))
