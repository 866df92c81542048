"""Behind the bridge's own handshake: another daemon's tools, and what is remembered of it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.extensions.mcp.bridge.dying_daemon import FakeDaemon, answers, dies

from subagents.extensions.mcp.bridge.daemon_link import Daemon
from subagents.extensions.mcp.bridge.handshake import Handshake, Remembered, recorded, stamp
from subagents.extensions.mcp.bridge.handshake_check import ENTRIES_MAX, check_handshake, remember


def said(result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":0,"result":' + result + b"}"


class Desk:
    """A check of a client's handshake with a daemon that says what it is told to."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SUBAGENTS_HOME", str(place))
        (place / "cache").mkdir()
        self.remembered = Remembered.at({"SUBAGENTS_HOME": str(place)})
        self.daemon = FakeDaemon(place / "s")
        self.handshake = Handshake(recorded())
        self.written: list[Any] = []

    def check(self, files: list[str]) -> None:
        found = Daemon(str(self.daemon.path), {"x-subagents-session": "agent:main:x"}, None)
        written = self.written
        check_handshake(
            found, self.handshake, lambda said: written.append(json.loads(said)), files, "here"
        )


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


@pytest.mark.requirement("mcp:bridge:handshake")
def test_the_same_tools_are_nothing_new_and_instructions_are_remembered(
    desk: Desk, tmp_path: Path
) -> None:
    config = tmp_path / "subagents.toml"
    config.write_text("")
    desk.daemon.turns.put(dies)
    desk.daemon.turns.put(answers(said(desk.handshake.tools)))
    desk.daemon.turns.put(answers(said(msgspec.json.encode({"instructions": "Agents: a"}))))
    desk.check([str(config)])
    assert desk.written == []
    assert desk.handshake.lists_tools
    assert desk.remembered is not None
    assert desk.remembered.find("here") == "Agents: a"


@pytest.mark.requirement("mcp:bridge:handshake")
def test_other_tools_are_told_to_the_client_and_then_the_daemon_lists_them(desk: Desk) -> None:
    desk.daemon.turns.put(answers(said(b'{"tools":[]}')))
    desk.daemon.turns.put(answers(said(b"{}")))
    desk.handshake.version = "2025-11-25"
    listing = {"id": 1, "method": "tools/list"}
    assert desk.handshake.answer(listing) is not None
    desk.check([])
    assert [each["method"] for each in desk.written] == ["notifications/tools/list_changed"]
    assert desk.handshake.answer(listing) is None


@pytest.mark.requirement("mcp:bridge:handshake")
def test_so_many_places_are_remembered_the_oldest_go(tmp_path: Path) -> None:
    remembered = Remembered(str(tmp_path / "m.json"))
    for number in range(ENTRIES_MAX + 2):
        remember(remembered, str(number), "x", {str(tmp_path): stamp(str(tmp_path / "none"))})
    assert list(remembered.entries()) == [str(number) for number in range(2, ENTRIES_MAX + 2)]
