"""What the bridge says without a daemon: the same bytes, and nothing that takes time."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import subagents
from subagents.config.paths import Paths
from subagents.extensions.mcp.bridge.handshake import (
    CAPABILITIES_META,
    REMEMBERED,
    VERSION_META,
    Handshake,
    Remembered,
    cache_dir,
    own_handshake,
    parsed,
    place_of,
    recorded,
    stamp,
)

FAST = """
[agents.defaults.subagents]
agent = "fast"
[agents.main]
subagents.allow_agents = ["fast"]
[agents.fast]
runtime = "scripted"
description = "Answers ünï at once"
"""
MODERN = {VERSION_META: "2026-07-28", CAPABILITIES_META: {}}


def asked(found: Handshake, method: str, **params: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": "a", "method": method, "params": params}
    answer = found.answer(message)
    return None if answer is None else msgspec.json.decode(answer)["result"]


@pytest.mark.requirement("mcp:bridge:handshake")
@pytest.mark.parametrize(
    ("wanted", "agreed"), [("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")]
)
def test_a_client_gets_the_version_it_wants_or_the_newest(wanted: str, agreed: str) -> None:
    found = Handshake(recorded())
    assert asked(found, "tools/list") is None, "nothing was agreed on yet"
    assert asked(found, "initialize", protocolVersion=wanted)["protocolVersion"] == agreed
    assert found.version == agreed
    assert "sessions_spawn" in [each["name"] for each in asked(found, "tools/list")["tools"]]
    assert asked(found, "ping") == {}


@pytest.mark.requirement("mcp:bridge:handshake")
def test_the_current_era_is_answered_with_tasks_and_tools() -> None:
    found = Handshake(recorded())
    said = asked(found, "server/discover", _meta=MODERN)
    assert "io.modelcontextprotocol/tasks" in said["capabilities"]["extensions"]
    assert "sessions_wait brings results" in said["instructions"]
    assert asked(found, "tools/list", _meta=MODERN)["tools"]


@pytest.mark.requirement("mcp:bridge:handshake")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "sessions_list", "_meta": MODERN}),
        ("tools/list", {"cursor": "9", "_meta": MODERN}),
        ("tools/list", {"_meta": {**MODERN, VERSION_META: "2099-01-01"}}),
        ("tools/list", {"_meta": {VERSION_META: "2026-07-28"}}),
        ("ping", {"_meta": MODERN}),
        ("initialize", {}),
    ],
)
def test_everything_else_is_the_daemons_to_answer(method: str, params: dict[str, Any]) -> None:
    assert asked(Handshake(recorded()), method, **params) is None


@pytest.mark.requirement("mcp:bridge:handshake")
@pytest.mark.parametrize("id_", [True, None, 1.5, {}])
def test_an_id_that_is_no_plain_one_is_left_to_the_bridge(id_: object) -> None:
    message = {"jsonrpc": "2.0", "id": id_, "method": "initialize", "params": {}}
    assert Handshake(recorded()).answer(message) is None


@pytest.mark.requirement("mcp:bridge:handshake")
@pytest.mark.parametrize("text", [b"", b"{", b'{"a":}', b"{} x", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_not_parsed(text: bytes) -> None:
    assert parsed(text) is None


@pytest.mark.requirement("mcp:bridge:handshake")
def test_instructions_are_remembered_until_a_file_they_depend_on_changes(tmp_path: Path) -> None:
    config = tmp_path / "subagents.toml"
    missing = str(tmp_path / "none")
    config.write_text("a = 1")
    files = {str(config): stamp(str(config)), missing: None}
    place = place_of([], str(tmp_path))
    assert place == str(config)
    entry = {"text": "Agents: ünï", "files": files}
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / REMEMBERED).write_bytes(msgspec.json.encode({place: entry}))
    environ = {"SUBAGENTS_HOME": str(tmp_path), "CLAUDE_PROJECT_DIR": str(tmp_path)}

    def said() -> str:
        found = own_handshake([], environ)
        assert found is not None
        text: str = asked(found, "server/discover", _meta=MODERN)["instructions"]
        return text

    assert said() == "Agents: ünï"
    config.write_text("a = 22")
    assert "Agents: ünï" not in said()


@pytest.mark.requirement("mcp:bridge:handshake", "mcp:fleet")
@pytest.mark.parametrize(
    ("arguments", "config", "told"),
    [
        ([], "", "agents.main.subagents.allow_agents of subagents.toml"),
        ([], FAST, "agentId (default: fast):\n- fast: Answers ünï at once"),
        (["--session", "review"], FAST, "- fast: Answers ünï at once"),
        (["--ceiling", "read"], FAST, "- fast: Answers ünï at once"),
        (["--session=agent:other:x"], FAST, "agents.other.subagents.allow_agents"),
        (["--session", "agent:other:x"], FAST.replace("main", "other"), "- fast: Answers"),
        ([], "agents.main = 3", "The configuration cannot be read: "),
        ([], "no toml", "The configuration cannot be read: "),
    ],
)
def test_the_first_session_of_a_place_is_told_whom_it_may_spawn(
    tmp_path: Path, arguments: list[str], config: str, told: str
) -> None:
    environ = {"SUBAGENTS_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    file = Paths.resolve(environ).config_file
    file.parent.mkdir(parents=True)
    file.write_text(config)

    own = own_handshake(arguments, {**environ, "CLAUDE_PROJECT_DIR": str(tmp_path)})

    assert own is not None
    said = asked(own, "server/discover", _meta=MODERN)["instructions"]
    assert "sessions_wait brings results" in said
    assert told in said


@pytest.mark.requirement("mcp:bridge:handshake")
@pytest.mark.parametrize("content", [b"", b"[]", b'{"x":1}', b'{"x":{"text":1,"files":{}}}'])
def test_a_broken_memory_is_no_memory(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "m.json"
    file.write_bytes(content)
    assert Remembered(str(file)).find("x") is None


@pytest.mark.requirement("mcp:bridge:handshake")
@pytest.mark.parametrize("content", [None, "", "no json", '{"legacy":[]}'])
def test_a_broken_record_leaves_the_answers_to_the_daemon(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "answers"
    if content is not None:
        file.write_text(content)
    monkeypatch.setattr("subagents.extensions.mcp.bridge.handshake.RECORDED", str(file))
    assert own_handshake([], {}) is None


@pytest.mark.requirement("mcp:bridge:handshake")
def test_options_that_are_not_known_here_are_left_to_the_command() -> None:
    assert own_handshake(["--session", "x"], {}) is not None
    assert own_handshake(["--bogus"], {}) is None


@pytest.mark.requirement("mcp:bridge:handshake")
@pytest.mark.parametrize("name", ["SUBAGENTS_HOME", "XDG_CACHE_HOME", "HOME"])
def test_the_cache_is_where_the_paths_have_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("SUBAGENTS_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(each, raising=False)
    environ = {name: str(tmp_path)}
    monkeypatch.setenv(name, str(tmp_path))
    assert cache_dir(environ) in (str(Paths.resolve(environ).cache_dir), None)


@pytest.mark.requirement("mcp:bridge:light")
def test_the_first_answers_need_no_module_that_takes_time_to_import() -> None:
    """Each of these costs as much as a whole interpreter."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "import subagents.__main__, subagents.extensions.mcp.bridge.mcp_front as front;"
        "front.own_handshake([], {});"
        "heavy = {'typing', 're', 'json', 'collections', 'enum', 'msgspec', 'socket', 'threading',"
        " 'pathlib', 'dataclasses', 'contextlib', 'mcp', 'pydantic', 'httpx2'};"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    source = str(Path(subagents.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, source],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
