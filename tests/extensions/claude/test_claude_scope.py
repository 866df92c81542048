"""What Claude Code is kept to, as its command line says it."""

import pytest
from tests.extensions.claude.claude_folds import DIALECT, argv

from subagents.errors import Forbidden
from subagents.extensions.claude import claude_scope
from subagents.extensions.claude.claude_options import ClaudeOptions


def values(words: list[str], name: str) -> list[str]:
    found = [word.partition("=")[2] for word in words if word.partition("=")[0] == name]
    assert len(found) <= 1
    return [each for each in found[0].split(",") if each] if found else []


@pytest.mark.requirement("claude-worker:scope:unscoped")
def test_without_a_scope_all_its_tools_are_allowed_but_those_that_reach_other_sessions() -> None:
    words = argv()
    assert not values(words, "--tools")
    allowed, off = values(words, "--allowedTools"), values(words, "--disallowedTools")
    assert {"Bash", "Write", "Agent", "mcp__subagents"} <= set(allowed)
    assert {"SendMessage", "ListAgents", "ScheduleWakeup", "Monitor"} == set(off) - {
        "CronCreate",
        "CronDelete",
        "CronList",
    }
    assert "--permission-mode=dontAsk" in words
    back = argv(options={"allow": ["SendMessage", "mcp__github"]})
    assert "SendMessage" not in values(back, "--disallowedTools")
    assert "mcp__github" in values(back, "--allowedTools")


@pytest.mark.requirement("claude-worker:scope:only-these")
def test_a_scope_decides_which_tools_exist() -> None:
    words = argv(tools=("Read", "Bash(git:*)", "web", "read_file"), options={"allow": ["Write"]})
    assert values(words, "--tools") == ["Read", "Bash", "WebFetch", "WebSearch", "NotebookRead"]
    allowed = values(words, "--allowedTools")
    assert "Bash(git:*)" in allowed
    assert "Bash" not in allowed
    assert "Write" not in allowed
    assert "mcp__subagents" in allowed
    assert "--tools=" in argv(tools=())


@pytest.mark.requirement("claude-worker:scope:deny-holds-under-every-name")
@pytest.mark.parametrize("name", ["Bash", "exec_command", "shell", "run_shell_command", "Monitor"])
def test_a_denied_shell_is_off_under_every_name(name: str) -> None:
    words = argv(tools_deny=(name,), tools=("Bash", "Monitor", "Read"))
    assert {"Bash", "Monitor", "PowerShell"} <= set(values(words, "--disallowedTools"))
    assert values(words, "--tools") == ["Read"]
    assert "Bash" not in values(words, "--allowedTools")


@pytest.mark.requirement("claude-worker:scope:agents-by-both-names")
@pytest.mark.parametrize("name", ["Task", "Agent", "spawn_agent"])
def test_agents_of_its_own_are_off_under_both_names_and_as_workflows(name: str) -> None:
    off = set(values(argv(tools_deny=(name,)), "--disallowedTools"))
    assert {"Task", "Agent", "Workflow"} <= off


@pytest.mark.requirement("claude-worker:scope:our-own-tools")
def test_our_tools_are_allowed_unless_one_is_denied_by_name() -> None:
    off = values(argv(tools_deny=("sessions_spawn",)), "--disallowedTools")
    assert "mcp__subagents__sessions_spawn" in off
    whole = argv(tools_deny=("mcp__subagents",))
    assert "mcp__subagents" not in values(whole, "--allowedTools")


@pytest.mark.requirement("claude-worker:scope:refuses-what-cannot-hold")
@pytest.mark.parametrize(
    ("options", "tools", "deny", "output"),
    [
        ({}, None, ("Bash(rm:*)",), "deny the whole tool"),
        ({"permission_mode": "acceptEdits"}, ("Bash(git:*)",), (), "mode allows more"),
        ({"setting_sources": ["user"]}, ("Bash(git:*)",), (), "settings files"),
        (
            {"strict_mcp_config": False, "setting_sources": ["user"]},
            ("Read",),
            (),
            "MCP servers of its own",
        ),
        ({}, ("Read,Bash",), (), "no name of a tool"),
    ],
)
def test_a_scope_that_cannot_hold_is_refused(
    options: dict[str, object], tools: tuple[str, ...] | None, deny: tuple[str, ...], output: str
) -> None:
    with pytest.raises(Forbidden) as raised:
        DIALECT.check_scope(options, tools, deny)
    assert output in f"{raised.value.message} {raised.value.hint}"
    assert raised.value.guardrail == "tools"


@pytest.mark.requirement("claude-worker:scope:refuses-what-cannot-hold")
def test_a_scope_that_holds_is_taken() -> None:
    DIALECT.check_scope({}, ("Bash(git:*)", "Read", "mcp__github__get_issue"), ("Write", "web"))
    DIALECT.check_scope({"permission_mode": "bypassPermissions"}, ("Read",), ("Bash",))
    assert claude_scope.flags(ClaudeOptions(), None, ()).tools is None
