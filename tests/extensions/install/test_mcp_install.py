"""Registering with other programs: their own command is shown, asked for and run, nothing else."""

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
from tests.e2e.claude_place import program as claude_program

import subagents
from subagents.cli.command_table import groups
from subagents.cli.main import main
from subagents.errors import EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE
from subagents.extensions.install import agent_programs
from subagents.extensions.install.mcp_install import plugin_dir

Document = dict[str, Any]
FILES: Final = {
    "claude": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "qwen": ".qwen/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "openclaw": ".openclaw/openclaw.json",
    "copilot": ".copilot/mcp-config.json",
    "kilo": ".config/kilo/kilo.jsonc",
    "cline": ".cline/data/settings/cline_mcp_settings.json",
    "pi": ".pi/agent/mcp.json",
}
WITH_COMMAND: Final = [name for name in FILES if name != "codex"]
VARIABLES: Final = (
    *("COPILOT_HOME", "CLINE_DATA_DIR", "CLINE_MCP_SETTINGS_PATH", "PI_CODING_AGENT_DIR"),
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"),
    *("OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH", "SUBAGENTS_HOME"),
)
FAKE: Final = r"""#!{python}
import json, pathlib, sys
name, (mcp, verb, *words) = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
with open(pathlib.Path(__file__).with_name("calls"), "a") as calls:
    calls.write(json.dumps([name, *sys.argv[1:]]) + "\n")
home, files = pathlib.Path({home!r}), {files!r}
file, env, scope = home / files[name], {{}}, "user"
trust = {{"trust": True}} if "--trust" in words else {{}}
flags = ("--trust", "--yes")
words = [word for word in words if word not in flags]
if name == "pi":
    scope = "project" if "--local" in words else "user"
    words = [*[word for word in words[1:] if word != "--local"], words[0]]
    if "--" in words:
        words = [*words[: words.index("--")], words[-1], *words[words.index("--") : -1]]
while words and words[0] in ("--scope", "--env", "--timeout", "--exposure"):
    option, value, *words = words
    if option == "--env":
        env.update([value.split("=", 1)])
    elif option == "--timeout":
        trust = {{"type": "local", "tools": ["*"], "timeout": int(value)}}
    elif option == "--exposure":
        trust = {{"exposure": value}}
    else:
        scope = value
if scope == "project":
    own = files[name].replace("agent/", "")
    file = pathlib.Path(".mcp.json" if name == "claude" else own)
document = json.loads(file.read_text()) if file.exists() else {{}}
servers = document
for part in {paths!r}[name]:
    servers = servers.setdefault(part, {{}})
own, *rest = words
if name in ("cline", "copilot", "pi") and rest:
    rest = rest[1:]
if verb in ("remove", "unset", "uninstall"):
    if own not in servers:
        sys.exit("No MCP server named " + own)
    del servers[own]
elif verb in ("add-json", "set"):
    if name == "claude" and own in servers:
        sys.exit("MCP server " + own + " already exists")
    servers[own] = json.loads(rest[0])
elif name in ("opencode", "kilo"):
    while rest[0] != "--":
        env.update([rest[1].split("=", 1)])
        rest = rest[2:]
    known = {{"environment": env}} if env else {{}}
    servers[own] = {{"type": "local", "command": rest[1:], **known}}
elif name == "cline":
    servers[own] = {{"transport": {{"type": "stdio", "command": rest[0], "args": rest[1:]}}}}
elif name == "copilot" and own in servers:
    sys.exit('Server "' + own + '" already exists')
else:
    more = {{**({{"env": env}} if env else {{}}), **trust}}
    servers[own] = {{"command": rest[0], "args": rest[1:], **more}}
file.parent.mkdir(parents=True, exist_ok=True)
file.write_text(json.dumps(document, indent=2))
"""
"""What these programs do, as far as we use it; seen of the real ones."""
PATHS: Final = {
    "claude": ["mcpServers"],
    "gemini": ["mcpServers"],
    "qwen": ["mcpServers"],
    "opencode": ["mcp"],
    "openclaw": ["mcp", "servers"],
    "copilot": ["mcpServers"],
    "kilo": ["mcp"],
    "cline": ["mcpServers"],
    "pi": ["mcpServers"],
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home with agent programs, a project below it, and `subagents` on PATH."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in WITH_COMMAND:
        fake = programs / name
        fake.write_text(
            FAKE.format(python=sys.executable, home=str(tmp_path), files=FILES, paths=PATHS)
        )
        fake.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{programs}:{Path(sys.executable).parent}")
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def entry_in(file: Path) -> Document:
    """What the file says of us, by a parser that is not ours."""
    text = file.read_text()
    document = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    for name in ("mcpServers", "mcp_servers", "mcp", "servers", "subagents", "transport"):
        document = document.get(name, document)
    found: Document = document
    return found


def backups(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.bak-*"))


def calls(home: Path) -> list[list[str]]:
    """What the programs were asked for."""
    file = home / "bin/calls"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


# -- each program ---------------------------------------------------------------------------------


@pytest.mark.requirement("mcp-install:recipes")
@pytest.mark.parametrize("name", FILES)
def test_each_program_is_told_in_its_own_way(
    home: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", "install", name, "--yes"]) == EXIT_OK

    found = entry_in(home / FILES[name])
    is_list = name in ("opencode", "kilo")
    words = found["command"] if is_list else [found["command"], *found["args"]]
    assert words[:2] == ["subagents", "mcp"]
    shown = capsys.readouterr().out
    if name == "codex":
        assert found["default_tools_approval_mode"] == "approve"
        assert found["tool_timeout_sec"] >= 600
        assert found["required"] is True
        assert found["startup_timeout_sec"] >= 30
        assert "SUBAGENTS_TOKEN" in found["env_vars"]
        assert f"+++ {home / FILES[name]}" in shown
        assert stat.S_IMODE((home / FILES[name]).stat().st_mode) == 0o600
    else:
        (call,) = calls(home)
        assert call[:2] == [name, "mcp"]
        assert shown.startswith(" ".join(call[:3]))
        if name in ("gemini", "qwen"):
            assert found["trust"] is True
        if name == "claude":
            file = home / ".claude/settings.json"
            assert json.loads(file.read_text()) == {"permissions": {"allow": ["mcp__subagents__*"]}}
            assert '+      "mcp__subagents__*"' in shown


@pytest.mark.requirement("mcp-install:idempotent")
@pytest.mark.parametrize("name", FILES)
def test_doing_it_again_changes_nothing_and_undoing_it_leaves_what_was_there(
    home: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / FILES[name]
    file.parent.mkdir(parents=True, exist_ok=True)
    before = '# mine\nmodel = "x"\n' if name == "codex" else '{\n  "mine": [1, 2]\n}\n'
    file.write_text(before)
    assert main(["mcp", "install", name, "--yes"]) == EXIT_OK
    once, asked = file.read_text(), calls(home)
    capsys.readouterr()

    assert main(["mcp", "install", name, "--yes"]) == EXIT_OK
    told = capsys.readouterr()
    assert (told.out, file.read_text(), calls(home)) == ("", once, asked)
    assert "is already registered" in told.err
    if name in ("opencode", "kilo"):
        assert main(["mcp", "uninstall", name, "--yes"]) == EXIT_USAGE
        assert f"delete mcp.subagents from {file}" in capsys.readouterr().err
        return
    assert main(["mcp", "uninstall", name, "--yes"]) == EXIT_OK
    after = file.read_text()
    assert "subagents" not in after
    if name == "codex":
        assert after == before
        assert len(backups(file.parent)) >= 1
    else:
        assert json.loads(after)["mine"] == [1, 2]


@pytest.mark.requirement("mcp-install:refuses-what-differs")
@pytest.mark.parametrize("name", FILES)
def test_an_older_entry_of_ours_is_replaced(home: Path, name: str) -> None:
    assert main(["mcp", "install", name, "--yes"]) == EXIT_OK
    file = home / FILES[name]
    file.write_text(file.read_text().replace('"subagents",', '"/old/subagents",'))
    file.write_text(file.read_text().replace('= "subagents"', '= "/old/subagents"'))
    assert "/old" in file.read_text()

    assert main(["mcp", "install", name, "--yes"]) == EXIT_OK

    assert "/old" not in file.read_text()
    assert "subagents" in json.dumps(entry_in(file))


@pytest.mark.requirement("mcp-install:only-ours")
def test_taking_away_what_is_not_there_changes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".claude.json").write_text('{"mcpServers": {"b": {}}}')
    for name in agent_programs.NAMES:
        assert main(["mcp", "uninstall", name, "--yes"]) == EXIT_OK

    assert (home / ".claude.json").read_text() == '{"mcpServers": {"b": {}}}'
    assert (capsys.readouterr().out, calls(home)) == ("", [])
    assert not (home / ".codex").exists()


@pytest.mark.requirement("mcp-install:only-ours")
def test_a_file_with_comments_is_left_to_its_program_alone(home: Path) -> None:
    file = home / ".gemini/settings.json"
    file.parent.mkdir()
    file.write_text('// mine\n{"mcpServers": {}}')

    assert main(["mcp", "uninstall", "gemini", "--yes"]) == EXIT_USAGE

    (call,) = calls(home)
    assert call == ["gemini", "mcp", "remove", "--scope", "user", "subagents"]
    assert file.read_text() == '// mine\n{"mcpServers": {}}'


@pytest.mark.requirement("mcp-install:project")
def test_a_project_has_servers_of_its_own_for_everybody_in_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("claude", "codex", "gemini", "qwen", "pi"):
        assert main(["mcp", "install", name, "--project", "--yes"]) == EXIT_OK
    for name in ("openclaw", "opencode", "copilot", "kilo", "cline", "goose"):
        assert main(["mcp", "install", name, "--project", "--yes"]) == EXIT_USAGE

    project = home / "project"
    files = [".mcp.json", ".pi/mcp.json", *(FILES[name] for name in ("codex", "gemini", "qwen"))]
    assert all("subagents" in (project / each).read_text() for each in files)
    assert stat.S_IMODE((project / ".codex/config.toml").stat().st_mode) == 0o644
    assert not any((home / each).exists() for each in FILES.values())
    said = capsys.readouterr().err
    assert "leave --project out" in said
    assert f"mcp config opencode` prints into {project / 'opencode.json'}" in said


@pytest.mark.requirement("mcp-install:no-command")
def test_goose_is_shown_what_belongs_into_its_file_which_nothing_else_writes(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", "install", "goose", "--yes"]) == EXIT_USAGE
    file = home / ".config/goose/config.yaml"
    assert f"mcp config goose` prints into {file}" in capsys.readouterr().err
    assert not file.exists()

    assert main(["mcp", "config", "goose"]) == EXIT_OK

    head, name, entry = capsys.readouterr().out.split(maxsplit=2)
    assert (head, name) == ("extensions:", "subagents:")
    assert (json.loads(entry)["cmd"], json.loads(entry)["args"]) == ("subagents", ["mcp"])


@pytest.mark.requirement("mcp-install:recipes")
def test_clines_command_which_knows_no_variables_is_given_them_by_env(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_HOME", str(home / "h"))

    assert main(["mcp", "install", "cline", "--yes"]) == EXIT_OK

    found = entry_in(home / FILES["cline"])
    assert [found["command"], *found["args"]] == [
        *("env", f"SUBAGENTS_HOME={home / 'h'}", "subagents", "mcp"),
    ]


@pytest.mark.requirement("mcp-install:refuses-broken")
def test_a_program_that_is_missing_or_fails_is_named_and_nothing_is_claimed(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "bin/claude").unlink()
    assert main(["mcp", "install", "claude", "--yes"]) == EXIT_NOT_FOUND
    said = capsys.readouterr()
    assert "claude is not on PATH; nothing was changed" in said.err
    assert "subagents mcp config claude" in said.err

    (home / ".qwen").write_text("in the way")
    assert main(["mcp", "install", "qwen", "--yes"]) == EXIT_USAGE
    said = capsys.readouterr()
    assert "cannot read" in said.err
    (home / ".gemini").mkdir(mode=0o500)
    (home / "bin/gemini").write_text("#!/bin/sh\necho so it goes >&2\nexit 3\n")
    assert main(["mcp", "install", "gemini", "--yes"]) == EXIT_USAGE
    said = capsys.readouterr()
    assert "gemini ended with status 3: so it goes" in said.err
    assert "is registered" not in said.err


# -- asking ---------------------------------------------------------------------------------------


@pytest.mark.requirement("mcp-install:asks-first")
def test_a_dry_run_shows_what_would_be_done_and_does_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", "install", "codex", "--dry-run"]) == EXIT_OK
    assert "+[mcp_servers.subagents]" in capsys.readouterr().out
    assert main(["mcp", "install", "claude", "--dry-run", "--json"]) == EXIT_OK
    document = json.loads(capsys.readouterr().out)
    assert not document["changed"]
    assert document["commands"][0].startswith("claude mcp add-json --scope user subagents ")
    assert calls(home) == []
    assert list(home.rglob("*.toml")) == list(home.rglob("*.json")) == []


@pytest.mark.requirement("mcp-install:asks-first")
def test_without_a_terminal_it_must_be_told_yes(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("claude", "codex"):
        assert main(["mcp", "install", name]) == EXIT_USAGE
        told = capsys.readouterr()
        assert "mcp" in told.out
        assert "--yes" in told.err
        assert not (home / FILES[name]).exists()
    assert calls(home) == []


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
    assert done.stdout.startswith("claude mcp add-json ")
    assert (home / ".claude.json").exists() is is_there


# -- what is registered ---------------------------------------------------------------------------


@pytest.mark.requirement("mcp-install:command")
def test_a_program_that_is_not_on_path_is_named_whole(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path(sys.executable).parent / "subagents"
    monkeypatch.setenv("PATH", str(home))

    assert agent_programs.server_command(os.environ) == [str(own)]
    (home / "subagents").write_text("#!/bin/sh\n")
    (home / "subagents").chmod(0o755)
    assert agent_programs.server_command(os.environ) == [str(own)], "that one is another program"


@pytest.mark.requirement("mcp-install:command")
@pytest.mark.parametrize("name", [name for name in FILES if name != "cline"])
def test_another_home_is_written_down_for_programs_that_pass_nothing_on(
    home: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBAGENTS_HOME", "~/other")
    assert main(["mcp", "install", name, "--yes"]) == EXIT_OK
    entry = entry_in(home / FILES[name])
    env = entry["environment" if name in ("opencode", "kilo") else "env"]
    assert env == {"SUBAGENTS_HOME": str(home / "other")}


@pytest.mark.requirement("mcp-install:config")
def test_the_snippet_is_what_would_be_registered(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", "config"]) == EXIT_OK
    plain = {"mcpServers": {"subagents": {"command": "subagents", "args": ["mcp"]}}}
    assert json.loads(capsys.readouterr().out) == plain
    for name in FILES:
        assert main(["mcp", "config", name]) == EXIT_OK
        snippet = capsys.readouterr().out
        assert main(["mcp", "install", name, "--yes"]) == EXIT_OK
        parsed = tomllib.loads if name == "codex" else json.loads
        assert parsed((home / FILES[name]).read_text()) == parsed(snippet)
        capsys.readouterr()
    assert main(["mcp", "config", "emacs"]) == EXIT_NOT_FOUND
    assert "known: claude, codex" in capsys.readouterr().err


# -- real programs --------------------------------------------------------------------------------


@pytest.mark.requirement("mcp-install:real")
@pytest.mark.skipif(claude_program() is None, reason="claude-agent-sdk is not installed")
def test_the_real_claude_code_registers_replaces_and_forgets_us(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
    (home / "bin/claude").unlink()
    (home / "bin/claude").symlink_to(str(claude_program()))
    file = home / ".claude.json"
    file.write_text('{"mcpServers": {"subagents": {"command": "/old"}}, "mine": 1}')

    assert main(["mcp", "install", "claude", "--yes"]) == EXIT_OK
    assert entry_in(file) == {"type": "stdio", "command": "subagents", "args": ["mcp"]}
    assert main(["mcp", "install", "claude", "--yes"]) == EXIT_OK
    assert "is already registered" in capsys.readouterr().err
    assert main(["mcp", "uninstall", "claude", "--yes"]) == EXIT_OK

    document = json.loads(file.read_text())
    assert (document["mcpServers"], document["mine"]) == ({}, 1)


# -- the plugin -----------------------------------------------------------------------------------


@pytest.mark.requirement("plugin:whole")
def test_the_plugin_is_whole_and_starts_only_commands_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["mcp", "config", "--plugin"]) == EXIT_OK
    folder = Path(capsys.readouterr().out.strip())
    assert folder == plugin_dir()
    manifest = json.loads((folder / ".claude-plugin/plugin.json").read_text())
    market = json.loads((folder / ".claude-plugin/marketplace.json").read_text())
    server = json.loads((folder / ".mcp.json").read_text())["mcpServers"]["subagents"]
    hooks = json.loads((folder / "hooks/hooks.json").read_text())["hooks"]

    assert (manifest["name"], manifest["version"]) == ("subagents", subagents.__version__)
    assert [each["name"] for each in market["plugins"]] == ["subagents"]
    assert (server["command"], server["args"]) == ("subagents", ["mcp"])
    known = {command.name for commands in groups().values() for command in commands}
    runs = [each for found in hooks.values() for group in found for each in group["hooks"]]
    for each in runs:
        assert each["command"].split()[1] in known
        assert each["timeout"] > 0
    (waiting,) = [each for each in runs if each.get("asyncRewake")]
    assert "--wait" in waiting["command"]
    assert set(hooks) == {"SessionStart", "Stop"}


@pytest.mark.requirement("plugin:whole", "caller:skill")
@pytest.mark.parametrize("is_paragraph", [False, True])
def test_what_teaches_to_delegate_names_only_tools_and_actions_that_there_are(
    *, is_paragraph: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    from subagents.api.tools.tool_registry import TOOLS  # noqa: PLC0415

    assert main(["mcp", "skill", *(["--agents-md"] if is_paragraph else [])]) == EXIT_OK
    text = capsys.readouterr().out
    assert text.startswith("## " if is_paragraph else "---\nname: delegate\ndescription: ")
    assert "Claude" not in text
    schema = TOOLS["subagents"].schema["properties"]
    assert isinstance(schema, dict)
    actions = schema["action"]["enum"]

    named = set(re.findall(r'action: "(\w+)"', text))
    assert {"inbox", "why"} <= named <= set(actions)
    for tool in ("sessions_spawn", "sessions_wait", "agents_list", "respond_orchestrator_request"):
        assert tool in text
        assert tool in TOOLS
