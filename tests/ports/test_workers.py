"""What an agent's runtime can do may depend on the agent's options."""

from pathlib import Path

import pytest
from tests.runtimes.attempt_harness import off_loop

from subagents.engine.kernel.system_clock import SystemClock
from subagents.ports.workers import abilities_of
from subagents.runtimes.command import CommandRuntime


@pytest.mark.requirement("acp:abilities")
def test_a_runtime_of_one_program_has_its_own_whatever_the_options(tmp_path: Path) -> None:
    runtime = CommandRuntime(tmp_path, SystemClock(), off_loop)

    assert abilities_of(runtime, {"command": ["true"]}) == runtime.abilities
