"""Registering in other programs' files: the change is shown, asked for, and nothing else."""

import json
import os
import pty
import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import subagents
from subagents.cli.install import agent_programs as harnesses
from subagents.cli.install import json_text, toml_text
from subagents.cli.install.mcp_install import plugin_dir
from subagents.cli.main import GROUPS, main
from subagents.errors import (
    EXIT_NOT_FOUND,
    EXIT_OK,
    EXIT_USAGE,
    ConfigError,
)

Document = dict[str, Any]
FILES: Final = {
    "claude": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "openclaw": ".openclaw/openclaw.json",
}
VARIABLES: Final = (
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"),
    *("OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH", "SUBAGENTS_HOME"),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home, a project below it, and `subagents` on PATH."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def entry_in(file: Path) -> Document:
    """What the file says of us, by a parser that is not ours."""
    text = file.read_text()
    document = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    for name in ("mcpServers", "mcp_servers", "mcp", "servers", "subagents"):
        document = document.get(name, document)
    found: Document = document
    return found


def backups(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.bak-*"))


# -- each program ---------------------------------------------------------------------------------


@pytest.mark.requirement("mcp-install:recipes")
@pytest.mark.parametrize("name", harnesses.NAMES)
def test_each_program_is_told_in_its_own_file_and_form(
    home: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", "install", name, "--yes"]) == EXIT_OK

    file = home / FILES[name]
    found = entry_in(file)
    words = found["command"] if name == "opencode" else [found["command"], *found["args"]]
    assert words[:2] == ["subagents", "mcp"]
    if name == "codex":
        assert found["default_tools_approval_mode"] == "approve"
        assert found["tool_timeout_sec"] >= 600
        assert "SUBAGENTS_TOKEN" in found["env_vars"]
    out = capsys.readouterr().out
    assert "+++ " + str(file) in out
    assert "subagents" in out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert backups(file.parent) == []


@pytest.mark.requirement("mcp-install:idempotent")
@pytest.mark.parametrize("name", harnesses.NAMES)
def test_doing_it_again_changes_nothing_and_undoing_it_leaves_what_was_there(
    home: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / FILES[name]
    file.parent.mkdir(parents=True, exist_ok=True)
    before = '# mine\nmodel = "x"\n' if name == "codex" else '{\n  "mine": [1, 2]\n}\n'
    file.write_text(before)
    assert main(["mcp", "install", name, "--yes"]) == EXIT_OK
    once = file.read_text()
    capsys.readouterr()

    assert main(["mcp", "install", name, "--yes"]) == EXIT_OK
    told = capsys.readouterr()
    assert (told.out, file.read_text()) == ("", once)
    assert "stays as it is" in told.err
    assert main(["mcp", "uninstall", name, "--yes"]) == EXIT_OK
    after = file.read_text()
    assert "subagents" not in after
    if name == "codex":
        assert after == before
    else:
        assert json.loads(after)["mine"] == [1, 2]
    assert len(backups(file.parent)) >= 1


@pytest.mark.requirement("mcp-install:keeps-the-rest")
def test_comments_order_and_indentation_of_somebody_elses_file_stay(home: Path) -> None:
    file = home / ".config/opencode/opencode.jsonc"
    file.parent.mkdir(parents=True)
    mine = """\
// my configuration
{
    "model": "a/b", // the cheap one
    'mcp': {
        /* one more */
        "other": { "type": "remote", "url": "http://x//y" }, // keep
    },
    "z": 1, "a": [1,
      2],
}
"""
    file.write_text(mine)

    assert main(["mcp", "install", "opencode", "--yes"]) == EXIT_OK

    changed = file.read_text()
    kept = [line for line in changed.splitlines() if line in mine.splitlines()]
    assert kept == mine.splitlines()
    assert '\n        "subagents": {\n            "type": "local",\n' in changed
    node = json_text.parse(changed)
    assert isinstance(node.value, dict)
    assert list(node.value["mcp"]) == ["other", "subagents"]
    (backup,) = backups(file.parent)
    assert backup.read_text() == mine
    assert main(["mcp", "uninstall", "opencode", "--yes"]) == EXIT_OK
    assert file.read_text() == mine


@pytest.mark.requirement("mcp-install:keeps-the-rest")
def test_a_codex_configuration_keeps_its_comments_and_tables(home: Path) -> None:
    file = home / ".codex/config.toml"
    file.parent.mkdir()
    mine = '# mine\nmodel = "gpt"\n\n[mcp_servers.other]\ncommand = "x" # keep\n\n# the end\n'
    file.write_text(mine)

    assert main(["mcp", "install", "codex", "--yes"]) == EXIT_OK
    changed = file.read_text()

    assert changed.startswith(mine)
    assert set(tomllib.loads(changed)["mcp_servers"]) == {"other", "subagents"}
    file.write_text(f"{changed}\n# about more\n[more]\nx = 1\n")
    assert main(["mcp", "uninstall", "codex", "--yes"]) == EXIT_OK
    assert file.read_text() == f"{mine}\n# about more\n[more]\nx = 1\n"


@pytest.mark.requirement("mcp-install:refuses-what-differs")
def test_another_codex_table_of_our_name_is_left_alone_and_named(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / ".codex/config.toml"
    file.parent.mkdir()
    mine = '[mcp_servers.subagents]\ncommand = "/old/subagents"\n'
    file.write_text(mine)

    assert main(["mcp", "install", "codex", "--yes"]) == EXIT_USAGE

    said = capsys.readouterr().err
    assert str(file) in said
    assert "[mcp_servers.subagents] already" in said
    assert "mcp uninstall" in said
    assert (file.read_text(), backups(file.parent)) == (mine, [])


@pytest.mark.requirement("mcp-install:refuses-what-differs")
def test_an_older_entry_of_ours_in_json_is_replaced_where_it_stands(home: Path) -> None:
    file = home / ".claude.json"
    mine = '{"mcpServers": {"subagents": {"command": "/old"}, "b": {}}, "z": 1}'
    file.write_text(mine)

    assert main(["mcp", "install", "claude", "--yes"]) == EXIT_OK

    document = json.loads(file.read_text())
    assert list(document["mcpServers"]) == ["subagents", "b"]
    assert document["mcpServers"]["subagents"]["command"] == "subagents"


@pytest.mark.requirement("mcp-install:refuses-broken")
@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("claude", '{"a": 1,, }', "line 1, column 9"),
        ("claude", '{"mcpServers": []}', "mcpServers is not an object"),
        ("gemini", "[]", "the whole is not an object"),
        ("codex", "a = = 1", "not valid TOML"),
        ("codex", "mcp_servers = { other = { command = 'x' } }", "another form"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_left_alone(
    home: Path, name: str, text: str, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / FILES[name]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)

    assert main(["mcp", "install", name, "--yes"]) == EXIT_USAGE

    said = capsys.readouterr().err
    assert f"{file}: " in said
    assert where in said
    assert "nothing was written" in said
    assert (file.read_text(), backups(file.parent)) == (text, [])


# -- asking ---------------------------------------------------------------------------------------


@pytest.mark.requirement("mcp-install:asks-first")
def test_a_dry_run_shows_the_change_and_writes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", "install", "codex", "--dry-run"]) == EXIT_OK
    assert "+[mcp_servers.subagents]" in capsys.readouterr().out
    assert main(["mcp", "install", "claude", "--dry-run", "--json"]) == EXIT_OK
    document = json.loads(capsys.readouterr().out)
    assert (document["changed"], document["backup"]) == (False, None)
    assert '+    "subagents": {' in document["diff"]
    assert list(home.rglob("*.toml")) == list(home.rglob("*.json")) == []


@pytest.mark.requirement("mcp-install:asks-first")
def test_without_a_terminal_it_must_be_told_yes(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", "install", "claude"]) == EXIT_USAGE

    told = capsys.readouterr()
    assert "+++ " in told.out
    assert "--yes" in told.err
    assert not (home / ".claude.json").exists()


@pytest.mark.requirement("mcp-install:asks-first")
@pytest.mark.parametrize(("answer", "is_there"), [(b"n\n", False), (b"y\n", True)])
def test_on_a_terminal_the_person_decides(home: Path, answer: bytes, *, is_there: bool) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    done = subprocess.run(
        [sys.executable, "-m", "subagents", "mcp", "install", "claude"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        check=False,
        timeout=30,
    )
    os.close(ours)
    os.close(theirs)

    assert done.returncode == EXIT_OK
    assert "+++ " in done.stdout
    assert (home / ".claude.json").exists() is is_there


@pytest.mark.requirement("mcp-install:atomic")
def test_the_files_mode_and_its_link_stay(home: Path) -> None:
    dotfiles = home / "dotfiles"
    dotfiles.mkdir()
    target = dotfiles / "claude.json"
    target.write_text("{}")
    target.chmod(0o640)
    (home / ".claude.json").symlink_to(target)

    assert main(["mcp", "install", "claude", "--yes"]) == EXIT_OK

    assert (home / ".claude.json").is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert entry_in(target)["command"] == "subagents"
    assert [each.name for each in dotfiles.iterdir() if each.name.startswith(".")] == []


@pytest.mark.requirement("mcp-install:project")
def test_a_project_has_a_file_of_its_own_for_everybody_in_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("claude", "codex", "gemini", "opencode"):
        assert main(["mcp", "install", name, "--project", "--yes"]) == EXIT_OK
    assert main(["mcp", "install", "openclaw", "--project", "--yes"]) == EXIT_USAGE

    project = home / "project"
    files = [".mcp.json", ".codex/config.toml", ".gemini/settings.json", "opencode.json"]
    assert all("subagents" in (project / each).read_text() for each in files)
    assert stat.S_IMODE((project / ".mcp.json").stat().st_mode) == 0o644
    assert not any((home / each).exists() for each in FILES.values())
    assert "--project" in capsys.readouterr().err


# -- what is written ------------------------------------------------------------------------------


@pytest.mark.requirement("mcp-install:command")
def test_a_program_that_is_not_on_path_is_named_whole(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path(sys.executable).parent / "subagents"
    monkeypatch.setenv("PATH", str(home))

    assert harnesses.server_command(os.environ) == [str(own)]
    (home / "subagents").write_text("#!/bin/sh\n")
    (home / "subagents").chmod(0o755)
    assert harnesses.server_command(os.environ) == [str(own)], "that one is another program"


@pytest.mark.requirement("mcp-install:command")
def test_another_home_is_written_down_for_programs_that_pass_nothing_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_HOME", "~/other")
    for name in harnesses.NAMES:
        entry = harnesses.entry_of(name, os.environ)
        env = entry["environment" if name == "opencode" else "env"]
        assert env == {"SUBAGENTS_HOME": str(home / "other")}


@pytest.mark.requirement("mcp-install:config")
def test_the_snippet_is_what_would_be_written(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", "config"]) == EXIT_OK
    plain = {"mcpServers": {"subagents": {"command": "subagents", "args": ["mcp"]}}}
    assert json.loads(capsys.readouterr().out) == plain
    for name in harnesses.NAMES:
        assert main(["mcp", "config", name]) == EXIT_OK
        snippet = capsys.readouterr().out
        assert main(["mcp", "install", name, "--yes"]) == EXIT_OK
        assert (home / FILES[name]).read_text() == snippet
        capsys.readouterr()
    assert main(["mcp", "config", "emacs"]) == EXIT_NOT_FOUND
    assert "known: claude, codex" in capsys.readouterr().err


@pytest.mark.requirement("mcp-install:only-ours")
def test_taking_away_what_is_not_there_changes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".claude.json").write_text('{"mcpServers": {"b": {}}}')
    for name in harnesses.NAMES:
        assert main(["mcp", "uninstall", name, "--yes"]) == EXIT_OK

    assert (home / ".claude.json").read_text() == '{"mcpServers": {"b": {}}}'
    assert capsys.readouterr().out == ""
    assert not (home / ".codex").exists()


# -- the text -------------------------------------------------------------------------------------

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.text(max_size=8),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=4), below, max_size=3)
    ),
    max_leaves=8,
)
_DOCUMENTS = st.dictionaries(st.text(max_size=6), _VALUES, max_size=4)
_SERVERS = st.dictionaries(st.sampled_from(["a", "b", "subagents"]), _DOCUMENTS, max_size=3)
_INDENTS = st.sampled_from([None, 2, 4, "\t"])


@pytest.mark.requirement("mcp-install:keeps-the-rest")
@given(_DOCUMENTS, st.none() | _SERVERS, _INDENTS, st.sampled_from(["\n", "\r\n"]))
def test_whatever_a_json_file_holds_only_our_entry_changes(
    document: Document, servers: Document | None, indent: int | str | None, newline: str
) -> None:
    if servers is not None:
        document = {**document, "mcpServers": servers}
    else:
        document.pop("mcpServers", None)
    text = json.dumps(document, indent=indent).replace("\n", newline)
    path, entry = ("mcpServers", "subagents"), {"command": "x", "args": ["mcp"]}

    changed = json_text.with_entry(text, path, entry)
    taken = json_text.without_entry(changed, path)

    wanted = {**document, "mcpServers": {**(servers or {}), "subagents": entry}}
    assert json.loads(changed) == wanted
    assert list(json.loads(changed)) == list(wanted)
    del wanted["mcpServers"]["subagents"]
    assert json.loads(taken) == wanted
    if servers and "subagents" not in servers:
        assert taken == text
    if "\r\n" in text:
        assert "\n" not in changed.replace("\r\n", "")


@pytest.mark.requirement("mcp-install:keeps-the-rest")
@pytest.mark.parametrize(
    "text",
    [
        "{a: 1, 'b': \"\\u0041\", // c\n /* d */ c: [1, 2,], d: +1.5e3, e: 0xFF, f: null,}",
        '\ufeff{"a": {"b": "}//{"}}',
        "{'it\\'s': 'x\\\ny'}",
    ],
)
def test_json_with_comments_and_of_people_is_read(text: str) -> None:
    assert isinstance(json_text.parse(text).value, dict)
    changed = json_text.with_entry(text, ("mcp", "servers", "x"), {"y": 1})
    value = json_text.parse(changed).value
    assert isinstance(value, dict)
    assert value["mcp"] == {"servers": {"x": {"y": 1}}}


@pytest.mark.requirement("mcp-install:keeps-the-rest")
def test_a_file_in_a_style_of_its_own_gets_lines_that_fit() -> None:
    text = '{"a": 1,\n "b": {"c": 2}}\n'

    changed = json_text.with_entry(text, ("mcp", "x"), {"y": [1]})

    assert changed == (
        '{"a": 1,\n "b": {"c": 2},\n "mcp": {\n  "x": {\n   "y": [\n    1\n   ]\n  }\n }\n}\n'
    )


@pytest.mark.requirement("mcp-install:refuses-broken")
@pytest.mark.parametrize("text", ["{", '{"a" 1}', "{1: 2}", '{"a": }', '"x', "{} {}", "[1 2]", ""])
def test_what_is_no_json_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(ConfigError, match=r"line 1, column \d+: .* is expected"):
        json_text.parse(text)


@pytest.mark.requirement("mcp-install:refuses-broken")
def test_a_tower_of_brackets_is_refused_and_does_not_fall() -> None:
    with pytest.raises(ConfigError, match="at most 200 levels"):
        json_text.parse("[" * 100_000)


@pytest.mark.requirement("mcp-install:keeps-the-rest")
@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 9)),
    st.sampled_from(["", "[mcp_servers.b]\nx = 'a [b]'\n"]),
    st.sampled_from(["", "# about next\n[next]\ny = 1\n", "\n# about next\n[next]\ny = 1\n"]),
)
def test_a_toml_table_comes_and_goes_without_a_trace(
    values: dict[str, int], before: str, after: str
) -> None:
    text = "".join(f"{name} = {value}\n" for name, value in values.items()) + before
    entry: Document = {"command": "x", "args": ["m"], "env": {"A": 'q"'}}
    path = ("mcp_servers", "subagents")

    changed = toml_text.with_table(text, path, entry)
    taken = toml_text.without_table(changed + after, path)

    assert tomllib.loads(changed)["mcp_servers"]["subagents"] == entry
    assert taken.lstrip() == (text + after).lstrip()


# -- the plugin -----------------------------------------------------------------------------------


@pytest.mark.requirement("plugin:whole")
def test_the_plugin_is_whole_and_starts_only_commands_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["mcp", "plugin"]) == EXIT_OK
    folder = Path(capsys.readouterr().out.strip())
    assert folder == plugin_dir()
    manifest = json.loads((folder / ".claude-plugin/plugin.json").read_text())
    market = json.loads((folder / ".claude-plugin/marketplace.json").read_text())
    server = json.loads((folder / ".mcp.json").read_text())["mcpServers"]["subagents"]
    hooks = json.loads((folder / "hooks/hooks.json").read_text())["hooks"]

    assert (manifest["name"], manifest["version"]) == ("subagents", subagents.__version__)
    assert [each["name"] for each in market["plugins"]] == ["subagents"]
    assert (server["command"], server["args"]) == ("subagents", ["mcp"])
    known = {command.name for commands in GROUPS.values() for command in commands}
    runs = [each for found in hooks.values() for group in found for each in group["hooks"]]
    for each in runs:
        assert " ".join(each["command"].split()[1:3]) in known
        assert each["timeout"] > 0
    (waiting,) = [each for each in runs if each.get("asyncRewake")]
    assert "--wait" in waiting["command"]
    assert set(hooks) == {"SessionStart", "Stop"}


@pytest.mark.requirement("plugin:whole")
def test_the_skill_names_only_tools_and_actions_that_there_are() -> None:
    from subagents.api.tools.tool_registry import TOOLS  # noqa: PLC0415

    text = (plugin_dir() / "skills/delegate/SKILL.md").read_text()
    schema = TOOLS["subagents"].schema["properties"]
    assert isinstance(schema, dict)
    actions = schema["action"]["enum"]

    named = set(re.findall(r'action: "(\w+)"', text))
    assert {"inbox", "why", "attention"} <= named <= set(actions)
    for tool in ("sessions_spawn", "sessions_wait", "agents_list", "respond_orchestrator_request"):
        assert tool in text
        assert tool in TOOLS
