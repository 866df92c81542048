"""What `subagents init` finds and writes."""

import typing
from pathlib import Path

import pytest
from pydantic_ai import models

from subagents.config import Config, Paths, load
from subagents.config import program_catalog as programs
from subagents.config.program_catalog import LLM_PROVIDERS, PROGRAMS, detect
from subagents.config.starter import starter_text


def machine(root: Path, *names: str, **variables: str) -> dict[str, str]:
    """A PATH with these programs and nothing else, and an empty home."""
    binaries = root / "bin"
    binaries.mkdir()
    for name in names:
        (binaries / name).write_text("#!/bin/sh\nexit 1\n")
        (binaries / name).chmod(0o755)
    home = {"HOME": str(root / "user"), "SUBAGENTS_HOME": str(root / "home")}
    return {"PATH": str(binaries), **home, **variables}


def loaded(text: str, environ: dict[str, str]) -> Config:
    paths = Paths.resolve(environ)
    paths.config_file.parent.mkdir(parents=True)
    paths.config_file.write_text(text, encoding="utf-8")
    return load(None, environ, paths=paths)


@pytest.fixture
def nothing_bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "package_directory", lambda module: None)


@pytest.mark.requirement("init:starter")
def test_the_starter_file_loads_with_every_known_program_found(tmp_path: Path) -> None:
    names = [program.name for program in PROGRAMS]
    environ = machine(tmp_path, "bash", *names, OPENAI_API_KEY="sk-nothing")

    config = loaded(starter_text(environ), environ)

    assert config.warnings == ()
    assert config.settings.defaults.agent == "command"
    assert config.settings.agent("command").command == ("bash", "-c", "{task}")
    assert {name: config.settings.agent(name).runtime for name in names} == {
        "claude": "claude-code",
        "codex": "codex",
        "gemini": "acp",
        "opencode": "acp",
        "goose": "acp",
        "qwen": "acp",
        "claude-agent-acp": "acp",
        "codex-acp": "acp",
        "openclaw": "acp",
    }
    assert config.settings.agent("gemini").runtime_options == {"agent": "gemini"}
    assert config.settings.agent("claude").runtime_options == {}
    assert config.settings.agent("llm").model == "openai:gpt-6-luna"


@pytest.mark.requirement("init:no-shell-by-surprise")
def test_callers_may_use_the_programs_found_but_not_the_command_agent(
    tmp_path: Path, nothing_bundled: None
) -> None:
    environ = machine(tmp_path, "codex", "opencode")
    text = starter_text(environ)

    allowed = loaded(text, environ).settings.agent("main").subagents.allow_agents

    assert allowed == ("codex", "opencode")
    assert 'subagents.allow_agents = ["codex", "opencode", "command"]' in text
    assert "can have files edited and commands run\n# where they work." in text


@pytest.mark.requirement("init:starter")
def test_the_claude_of_the_python_package_is_found_without_a_program_on_path(
    tmp_path: Path,
) -> None:
    environ = machine(tmp_path)

    (claude,) = (each for each in detect(environ) if each.program.name == "claude")

    assert claude.place.endswith("claude_agent_sdk/_bundled/claude")
    assert loaded(starter_text(environ), environ).settings.agent("claude").runtime == "claude-code"


@pytest.mark.requirement("init:login")
@pytest.mark.parametrize(
    ("program", "file", "text"),
    [
        ("codex", ".codex/auth.json", "{}"),
        ("gemini", ".gemini/oauth_creds.json", "{}"),
        ("claude", ".claude/.credentials.json", "{}"),
        ("claude", ".claude.json", '{"oauthAccount": {}}'),
        ("goose", ".config/goose/config.yaml", "GOOSE_PROVIDER: openai\n"),
    ],
)
def test_a_login_is_seen_in_the_programs_own_file_and_else_said_how_to_make(
    program: str, file: str, text: str, tmp_path: Path, nothing_bundled: None
) -> None:
    environ = machine(tmp_path, program)
    (found,) = detect(environ)
    assert found.login is None
    assert f"To log in: {found.program.login}" in starter_text(environ)

    place = tmp_path / "user" / file
    place.parent.mkdir(parents=True)
    place.write_text(text)

    (found,) = detect(environ)
    assert found.login == str(place)
    assert "log in" not in starter_text(environ)


@pytest.mark.requirement("init:login")
def test_a_key_in_a_variable_is_a_login_and_is_never_written_down(
    tmp_path: Path, nothing_bundled: None
) -> None:
    environ = machine(tmp_path, "gemini", GEMINI_API_KEY="very-secret-key")

    (found,) = detect(environ)

    assert found.login == "GEMINI_API_KEY"
    assert "very-secret-key" not in starter_text(environ)


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
    known = typing.get_args(models.KnownModelName.__value__)

    assert {model for _, model in LLM_PROVIDERS} <= set(known)


@pytest.mark.requirement("init:starter")
def test_a_bare_machine_gets_sh_and_an_empty_allow_list(
    tmp_path: Path, nothing_bundled: None
) -> None:
    environ = machine(tmp_path)

    settings = loaded(starter_text(environ), environ).settings

    assert detect(environ) == ()
    assert settings.agent("command").command == ("sh", "-c", "{task}")
    assert settings.agent("main").subagents.allow_agents == ()
