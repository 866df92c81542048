"""What there is with all extensions: every command, and what a client of MCP is told of them."""

from pathlib import Path

import pytest
from scripts.handshake_answers import FILE, recorded
from tests.cli.test_main import NAMED_IN_THE_SPEC

from subagents.cli.command_table import commands


@pytest.mark.requirement("cli:help")
def test_every_command_is_there() -> None:
    assert {command.name for command in commands()} == set(NAMED_IN_THE_SPEC)


@pytest.mark.requirement("mcp:bridge:handshake")
def test_what_the_bridge_says_is_what_the_daemon_says_byte_for_byte(tmp_path: Path) -> None:
    assert FILE.read_bytes() == recorded(tmp_path), "run `make docs`"
