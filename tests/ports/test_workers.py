"""What an agent's runtime can do may depend on the agent's options."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from subagents.ports.workers import abilities_of
from subagents.runtimes.command import CommandRuntime

T = TypeVar("T")


class Clock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        del seconds


def off_loop(work: Callable[[], T], /) -> Awaitable[T]:
    return asyncio.to_thread(work)


@pytest.mark.requirement("acp:abilities")
def test_a_runtime_of_one_program_has_its_own_whatever_the_options(tmp_path: Path) -> None:
    runtime = CommandRuntime(tmp_path, Clock(), off_loop)

    assert abilities_of(runtime, {"command": ["true"]}) == runtime.abilities
