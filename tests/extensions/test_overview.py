"""What there is with all extensions: every command, and what a client of MCP is told of them."""

from pathlib import Path

import pytest
from scripts.handshake_answers import FILE, recorded

from subagents.cli.command_table import commands
from subagents.cli.completion import complete
from subagents.cli.help_page import page
from subagents.cli.main import main
from subagents.errors import EXIT_USAGE

ALONE = (
    *("run", "spawn", "map", "list", "show", "log", "why", "result", "events", "stats", "ui"),
    *("wait", "answer", "cancel", "retry", "inbox", "secret"),
    *("continue", "steer", "pause", "resume", "prioritize"),
    *("init", "config", "agents", "completion", "version", "demo", "doctor"),
    *("up", "down", "serve", "mcp", "hook", "report", "progress", "notify", "ask", "worker"),
)
BELOW = {
    "plan": ("run", "list"),
    "schedule": ("add", "list", "run-now", "remove"),
    "worktree": ("list", "diff", "merge", "prune"),
    "mcp": ("install", "uninstall", "config"),
    "notifications": ("test",),
    "cluster": ("status", "drain", "forget"),
    "db": ("check", "backup", "restore", "repair"),
    "service": ("install", "uninstall"),
}


@pytest.mark.requirement("cli:help")
def test_every_command_is_there() -> None:
    below = {f"{parent} {word}" for parent, words in BELOW.items() for word in words}
    assert {command.name for command in commands()} == {*ALONE, *below}


@pytest.mark.requirement("cli:completion", "cli:bad-input")
def test_commands_below_another_are_offered_and_a_wrong_one_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    typed = (("worktree", ""), ("help", "worktree", "me"))
    words = [[line.partition("\t")[0] for line in complete(each)] for each in typed]
    assert words == [["list", "diff", "merge", "prune"], ["merge"]]
    assert main(["worktree", "mergee"]) == EXIT_USAGE
    assert "there is no command worktree 'mergee'; did you mean" in capsys.readouterr().err


@pytest.mark.requirement("cli:help")
def test_help_says_what_a_command_of_the_core_does_with_a_word_of_an_extension() -> None:
    assert "plan:NAME      Show how a plan stands" in page("show", is_whole=False)
    assert "schedule:NAME  Let a schedule start nothing" in page("pause", is_whole=False)
    assert "plan:NAME" not in page("steer", is_whole=False)


@pytest.mark.requirement("mcp:bridge:handshake")
def test_what_the_bridge_says_is_what_the_daemon_says_byte_for_byte(tmp_path: Path) -> None:
    assert FILE.read_bytes() == recorded(tmp_path), "run `make docs`"
