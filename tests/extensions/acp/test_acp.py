"""The dialect of ACP agents: how their programs are started."""

import stat
from pathlib import Path

import pytest
from tests.extensions.acp.acp_folds import DIALECT, of_agent, opening

from subagents.domain.rules.budgets.budgets import Overshoot, overshoot
from subagents.domain.run.spec import Budget
from subagents.errors import UsageError
from subagents.extensions.conversation.versions_seen import newest_seen


def program(directory: Path, name: str) -> Path:
    path = directory / name
    path.write_text("#!/bin/sh\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.requirement("acp:start:argv")
def test_an_agent_of_the_table_is_started_with_its_arguments_wherever_it_is(tmp_path: Path) -> None:
    found = program(tmp_path, "gemini")
    by_path = DIALECT.invocation(
        of_agent("gemini", cwd=str(tmp_path)), directory="/a", path=str(tmp_path)
    )
    options = {"agent": "gemini", "command": [str(found), "x.js"], "args": ["--debug"]}
    named = DIALECT.invocation(
        opening(options=options, cwd="/", model="m1"), directory="/a", path=""
    )

    assert by_path.argv == (str(found), "--acp", "--skip-trust")
    assert named.argv[1:] == ("x.js", "--acp", "--skip-trust", "--debug", "-m", "m1")
    assert by_path.env["GEMINI_CLI_NO_RELAUNCH"] == "true"


@pytest.mark.requirement("budget:honest-receipt")
@pytest.mark.parametrize(
    ("agent", "bound"),
    [
        ("claude-agent-acp", Overshoot.ONE_TURN),
        ("codex-acp", Overshoot.ONE_TURN),
        ("gemini", Overshoot.ONE_TURN),
        ("qwen", Overshoot.ONE_REQUEST),
        ("opencode", Overshoot.UNBOUNDED),
        ("goose", Overshoot.UNBOUNDED),
    ],
)
def test_how_exactly_a_budget_is_kept_is_what_was_measured_of_the_agent(
    agent: str, bound: Overshoot
) -> None:
    abilities = DIALECT.abilities_of({"agent": agent})

    assert overshoot(Budget(max_tokens=10_000), abilities) is bound


@pytest.mark.requirement("acp:start:missing")
def test_an_agent_that_is_not_installed_is_refused_with_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        DIALECT.invocation(of_agent("qwen", cwd="/"), directory="/a", path=str(tmp_path))
    assert "no program 'qwen'" in str(caught.value)
    assert f"npm @qwen-code/qwen-code {newest_seen('qwen')}" in str(caught.value)


@pytest.mark.requirement("acp:start:environment")
def test_an_agent_gets_its_own_keys_and_nobody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "gemini")
    monkeypatch.setenv("GEMINI_API_KEY", "g-key")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    own = opening(options={"agent": "gemini", "env": {"GEMINI_API_KEY": "mine"}}, cwd="/")

    passed = DIALECT.invocation(of_agent("gemini", cwd="/"), directory="/a", path=str(tmp_path)).env
    written = DIALECT.invocation(own, directory="/a", path=str(tmp_path)).env

    assert passed["GEMINI_API_KEY"] == "g-key"
    assert "ANTHROPIC_API_KEY" not in passed
    assert written["GEMINI_API_KEY"] == "mine"
