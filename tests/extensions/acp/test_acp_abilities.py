"""What a runtime of many programs can do depends on the one that an agent's options name."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.runtimes.attempt_harness import off_loop

from subagents.engine.kernel.system_clock import SystemClock
from subagents.extensions.acp.acp import AcpDialect
from subagents.extensions.conversation.conversation import ConversationRuntime
from subagents.ports.workers import abilities_of
from subagents.runtimes.process.shim import ProcessAttempts


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
    attempts = ProcessAttempts(tmp_path, SystemClock(), off_loop)
    runtime = ConversationRuntime(AcpDialect(), attempts, SystemClock(), off_loop, bridge=())

    found = abilities_of(runtime, options)

    assert (found.steer, found.resume) == (steer, resume)
