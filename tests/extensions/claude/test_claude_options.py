"""The options of a Claude Code agent, and the program that they name."""

import sys
from pathlib import Path

import pytest
from tests.extensions.claude.claude_folds import DIALECT, OPENING

from subagents.domain.run.values import replace
from subagents.errors import ConfigError, UsageError
from subagents.extensions.claude.claude_options import bundled_program


@pytest.mark.requirement("claude-worker:options:checked")
@pytest.mark.parametrize(
    ("options", "output"),
    [
        ({"max_turn": 3}, "did you mean `max_turns`"),
        ({"max_turns": 0}, "max_turns"),
        ({"permission_mode": "yolo"}, "permission_mode"),
        ({"setting_sources": ["global"]}, "setting_sources"),
        ({"args": ["--resume=x"]}, "resumes the session"),
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
