"""A denied ability is denied under every name it has."""

import pytest
from tests.builders import a_resolved

from subagents.domain.rules.tool_kinds import (
    KINDS,
    ToolScope,
    abroad,
    intersection,
    kind_of,
    kinds_of,
    offers,
)


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


@pytest.mark.requirement("sessions:continue:never-wider")
def test_scopes_meet_in_what_both_have() -> None:
    assert intersection(None, None) is None
    assert intersection(("a",), None) == ("a",)
    assert intersection(None, ("a",)) == ("a",)
    assert intersection(("a", "b", "c"), ("c", "a")) == ("a", "c")
    assert intersection(("Read", "Bash"), ("read",)) == ("Read",)
    assert intersection(("read",), ("Read", "Bash")) == ("Read",)
    assert intersection((), ("Read",)) == ()


@pytest.mark.requirement("tools:subset:other-agents")
def test_for_another_program_a_scope_is_of_kinds() -> None:
    """Its tools have other names; a rule within a tool means nothing to it, and allows nothing."""
    assert abroad(None) is None
    assert abroad(("Read", "Bash(git:*)", "mcp__github__search", "edit_file")) == (
        "read",
        "mcp__github__search",
        "edit",
    )


@pytest.mark.requirement("tools:allow:empty")
def test_an_empty_list_offers_the_report_and_nothing_else_of_ours() -> None:
    none, some = a_resolved(effective_tools=()), a_resolved(effective_tools=("read",))
    assert offers(none, "report_completion")
    assert not offers(none, "sessions_spawn")
    assert not offers(none, "request_orchestrator")
    assert offers(some, "sessions_spawn")
    assert offers(a_resolved(), "sessions_spawn")
    assert not offers(a_resolved(tools_deny=("sessions_spawn",)), "sessions_spawn")
