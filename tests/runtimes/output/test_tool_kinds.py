"""A denied ability is denied under every name it has."""

import pytest

from subagents.runtimes.output.tool_kinds import KINDS, ToolScope, kind_of, kinds_of


@pytest.mark.requirement("scope:kinds")
def test_a_name_of_any_program_stands_for_what_it_does() -> None:
    assert kind_of("Bash(git:*)") == kind_of(" exec_command ") == kind_of("shell") == "shell"
    assert kind_of("Task") == kind_of("Agent") == "agents"
    assert kind_of("frobnicate") is None
    assert kinds_of(["Bash", "frobnicate", "Grep"]) == {"shell", "search"}


@pytest.mark.requirement("scope:kinds")
def test_no_name_is_of_two_kinds() -> None:
    names = [name for names in KINDS.values() for name in names]

    assert len(names) == len(set(names))
    assert all(name == name.lower() for name in names)


@pytest.mark.requirement("scope:kinds")
@pytest.mark.parametrize(
    ("scope", "shell", "may_write", "is_open"),
    [
        (ToolScope(), True, True, True),
        (ToolScope(tools=("Read",)), False, False, False),
        (ToolScope(tools=("Bash", "Write")), True, True, False),
        (ToolScope(deny=("exec_command",)), False, True, False),
        (ToolScope(deny=("Write",)), True, False, False),
        (ToolScope(tools=("Edit",), deny=("apply_patch",)), False, False, False),
    ],
)
def test_a_scope_tells_what_a_worker_may_do(
    scope: ToolScope,
    shell: bool,  # noqa: FBT001
    may_write: bool,  # noqa: FBT001
    is_open: bool,  # noqa: FBT001
) -> None:
    assert (scope.has("shell"), scope.may_write, scope.is_open) == (shell, may_write, is_open)
