"""Messages to a session, when the disk takes its time."""

import asyncio

import pytest
from tests.engine.world import ME, World

from subagents.engine.runs.spawn_call import SpawnContext


@pytest.mark.requirement("sessions:continue:once")
async def test_of_two_messages_at_once_the_second_waits_for_the_run_that_the_first_begins(
    world: World,
) -> None:
    first = await world.spawn("quick")
    await world.until(first)
    context = SpawnContext(session=ME, settings=world.settings, cwd=str(world.directory))
    world.hold_commits()
    # A commit of something else is under way: that of the first message comes after it.
    other = asyncio.ensure_future(world.try_spawn("quick"))
    await world.clock.idle()
    both = [
        asyncio.ensure_future(world.engine.sessions.send(first, text, context))
        for text in ("left", "right")
    ]
    await world.clock.idle()
    assert not any(each.done() for each in both)
    world.let_commits_go()
    sent = await world.clock.result(asyncio.gather(*both))
    await other

    assert [each.is_new for each in sent] == [True, False]
    assert len({each.run.id for each in sent}) == 1
