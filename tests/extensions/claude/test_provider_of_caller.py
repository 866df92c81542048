"""An agent program asks its provider as the caller does, whoever started the daemon."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.cli.cli_home import Home, temporary_home

CLAUDE = """#!/bin/sh
case "$1" in --version) echo "2.1.330 (Claude Code)"; exit;; esac
env | grep -E '^(ANTHROPIC|OPENAI|GEMINI)_' | sort | tr '\\n' ' ' > seen
exit 1
"""
SECTION = """
[agents.claude]
runtime = "claude-code"
access = "full"

[agents.team]
runtime = "claude-code"
access = "full"
env = { ANTHROPIC_API_KEY = "of-the-team" }
"""
ADDRESS = "ANTHROPIC_BASE_URL=http://127.0.0.1:9"
MINE = {"ANTHROPIC_API_KEY": "mine"}
OURS = ("ANTHROPIC_", "OPENAI_", "GEMINI_", "CLAUDE_")


def home_of(root: Path, daemon: Mapping[str, str]) -> Iterator[Home]:
    """A home whose daemon was started with these variables, and with the program above."""
    with temporary_home(root) as home:
        program = root / "bin" / "claude"
        program.parent.mkdir()
        program.write_text(CLAUDE)
        program.chmod(0o755)
        config = root / "h" / "config" / "subagents.toml"
        config.parent.mkdir(parents=True)
        config.write_text(SECTION)
        home.environ["PATH"] = f"{program.parent}{os.pathsep}{home.env()['PATH']}"
        home.environ["HOME"] = str(root)
        home.ok("up", env=daemon)
        yield home


@pytest.fixture(scope="module")
def keyless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    yield from home_of(tmp_path_factory.mktemp("keyless"), {"SUBAGENTS_STARTED_BY": "codex"})


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    variables = {"ANTHROPIC_API_KEY": "daemons", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    yield from home_of(tmp_path_factory.mktemp("keyed"), variables)


@pytest.fixture(autouse=True)
def _own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in os.environ if each.startswith(OURS)]:
        monkeypatch.delenv(name)


def seen(home: Home, *flags: str, env: Mapping[str, str]) -> str:
    """What the program's worker had of such variables."""
    (home.work / "seen").unlink(missing_ok=True)
    assert home.cli("run", "hello", *flags, env=env).code == 5
    return (home.work / "seen").read_text().strip()


@pytest.mark.requirement("environment:provider")
@pytest.mark.parametrize(
    ("env", "flags", "had"),
    [
        ({}, (), ""),
        ({"ANTHROPIC_API_KEY": "mine"}, (), "ANTHROPIC_API_KEY=mine"),
        ({"ANTHROPIC_API_KEY": "mine", "OPENAI_API_KEY": "o"}, (), "ANTHROPIC_API_KEY=mine"),
        ({"ANTHROPIC_AUTH_TOKEN": "mine"}, (), "ANTHROPIC_AUTH_TOKEN=mine"),
        (MINE, ("--tag", "x=y", "--verify", "x"), "ANTHROPIC_API_KEY=mine"),
        (MINE, ("-e", "ANTHROPIC_API_KEY=named"), "ANTHROPIC_API_KEY=named"),
    ],
)
def test_a_key_of_the_caller_reaches_its_worker_although_the_daemon_has_none(
    keyless: Home, env: dict[str, str], flags: tuple[str, ...], had: str
) -> None:
    assert seen(keyless, "--agent", "claude", *flags, env=env) == had


@pytest.mark.requirement("environment:provider")
@pytest.mark.parametrize(
    ("agent", "env", "had"),
    [
        ("claude", {}, f"ANTHROPIC_API_KEY=daemons {ADDRESS}"),
        ("claude", {"ANTHROPIC_API_KEY": "mine"}, "ANTHROPIC_API_KEY=mine"),
        ("team", {"ANTHROPIC_API_KEY": "mine"}, f"ANTHROPIC_API_KEY=of-the-team {ADDRESS}"),
    ],
)
def test_the_daemons_login_stays_whole_or_goes_whole(
    keyed: Home, agent: str, env: dict[str, str], had: str
) -> None:
    assert seen(keyed, "--agent", agent, env=env) == had


@pytest.mark.requirement("environment:provider")
def test_the_value_of_a_key_is_in_no_answer_and_its_name_is(keyless: Home) -> None:
    env = {"ANTHROPIC_API_KEY": "sk-of-mine-0123456789"}
    seen(keyless, "--agent", "claude", env=env)
    shown = keyless.ok("show", "last", "--json")
    assert "ANTHROPIC_API_KEY" in shown.out
    assert env["ANTHROPIC_API_KEY"] not in shown.out


@pytest.mark.requirement("doctor:agents:login")
def test_doctor_says_whose_runs_have_a_key(keyless: Home) -> None:
    mine = keyless.cli("doctor", "--json", env={"ANTHROPIC_API_KEY": "mine"})
    details = [each["detail"] for each in mine.rows("checks") if each["name"] == "claude"]
    assert any("not in the daemon, which codex started" in each for each in details), details
    none = keyless.cli("doctor", "--json")
    details = [each["detail"] for each in none.rows("checks") if each["name"] == "claude"]
    assert any("nobody seems to be logged in" in each for each in details), details
