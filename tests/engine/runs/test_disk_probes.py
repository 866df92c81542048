"""Looks at the disk: one for all who ask, and the next one beside them."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest
from tests.engine.fake_clock import FakeClock

from subagents.engine.runs.disk_probes import PROBE_MS, PROBE_MS_MAX, CachedProbe

T = TypeVar("T")


class _Disk:
    """Answers as it is told, when it is let; counts the looks."""

    def __init__(self) -> None:
        self.is_well = True
        self.looks = 0
        self.answers = asyncio.Event()
        self.answers.set()

    def look(self) -> bool:
        self.looks += 1
        return self.is_well

    async def off_loop(self, work: Callable[[], T]) -> T:
        await self.answers.wait()
        return work()


@pytest.mark.requirement("spawn:probes")
async def test_a_disk_that_was_well_is_looked_at_again_while_nobody_waits() -> None:
    clock, disk = FakeClock(), _Disk()
    probe = CachedProbe(disk.off_loop, clock)
    assert await asyncio.gather(*(probe.is_well("room", disk.look) for _ in range(9))) == [True] * 9
    assert disk.looks == 1

    disk.answers.clear()
    clock.jump(PROBE_MS / 1000)
    async with asyncio.timeout(0):
        assert all([await probe.is_well("room", disk.look) for _ in range(9)])
    disk.answers.set()
    await clock.idle()
    assert disk.looks == 2

    clock.jump(PROBE_MS_MAX / 1000)
    assert await probe.is_well("room", disk.look)
    assert disk.looks == 3


@pytest.mark.requirement("spawn:probes")
async def test_a_bad_answer_ends_the_good_one_before_it() -> None:
    clock, disk = FakeClock(), _Disk()
    probe = CachedProbe(disk.off_loop, clock)
    assert await probe.is_well("room", disk.look)
    disk.is_well = False
    clock.jump(PROBE_MS / 1000)
    assert await probe.is_well("room", disk.look)
    await clock.idle()
    assert not await probe.is_well("room", disk.look)
    assert not await probe.is_well("room", disk.look)
