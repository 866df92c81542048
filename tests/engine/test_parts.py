"""What extensions do beside the engine's own parts."""

from collections.abc import Callable, Collection
from typing import Any

import pytest
from tests.engine.world import ME, World

from subagents import extension
from subagents.domain.run.values import SessionKey
from subagents.engine.engine import Engine, HasSession, Part
from subagents.errors import StoreUnavailable


class Notes(Part):
    """Takes note of what an engine asks of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @property
    def sessions(self) -> frozenset[SessionKey]:
        return frozenset({ME})

    async def read(self, has: HasSession) -> Callable[[], None]:
        self.asked.append(f"read, has it: {await has(ME)}")
        return lambda: self.asked.append("take")

    def leave(self, sessions: Collection[SessionKey]) -> None:
        self.asked.append(f"leave {', '.join(sessions)}")

    async def tidy(self) -> None:
        self.asked.append("tidy")

    async def settle(self) -> None:
        self.asked.append("settle")


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    """A part of each engine that is made."""
    found = Notes()

    def made(hook: str, *_given: Any) -> list[tuple[str, Part]]:
        return [("notes", found), ("nothing", Part())] if hook == "parts" else []

    monkeypatch.setattr(extension, "made", made)
    return found


ONCE = ["read, has it: True", f"leave {ME}", "take"]


@pytest.mark.requirement("extensions:parts", "durability:crash")
async def test_a_part_reads_what_is_stored_at_a_start_and_after_a_commit_that_failed(
    world: World, notes: Notes
) -> None:
    assert [*world.engine.parts] == ["notes", "nothing"]
    assert notes.asked == ONCE
    world.store.failures_left = 1
    with pytest.raises(StoreUnavailable):
        await world.spawn("quick")
    await world.clock.advance(5)
    assert notes.asked == ONCE * 2


@pytest.mark.requirement("extensions:parts")
async def test_a_part_tidies_in_each_sweep_and_settles_at_a_stop(
    world: World, notes: Notes
) -> None:
    await world.clock.result(world.engine.sweep.once())
    assert notes.asked == [*ONCE, "tidy"]
    await world.clock.result(world.engine.stop())
    assert notes.asked == [*ONCE, "tidy", "settle"]


@pytest.mark.requirement("extensions:parts")
async def test_the_work_that_a_part_keeps_goes_on_after_a_mistake_and_ends_with_what_is_in_memory(
    world: World,
) -> None:
    engine: Engine = world.engine
    begun = []

    async def work() -> None:
        begun.append(engine.ledger.loads)
        if len(begun) == 1:
            raise MemoryError
        await world.clock.sleep(1_000)

    task = engine.keep(work, "work")
    await world.clock.advance(5)
    assert (len(begun), task.done()) == (2, False)
    world.store.failures_left = 1
    with pytest.raises(StoreUnavailable):
        await world.spawn("quick")
    await world.clock.advance(5)
    assert (len(begun), task.done()) == (2, True)
