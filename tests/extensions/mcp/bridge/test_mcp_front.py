"""The first answers of ``subagents mcp``, whatever the daemon does."""

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from subagents.config.paths import Paths
from subagents.extensions.mcp.bridge.mcp_front import Lines

BOUND_S = 90
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Client:
    """A client of a bridge whose daemon took its connection and says nothing, for ever."""

    def __init__(self, place: Path) -> None:
        environ = {"PATH": os.environ["PATH"], "SUBAGENTS_HOME": str(place), "HOME": str(place)}
        paths = Paths.resolve(environ)
        paths.ensure()
        self._stuck = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._stuck.bind(str(paths.socket))
        self._stuck.listen()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "subagents", "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Of two lines that come at once, no buffer hides the second one from select.
            bufsize=0,
            stderr=subprocess.DEVNULL,
            env={**environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd=place,
        )

    def send(self, method: str, number: int | None = None, **params: Any) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            message["id"] = number
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], BOUND_S)[0], "no answer"
        return json.loads(self.process.stdout.readline())

    def close(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(BOUND_S)
        self.process.stdout.close()
        self._stuck.close()
        return code


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    found = Client(tmp_path)
    yield found
    if found.process.poll() is None:
        found.process.kill()
        found.close()


@pytest.mark.requirement("mcp:bridge:handshake")
def test_a_client_connects_and_lists_the_tools_while_the_daemon_is_stuck(client: Client) -> None:
    client.send("initialize", 1, protocolVersion="2025-06-18", capabilities={})
    assert client.receive()["result"]["protocolVersion"] == "2025-06-18"
    client.send("notifications/initialized")
    client.send("tools/list", 2)
    assert len(client.receive()["result"]["tools"]) > 5
    # Later ones, too: the bridge has taken over meanwhile.
    client.send("tools/call", 3, name="sessions_list", arguments={})
    client.send("ping", 4)
    client.send("tools/list", 5)
    assert [client.receive()["id"], client.receive()["id"]] == [4, 5]


@pytest.mark.requirement("mcp:bridge:handshake")
def test_the_current_era_is_found_while_the_daemon_is_stuck(client: Client) -> None:
    client.send("server/discover", 1, _meta=META)
    assert (
        "io.modelcontextprotocol/tasks" in client.receive()["result"]["capabilities"]["extensions"]
    )
    client.send("tools/list", 2, _meta=META)
    assert len(client.receive()["result"]["tools"]) > 5
    assert client.close() == 0


@pytest.mark.requirement("mcp:bridge:handshake")
def test_lines_come_back_whole_and_in_their_order() -> None:
    reading, writing = os.pipe()
    lines = Lines(reading)
    os.write(writing, b"one\ntwo\nthr")
    assert lines.read()
    for each in lines.whole():
        lines.kept.append(each)
    os.write(writing, b"ee\n" + b"x" * 50 + b"\nend")
    os.close(writing)
    found = [lines.readline(20) for _ in range(7)]
    os.close(reading)
    assert found == [
        b"one\n",
        b"two\n",
        b"three\n",
        b"x" * 20,
        b"x" * 20,
        b"x" * 10 + b"\n",
        b"end",
    ]
    assert lines.readline(20) == b""
    assert lines.has_ended
