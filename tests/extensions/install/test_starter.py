"""What `subagents init` finds and writes."""

from email.message import Message
from pathlib import Path

import pytest
from tests.config.starter_places import loaded, machine

from subagents.config.programs.program_catalog import PROGRAMS
from subagents.extensions.conversation.found_programs import detect
from subagents.extensions.install import starter
from subagents.extensions.install.starter import starter_text
from subagents.version import __version__


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
        "copilot": "acp",
        "kilo": "acp",
        "cline": "acp",
        "pi-acp": "acp",
        "claude-agent-acp": "acp",
        "codex-acp": "acp",
        "openclaw": "acp",
    }
    assert config.settings.agent("gemini").runtime_options == {"agent": "gemini"}
    assert config.settings.agent("claude").runtime_options == {}
    assert config.settings.agent("llm").model == "openai:gpt-6-luna"


@pytest.mark.requirement("init:schema")
@pytest.mark.parametrize("url", [None, "https://forge.example/us/subagents"])
def test_editors_find_the_schema_of_this_version_where_the_project_has_an_address(
    url: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Message()
    told["Project-URL"] = "Homepage, https://other.example"
    if url is not None:
        told["Project-URL"] = f"Repository, {url}"
    monkeypatch.setattr(starter, "metadata", lambda _: told)
    environ = machine(tmp_path)

    text = starter_text(environ)

    line = f"#:schema {url}/releases/download/v{__version__}/subagents.schema.json\n"
    assert text.startswith(line if url else "# For editors: `subagents config --schema > ")
    assert loaded(text, environ).warnings == ()


@pytest.mark.requirement("init:no-shell-by-surprise")
def test_callers_may_use_the_programs_found_but_not_the_command_agent(
    tmp_path: Path, nothing_bundled: None
) -> None:
    environ = machine(tmp_path, "codex", "opencode")
    text = starter_text(environ)

    allowed = loaded(text, environ).settings.agent("main").subagents.allow_agents

    assert allowed == ("codex", "opencode")
    assert 'subagents.allow_agents = ["codex", "opencode", "command"]' in text
    assert 'With access = "write" they read files, edit them and run' in text


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

    home = tmp_path / "user" / file
    home.parent.mkdir(parents=True)
    home.write_text(text)

    (found,) = detect(environ)
    assert found.login == str(home)
    assert "log in" not in starter_text(environ)


@pytest.mark.requirement("init:login")
def test_a_key_in_a_variable_is_a_login_and_is_never_written_down(
    tmp_path: Path, nothing_bundled: None
) -> None:
    environ = machine(tmp_path, "gemini", GEMINI_API_KEY="very-secret-key")

    (found,) = detect(environ)

    assert found.login == "GEMINI_API_KEY"
    assert "very-secret-key" not in starter_text(environ)


@pytest.mark.requirement("init:starter")
def test_a_bare_machine_gets_sh_and_an_empty_allow_list(
    tmp_path: Path, nothing_bundled: None
) -> None:
    environ = machine(tmp_path)

    settings = loaded(starter_text(environ), environ).settings

    assert detect(environ) == ()
    assert settings.agent("command").command == ("sh", "-c", "{task}")
    assert settings.agent("main").subagents.allow_agents == ()
