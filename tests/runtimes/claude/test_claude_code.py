"""How Claude Code is started: options, arguments, tool scopes, and what is refused before."""

import json
import sys
import uuid
from pathlib import Path
from typing import Any, Final

import pytest

from subagents.domain.run.values import AttemptId, RunId, replace
from subagents.errors import ConfigError, Forbidden, UsageError
from subagents.runtimes.claude import claude_scope
from subagents.runtimes.claude.claude_code import ClaudeDialect
from subagents.runtimes.claude.claude_options import ClaudeOptions, bundled_program, parse_options
from subagents.runtimes.conversation.dialect import Opening

SESSION: Final = "11111111-2222-4333-8444-555555555555"
DIALECT: Final = ClaudeDialect()

OPENING: Final = Opening(
    attempt_id=AttemptId("r-started#1"),
    run_id=RunId("r-started"),
    number=1,
    turn=1,
    message="do it",
    system_prompt="You are a worker.",
    cwd="/place/project",
    session_uuid=SESSION,
    bridge=("/usr/bin/subagents", "mcp"),
)


def argv(**changes: Any) -> list[str]:
    options = {"program": "/bin/true", **changes.pop("options", {})}
    opening = replace(OPENING, options=options, **changes)
    return list(DIALECT.invocation(opening, directory="/attempt", path="/usr/bin").argv)


def values(words: list[str], name: str) -> list[str]:
    found = [word.partition("=")[2] for word in words if word.partition("=")[0] == name]
    assert len(found) <= 1
    return [each for each in found[0].split(",") if each] if found else []


@pytest.mark.requirement("claude-worker:start:no-secret-no-prompt-in-arguments")
def test_neither_the_prompt_nor_the_instructions_nor_a_token_are_arguments() -> None:
    opening = replace(OPENING, options={"program": "/bin/true"}, message="SECRET PLAN")
    found = DIALECT.invocation(opening, directory="/attempt", path="/usr/bin")
    shown = " ".join(found.argv)
    assert "SECRET PLAN" not in shown
    assert "You are a worker." not in shown
    assert found.files["instructions"] == b"You are a worker."
    server = json.loads(found.files["mcp.json"])["mcpServers"]["subagents"]
    assert (server["command"], server["args"]) == ("/usr/bin/subagents", ["mcp"])
    assert "env" not in server
    (input_line,) = DIALECT.begin(opening).input_lines
    assert input_line.key == "prompt"
    assert json.loads(input_line.line)["message"]["content"] == "SECRET PLAN"


@pytest.mark.requirement("claude-worker:start:task-is-taken-word-for-word")
def test_a_task_is_taken_word_for_word_so_that_it_pulls_in_no_file() -> None:
    (input_line,) = DIALECT.begin(OPENING).input_lines
    assert json.loads(input_line.line)["client_composed"] is True
    steer = DIALECT.steer(DIALECT.begin(OPENING).state, "@/etc/passwd", key="k")
    assert steer is not None
    assert json.loads(steer.line)["client_composed"] is True


@pytest.mark.requirement("claude-worker:start:session-id")
def test_a_session_gets_our_id_and_a_further_turn_goes_on_with_it() -> None:
    assert f"--session-id={SESSION}" in argv()
    (named,) = [each for each in argv(session_uuid="main") if each.startswith("--session-id=")]
    assert str(uuid.UUID(named.partition("=")[2])) in named
    resumed = argv(session_id="-x --dangerous", turn=2)
    assert "--resume=-x --dangerous" in resumed
    assert not [word for word in resumed if word.startswith("--session-id")]


@pytest.mark.requirement("claude-worker:start:own-settings-only")
def test_nothing_of_the_users_own_configuration_is_read_unless_it_is_asked_for() -> None:
    plain = argv()
    assert "--setting-sources=" in plain
    assert "--strict-mcp-config" in plain
    opened = argv(options={"setting_sources": ["project"], "strict_mcp_config": False})
    assert "--setting-sources=project" in opened
    assert "--strict-mcp-config" not in opened


