"""`runtime_options`: one place for each option, merged as tables are, and never a project's."""

import re
import sys
from pathlib import Path

import jsonschema_rs
import pytest

from subagents.config.layers import Config, load
from subagents.config.paths import Paths
from subagents.config.schema import json_schema
from subagents.errors import ConfigError

GEMINI = "[agents.a]\nruntime = 'acp'\nruntime_options = { agent = 'gemini' }\n"


class ConfigHome:
    """A home with its user file, and a project directory with its own."""

    def __init__(self, root: Path) -> None:
        self.environ = {"SUBAGENTS_HOME": str(root / "home"), "HOME": str(root)}
        self.paths = Paths.resolve(self.environ)
        self.user = self.paths.config_file
        self.user.parent.mkdir(parents=True)
        self.project = root / "project"
        self.project.mkdir()

    def load(self, user: str, project: str = "") -> Config:
        self.user.write_text(user, encoding="utf-8")
        if project:
            (self.project / "subagents.toml").write_text(project, encoding="utf-8")
        return load(self.project, self.environ, paths=self.paths)

    def refusal(self, user: str) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(user)
        return re.sub(rf"^{re.escape(str(self.user))}(:\d+)?: ", "", caught.value.message)


@pytest.fixture
def home(tmp_path: Path) -> ConfigHome:
    return ConfigHome(tmp_path)


@pytest.mark.requirement("config:runtime-options")
def test_tables_of_options_merge_key_by_key_and_each_value_has_its_origin(home: ConfigHome) -> None:
    home.environ["SUBAGENTS_AGENTS__A__RUNTIME_OPTIONS__MAX_TURNS"] = "30"

    config = home.load(GEMINI, "[agents.a.runtime_options]\nmode = { name = 'yolo' }\n")

    assert config.settings.agent("a").runtime_options == {
        "agent": "gemini",
        "mode": {"name": "yolo"},
        "max_turns": 30,
    }
    origins = {leaf.key.removeprefix("agents.a.runtime_options."): leaf.origin
               for leaf in config.leaves() if "runtime_options" in leaf.key}  # fmt: skip
    assert origins == {
        "agent": str(home.user),
        "mode.name": str(home.project / "subagents.toml"),
        "max_turns": "SUBAGENTS_AGENTS__A__RUNTIME_OPTIONS__MAX_TURNS",
    }


@pytest.mark.requirement("config:runtime-options")
@pytest.mark.parametrize(
    ("weak", "strong", "expected"),
    [
        ("x = 1", "x = { y = 2 }", {"x": {"y": 2}}),
        ("x = { y = 2 }", "x = 1", {"x": 1}),
        ("x = { y = 2 }", "x = { z = [3] }", {"x": {"y": 2, "z": [3]}}),
    ],
)
def test_a_stronger_layer_may_make_a_table_of_a_value_and_a_value_of_a_table(
    home: ConfigHome, weak: str, strong: str, expected: dict[str, object]
) -> None:
    head = "[agents.a]\nruntime = 'codex'\n[agents.a.runtime_options]\n"

    config = home.load(f"{head}{weak}\n", f"{head}{strong}\n")

    assert config.settings.agent("a").runtime_options == expected
    assert {leaf.key for leaf in config.leaves() if "runtime_options" in leaf.key}


@pytest.mark.requirement("config:runtime-options")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "runtime = 'codex'\nruntime_options = { env = { A = '1' } }",
            "agents.a.runtime_options.env must be agents.a.env",
        ),
        (
            "runtime = 'codex'\nruntime_options = { pass_env = ['A'] }",
            "agents.a.runtime_options.pass_env must be agents.a.pass_env",
        ),
        (
            "runtime_options = { program = '/x' }",
            "agents.a.runtime is missing; runtime_options have no effect without one",
        ),
        (
            "runtime = 'claude-code'\ncommand = ['claude', '-p']",
            'agents.a.command has no effect with runtime "claude-code"',
        ),
        (
            "runtime = 'acp'\nruntime_options = { since = 2026-01-01 }",
            (
                "agents.a.runtime_options must be a table of text, numbers, true or false, lists "
                "and tables, not a table that holds something else"
            ),
        ),
        (
            "runtime = 'claude-cod'",
            (
                'agents.a.runtime must be one of "command", "scripted", "claude-code", "codex", '
                '"acp", "llm", not "claude-cod"; did you mean "claude-code"?'
            ),
        ),
    ],
)
def test_an_option_in_the_wrong_place_is_refused_with_the_right_one(
    home: ConfigHome, text: str, message: str
) -> None:
    assert home.refusal(f"[agents.a]\n{text}\n") == message


@pytest.mark.requirement("config:runtime-options")
def test_an_agent_that_acp_does_not_know_has_its_command_among_the_options(
    home: ConfigHome,
) -> None:
    config = home.load("[agents.a]\nruntime='acp'\nruntime_options.command = ['my-agent']\n")

    assert config.settings.agent("a").options["command"] == ["my-agent"]


@pytest.mark.requirement("trust:runtime-options")
def test_a_project_cannot_change_which_program_a_users_agent_starts(home: ConfigHome) -> None:
    project = (
        "[agents.a]\nthinking = 'high'\n[agents.a.runtime_options]\nprogram = '/tmp/evil'\n"
        "agent = 'goose'\n"
    )

    config = home.load(GEMINI, project).for_agents()

    assert config.settings.agent("a").options == {"agent": "gemini", "env": {}, "pass_env": []}
    assert config.settings.agent("a").thinking is None
    (line,) = config.ignored
    assert "ignored for agents: agents.a.runtime_options, agents.a.thinking (" in line


@pytest.mark.requirement("plugins:named-in-configuration")
def test_a_runtime_of_an_installed_package_may_be_named_and_is_suggested(
    home: ConfigHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "site" / "acme_runtime-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-runtime\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[subagents.runtimes]\nacme = acme_runtime:make\ncodex = acme_runtime:evil\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path, str(info.parent)])

    text = "[agents.a]\nruntime = 'acme'\nruntime_options = { place = 'here' }\n"

    assert home.load(text).settings.agent("a").runtime == "acme"
    assert home.refusal("[agents.a]\nruntime = 'acmee'\n").endswith(
        '"llm", "acme", not "acmee"; did you mean "acme"?'
    )
    schema = jsonschema_rs.Draft202012Validator(json_schema())
    assert schema.is_valid({"agents": {"a": {"runtime": "acme"}}})
