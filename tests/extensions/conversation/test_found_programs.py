"""Which agent programs are found, and whether somebody is logged in."""

import typing
from pathlib import Path

import pytest
from tests.config.starter_places import machine

from subagents.extensions.conversation.found_programs import LLM_PROVIDERS, detect


@pytest.mark.requirement("init:starter")
def test_the_claude_of_the_python_package_is_found_without_a_program_on_path(
    tmp_path: Path,
) -> None:
    environ = machine(tmp_path)

    (claude,) = (each for each in detect(environ) if each.program.name == "claude")

    assert claude.place.endswith("claude_agent_sdk/_bundled/claude")


@pytest.mark.requirement("init:login")
def test_an_empty_file_or_variable_is_no_login(tmp_path: Path, nothing_bundled: None) -> None:
    environ = machine(tmp_path, "codex", OPENAI_API_KEY="")
    (tmp_path / "user" / ".codex").mkdir(parents=True)
    (tmp_path / "user" / ".codex" / "auth.json").touch()

    assert [each.login for each in detect(environ)] == [None]


@pytest.mark.requirement("init:placeholder")
@pytest.mark.parametrize(
    ("program", "package", "binary"),
    [
        ("openclaw", "openclaw", "index.js"),
        ("claude", "@anthropic-ai/claude-code", "claude.exe"),
        ("opencode", "opencode-ai", "opencode.exe"),
    ],
)
def test_what_npm_leaves_in_place_of_a_program_is_not_found(
    program: str, package: str, binary: str, tmp_path: Path, nothing_bundled: None
) -> None:
    environ = machine(tmp_path)
    root = tmp_path / "lib" / "node_modules" / package
    (root / "bin").mkdir(parents=True)
    (root / "package.json").write_text("{}")
    (root / "bin" / binary).write_text("#!/bin/sh\nexit 1\n")
    (root / "bin" / binary).chmod(0o755)
    (tmp_path / "bin" / program).symlink_to(root / "bin" / binary)

    assert detect(environ) == ()
    (root / "bin" / binary).write_bytes(b"\0" * 300_000)
    assert [each.program.name for each in detect(environ)] == [program]


@pytest.mark.requirement("init:starter")
def test_a_model_to_begin_with_is_one_that_the_library_knows() -> None:
    from pydantic_ai import models  # noqa: PLC0415 - takes a second

    known = typing.get_args(models.KnownModelName.__value__)

    assert {model for _, model in LLM_PROVIDERS} <= set(known)