@pytest.mark.requirement("claude-worker:start:model-and-thinking")
@pytest.mark.parametrize(
    ("level", "word"),
    [
        ("high", "--effort=high"),
        ("off", "--thinking=disabled"),
        ("8000", "--max-thinking-tokens=8000"),
    ],
)
def test_model_and_thinking_are_handed_over(level: str, word: str) -> None:
    words = argv(model="sonnet", thinking=level)
    assert {"--model=sonnet", word} <= set(words)
    with pytest.raises(UsageError, match="thinking"):
        argv(thinking="very")


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


@pytest.mark.requirement("claude-worker:options:checked")
@pytest.mark.parametrize(
    ("options", "output"),
    [
        ({"max_turn": 3}, "did you mean `max_turns`"),
        ({"max_turns": 0}, "max_turns"),
        ({"permission_mode": "yolo"}, "permission_mode"),
        ({"setting_sources": ["global"]}, "setting_sources"),
        ({"args": ["--resume=x"]}, "goes on with the session"),
        ({"args": ["--dangerously-skip-permissions"]}, "permission_mode"),
        ({"env": {"SUBAGENTS_TOKEN": "x"}}, "SUBAGENTS_TOKEN"),
        ({"program": "a\0b"}, "NUL"),
        ({"allow": ["Read,Bash"]}, "holds several"),
    ],
)
def test_an_odd_option_is_named_with_what_is_allowed(
    options: dict[str, object], output: str
) -> None:
    with pytest.raises(ConfigError, match=output):
        DIALECT.check(options)


@pytest.mark.requirement("claude-worker:options:checked")
def test_options_become_arguments_and_variables() -> None:
    options = {
        "program": "/bin/true",
        "max_turns": 7,
        "max_budget_usd": 1.5,
        "fallback_model": ["a", "b"],
        "args": ["--add-dir=/x"],
        "config_dir": "cfg",
        "env": {"DISABLE_AUTOUPDATER": "0"},
    }
    found = DIALECT.invocation(
        replace(OPENING, options=options), directory="/attempt", path="/usr/bin"
    )
    assert {
        "--max-turns=7",
        "--max-budget-usd=1.500000",
        "--fallback-model=a,b",
        "--add-dir=/x",
    } <= set(found.argv)
    assert found.env["CLAUDE_CONFIG_DIR"] == "/place/project/cfg"
    assert "DISABLE_AUTOUPDATER" not in found.env
    assert found.env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] == "1"
    assert parse_options({"background": True}).background


@pytest.mark.requirement("claude-worker:start:program")
def test_a_program_that_is_nowhere_is_told_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    assert bundled_program() is None
    with pytest.raises(UsageError, match="claude-agent-sdk"):
        DIALECT.invocation(OPENING, directory="/attempt", path="/nowhere")
    named = replace(OPENING, options={"program": "./no-such"})
    with pytest.raises(UsageError, match=r"runtime_options\.program"):
        DIALECT.invocation(named, directory="/attempt", path="/nowhere")


@pytest.mark.requirement("claude-worker:start:too-old")
@pytest.mark.parametrize(("version", "way_out"), [("2.1.247", "claude update"), ("2.1.248", None)])
def test_a_program_that_would_not_take_a_task_word_for_word_is_refused(
    tmp_path: Path, version: str, way_out: str | None
) -> None:
    claude = tmp_path / "claude"
    claude.write_text(f"#!/bin/sh\necho '{version} (Claude Code)'\n")
    claude.chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    if way_out is not None:
        with pytest.raises(UsageError, match=way_out):
            DIALECT.invocation(OPENING, directory="/attempt", path=path)
    else:
        found = DIALECT.invocation(OPENING, directory="/attempt", path=path)
        assert found.argv[0] == str(claude)


@pytest.mark.requirement("claude-worker:start:bypass-as-root")
def test_bypassing_permissions_as_root_is_refused_before_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(UsageError, match="IS_SANDBOX"):
        argv(options={"permission_mode": "bypassPermissions"})
    assert argv(options={"permission_mode": "bypassPermissions", "env": {"IS_SANDBOX": "1"}})
