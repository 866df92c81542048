"""What one child or one dependency costs does not depend on how many others there are.

Counted in calls of Python functions on the loop's thread, which no busy machine changes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
from tests.call_counts import counting_calls
from tests.engine.world import ME, World, in_world

from subagents.domain.run.run import Phase
from subagents.domain.run.spec import OnDependencyFailure
from subagents.domain.run.values import RunId, SessionKey

FEW: Final = 50
MANY: Final = 200
GROUP: Final = 10
RATIO: Final = 1.2
"""Of the calls for each among many to those for each among few; it may only become smaller."""

Shape = Callable[[World, int], Awaitable[float]]


async def children(world: World, number: int) -> float:
    """A parent spawns them in groups and takes over each group's results, as its worker does."""
    parent = await world.spawn("hang")
    session = (await world.until(parent, Phase.RUNNING)).session_key
    with counting_calls() as counted:
        for _ in range(number // GROUP):
            group = await spawned(world, session, GROUP)
            await taken(world, session, group)
    assert len((await world.run(parent)).children) == number
    return counted.calls / number


async def children_told_at_the_end(world: World, number: int) -> float:
    """A parent that reads nothing: all results go into its own, and leave memory with it."""
    parent = await world.spawn("parent")
    session = (await world.until(parent, Phase.RUNNING)).session_key
    for _ in range(number // GROUP):
        group = await spawned(world, session, GROUP)
        for run_id in group:
            await world.until(run_id)
    with counting_calls() as counted:
        await world.until(parent)
        await taken(world, ME, [parent])
        await world.clock.until(lambda: not world.engine.queries.open_runs)
    return counted.calls / number


async def children_cancelled_with_their_parent(world: World, number: int) -> float:
    """All end at once, are announced and cleaned up, and leave memory together."""
    parent = await world.spawn("hang")
    session = (await world.until(parent, Phase.RUNNING)).session_key
    for _ in range(number // GROUP):
        for run_id in await spawned(world, session, GROUP, agent_id="hang"):
            await world.until(run_id, Phase.RUNNING)
    with counting_calls() as counted:
        await world.clock.result(world.engine.control.cancel(parent, by="me"))
        await taken(world, ME, [parent])
        await world.clock.until(lambda: not world.engine.queries.open_runs)
    return counted.calls / number


async def fan_in(world: World, number: int) -> float:
    """One run that waits for many, which wait for one."""
    gate = await world.spawn("hang")
    go_on = OnDependencyFailure.RUN
    with counting_calls() as counted:
        ids: list[RunId] = []
        for _ in range(number // GROUP):
            ids += await spawned(world, ME, GROUP, depends_on=(gate,), on_dependency_failure=go_on)
        last = await world.spawn(depends_on=tuple(ids))
        await world.clock.result(world.engine.control.cancel(gate, by="me"))
        await world.until(last)
    return counted.calls / number


async def spawned(
    world: World, session: SessionKey, number: int, *, agent_id: str = "quick", **spec: object
) -> list[RunId]:
    spawns = (world.try_spawn(agent_id, requester=session, **spec) for _ in range(number))
    receipts = await world.clock.result(asyncio.gather(*spawns))
    return [receipt.run.id for receipt in receipts]


async def taken(world: World, session: SessionKey, ids: list[RunId]) -> None:
    found = await world.clock.result(
        world.engine.mailbox.wait(ids, session=session, until="all", reader="me", timeout_s=300)
    )
    assert len(found.completed) == len(ids)
    await world.clock.result(world.engine.mailbox.acknowledge(found.offered, reader="me"))


@pytest.mark.requirement("children:linear")
@pytest.mark.parametrize(
    "shape", [children, children_told_at_the_end, children_cancelled_with_their_parent, fan_in]
)
def test_each_of_many_costs_what_each_of_few_costs(tmp_path: Path, shape: Shape) -> None:
    each = []
    for number in (FEW, MANY):
        directory = tmp_path / str(number)
        directory.mkdir()
        each.append(
            in_world(
                directory,
                lambda world, number=number: shape(world, number),  # type: ignore[misc]  # bound
                max_children_per_agent=1_000,
                max_spawn_depth=2,
                max_concurrent=1_000,
            )
        )

    few, many = each
    assert many <= few * RATIO, f"{many:.0f} calls each among {MANY}, {few:.0f} among {FEW}"
