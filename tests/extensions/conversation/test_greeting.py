"""Whether a program speaks its protocol is found out without work, and nothing stays."""

import os
from pathlib import Path

import pytest
from tests.live_processes import is_running
from tests.runtimes.attempt_harness import until

from subagents.extensions.acp.acp import AcpDialect
from subagents.extensions.claude.claude_code import ClaudeDialect
from subagents.extensions.conversation import greeting

ANSWERS = """#!/bin/sh
echo "$$" > {pid}
read -r asked
echo '{answer}'
exec tail -f /dev/null
"""
GOOD = '{"jsonrpc": "2.0", "id": "initialize", "result": {"protocolVersion": 1}}'
OTHER = '{"jsonrpc": "2.0", "id": "initialize", "result": {"protocolVersion": 7}}'


def asked(tmp_path: Path, answer: str) -> str | None:
    program = tmp_path / "agent"
    program.write_text(ANSWERS.format(pid=tmp_path / "pid", answer=answer))
    program.chmod(0o755)
    options = {"command": [str(program)]}
    return greeting.problem(AcpDialect(), options, environ=os.environ, timeout_s=20)


@pytest.mark.requirement("conversation:greeting")
def test_a_program_that_answers_has_no_problem_and_is_ended(tmp_path: Path) -> None:
    assert asked(tmp_path, GOOD) is None
    pid = int((tmp_path / "pid").read_text())
    until("its end", lambda: not is_running(pid))


@pytest.mark.requirement("conversation:greeting")
def test_a_program_of_another_version_of_the_protocol_is_named_as_that(tmp_path: Path) -> None:
    assert "speaks version 7 of the protocol" in (asked(tmp_path, OTHER) or "")


@pytest.mark.requirement("conversation:greeting")
def test_a_program_that_is_not_there_is_a_problem_and_no_error() -> None:
    options = {"command": ["/no/such/program"]}
    found = greeting.problem(AcpDialect(), options, environ=os.environ, timeout_s=20)
    assert "/no/such/program" in (found or "")


@pytest.mark.requirement("conversation:greeting")
def test_a_program_that_begins_with_a_task_is_not_started() -> None:
    options = {"program": "/no/such/program"}
    assert greeting.problem(ClaudeDialect(), options, environ=os.environ, timeout_s=20) is None
