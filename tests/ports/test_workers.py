"""What an agent's runtime can do may depend on the agent's options."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import pytest

from subagents.extensions.acp.acp import AcpDialect
from subagents.extensions.conversation.conversation import ConversationRuntime
from subagents.ports.workers import abilities_of
from subagents.runtimes.command import CommandRuntime
from subagents.runtimes.process.shim import ProcessAttempts

T = TypeVar("T")


class Clock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        del seconds


def off_loop(work: Callable[[], T], /) -> Awaitable[T]:
    return asyncio.to_thread(work)


@pytest.mark.requirement("acp:abilities")
@pytest.mark.parametrize(
    ("options", "steer", "resume"),
    [
        ({"agent": "opencode"}, True, True),
        ({"agent": "gemini"}, False, False),
        ({"command": ["unknown-agent"]}, False, False),
        ({"command": ["unknown-agent"], "second_prompt": "steers", "resumes": True}, True, True),
    ],
)
def test_a_runtime_of_many_programs_has_the_abilities_of_the_one_that_the_options_name(
    tmp_path: Path,
    options: Mapping[str, object],
    steer: bool,  # noqa: FBT001
    resume: bool,  # noqa: FBT001
) -> None:
    attempts = ProcessAttempts(tmp_path, Clock(), off_loop)
    runtime = ConversationRuntime(AcpDialect(), attempts, Clock(), off_loop, bridge=())

    found = abilities_of(runtime, options)

    assert (found.steer, found.resume) == (steer, resume)


@pytest.mark.requirement("acp:abilities")
def test_a_runtime_of_one_program_has_its_own_whatever_the_options(tmp_path: Path) -> None:
    runtime = CommandRuntime(tmp_path, Clock(), off_loop)

    assert abilities_of(runtime, {"command": ["true"]}) == runtime.abilities
