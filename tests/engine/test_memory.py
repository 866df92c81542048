"""A run that is over leaves nothing in the daemon's memory."""

from collections import deque
from collections.abc import Iterator, Mapping

import pytest
from tests.engine.records.test_recorder import Talkative, texts
from tests.engine.world import ME, World

from subagents.domain.run.spec import Abilities

RUNS = 40
"""More than anything holds by itself: agents, buckets of a histogram, listeners."""


def held(root: object) -> dict[str, int]:
    """How much is in every collection below ``root``, by the attribute that holds it."""
    found: dict[str, int] = {}
    seen, waiting = set[int](), [root]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or not type(each).__module__.startswith("subagents."):
            continue
        seen.add(id(each))
        for name, value in attributes(each):
            if isinstance(value, dict | set | list | deque):
                key = f"{type(each).__name__}.{name}"
                found[key] = max(found.get(key, 0), len(value))
                waiting += value.values() if isinstance(value, Mapping) else value
            else:
                waiting.append(value)
    return found


def attributes(each: object) -> Iterator[tuple[str, object]]:
    names = {*getattr(each, "__dict__", ())}
    for kind in type(each).__mro__:
        names.update(getattr(kind, "__slots__", ()))
    return ((name, getattr(each, name)) for name in names if hasattr(each, name))


@pytest.mark.requirement("memory:flat")
async def test_a_run_that_is_over_is_in_no_collection_of_the_engine_after_a_sweep(
    world: World,
) -> None:
    await world.crash()
    runtime = Talkative(world.clock, Abilities(survives_daemon=True, usage=True))
    runtime.words = texts(2)
    await world.boot(runtime)
    for _ in range(RUNS):
        run_id = await world.spawn()
        await world.until(run_id)
        rows = await world.clock.result(world.engine.mailbox.offer_inbox(ME, reader="me", limit=9))
        await world.clock.result(
            world.engine.mailbox.acknowledge([row.message.id for row in rows], reader="me")
        )
    await world.clock.advance(200)
    await world.clock.result(world.engine.sweep.once())

    grown = {name: size for name, size in held(world.engine).items() if size >= RUNS}
    assert grown == {}
