"""How Claude Code is started: options, arguments, tool scopes, and what is refused before."""

import json
import uuid
from pathlib import Path

import pytest
from tests.extensions.claude.claude_folds import DIALECT, OPENING, SESSION, argv

from subagents.domain.run.values import replace
from subagents.errors import Forbidden, UsageError
from subagents.extensions.claude.claude_options import parse_options


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


@pytest.mark.requirement("claude-worker:start:mcp-servers")
def test_named_servers_are_started_by_us_and_their_tools_need_no_question() -> None:
    options = {"program": "/bin/true", "mcp_servers": ["scales"]}
    opening = replace(OPENING, options=options)
    found = DIALECT.invocation(opening, directory="/attempt", path="/usr/bin")
    servers = json.loads(found.files["mcp.json"])["mcpServers"]
    assert servers["scales"]["args"] == ["mcp", "--server=scales"]
    allowed = next(each for each in found.argv if each.startswith("--allowedTools="))
    assert "mcp__scales" in allowed
    read = replace(opening, tools=("Read",))
    found = DIALECT.invocation(read, directory="/attempt", path="/usr/bin")
    assert json.loads(found.files["mcp.json"])["mcpServers"].keys() == {"subagents"}
    for more in ({"strict_mcp_config": False}, {"args": ["--plugin-dir=x"]}):
        with pytest.raises(Forbidden, match="brings others"):
            DIALECT.check_servers({**options, **more})


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


@pytest.mark.requirement("claude:continue", "versions:by-feature")
def test_a_session_that_goes_on_is_sent_the_runs_own_instructions_by_programs_that_keep_the_first(
    tmp_path: Path,
) -> None:
    newer = tmp_path / "claude"
    newer.write_text("#!/bin/sh\necho '  --system-prompt-snapshot <on|off>  Record it'\n")
    newer.chmod(0o755)
    option = "--system-prompt-snapshot=off"

    assert option in argv(session_id="s", options={"program": str(newer)})
    assert option not in argv(options={"program": str(newer)})
    assert option not in argv(session_id="s")


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
    # What it obeys there stays as it is, in a sandbox whose working directory it may write in.
    assert DIALECT.places(options, {"HOME": "/me", **found.env}).guarded == ("/place/project/cfg/",)
    unknown = replace(OPENING, options={"program": "~nobody-here/claude"})
    with pytest.raises(UsageError, match="there is no program"):
        DIALECT.invocation(unknown, directory="/attempt", path="/usr/bin")
    assert "DISABLE_AUTOUPDATER" not in found.env
    assert found.env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] == "1"
    assert parse_options({"background": True}).background


@pytest.mark.requirement("claude-worker:start:bypass-as-root")
def test_bypassing_permissions_as_root_is_refused_before_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(UsageError, match="IS_SANDBOX"):
        argv(options={"permission_mode": "bypassPermissions"})
    assert argv(options={"permission_mode": "bypassPermissions", "env": {"IS_SANDBOX": "1"}})
