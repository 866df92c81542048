"""Which tools the worker has, and what they take."""

import pytest
from tests.extensions.llm.agent_loop.tool_calls import call

from subagents.extensions.llm.agent_loop.tools.loop_tools import own_tools
from subagents.extensions.llm.agent_loop.tools.path_bounds import PathBounds
from subagents.extensions.llm.agent_loop.tools.shell_tool import (
    Shell,
)
from subagents.extensions.llm.llm_assignment import OWN_TOOLS


@pytest.mark.requirement("llm:tools:arguments")
def test_wrong_arguments_are_said_by_name_and_numbers_in_text_are_numbers(
    bounds: PathBounds,
) -> None:
    assert call(bounds, "read", path="a.txt", limit="1").startswith("1\tone")
    assert "`path`" in call(bounds, "read")
    assert "`contents`" in call(bounds, "write", path="x", contents="y")


@pytest.mark.requirement("llm:scope:construction")
def test_only_the_tools_that_are_named_are_made(bounds: PathBounds) -> None:
    shell = Shell(str(bounds.root), ())
    made = own_tools(["read", "grep"], bounds, shell, shell_timeout_s=1)
    assert [each.name for each in made] == ["read", "grep"]
    assert [each.name for each in own_tools(OWN_TOOLS, bounds, shell, shell_timeout_s=1)] == [
        *OWN_TOOLS
    ]
