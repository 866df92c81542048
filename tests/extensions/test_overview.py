"""With all extensions there is every command."""

import pytest
from tests.cli.test_main import NAMED_IN_THE_SPEC

from subagents.cli.command_table import commands


@pytest.mark.requirement("cli:help")
def test_every_command_is_there() -> None:
    assert {command.name for command in commands()} == set(NAMED_IN_THE_SPEC)
