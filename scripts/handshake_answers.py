"""What the daemon says while a client connects, recorded for the bridge.

    python -m scripts.handshake_answers [--check]

starts a daemon in a home of its own, asks it in both eras of the protocol, and writes the answers
to ``handshake_answers.jsonl`` of ``extensions/mcp/bridge``: one ``{"NAME":ANSWER}`` in each line.
With ``--check`` it changes nothing and exits with 1 when the file is out of date.
"""

import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import msgspec

from subagents.client.client import Client
from subagents.client.daemon_start import ensure_daemon
from subagents.client.transport import Connection, request
from subagents.config.paths import Paths
from subagents.extensions.mcp import mcp_message
from subagents.extensions.mcp.bridge import handshake
from subagents.extensions.mcp.bridge.bridge_rpc import messages
from subagents.extensions.mcp.mcp_methods import DELEGATE

FILE: Final = Path(handshake.__file__).with_name(handshake.RECORDED)
LEGACY: Final = list(mcp_message.LEGACY)
MODERN: Final = list(mcp_message.MODERN)
_TIMEOUT_S: Final = 60.0
_SAYS_NO_CHANGES: Final = b'"tools":{"listChanged":false}'
_SAYS_CHANGES: Final = b'"tools":{"listChanged":true}'
"""The bridge can say that its list was another version's; on the current era nobody has to, since
those answers are not kept."""


def main(arguments: list[str]) -> int:
    """Write the file, or compare it; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="subagents-handshake-") as home:
        found = recorded(Path(home))
    if "--check" not in arguments:
        FILE.write_bytes(found)
    elif FILE.read_bytes() != found:
        print(f"{FILE} is out of date; run `make docs`", file=sys.stderr)
        return 1
    return 0


def recorded(home: Path) -> bytes:
    """The content of the file, as a daemon in ``home`` answers now; the daemon is ended."""
    paths = Paths.resolve({"SUBAGENTS_HOME": str(home)})
    ensure_daemon(paths, {**os.environ, "SUBAGENTS_HOME": str(home)})
    try:
        return answers(str(paths.socket))
    finally:
        with Client(paths.socket) as client:
            pid = client.get("/version")["pid"]
        if isinstance(pid, int):
            os.kill(pid, signal.SIGTERM)


def answers(socket_path: str) -> bytes:
    """The content of the file, as the daemon at that socket answers now."""
    meta = {handshake.VERSION_META: MODERN[-1], handshake.CAPABILITIES_META: {}}
    client = {"name": "recorder", "version": "1"}
    hello = {"protocolVersion": LEGACY[-1], "capabilities": {}, "clientInfo": client}
    asked: dict[str, dict[str, Any]] = {
        "legacy initialize": hello,
        "legacy ping": {},
        "legacy tools/list": {},
        "modern server/discover": {"_meta": meta},
        "modern tools/list": {"_meta": meta},
    }
    lines = {
        "legacy": msgspec.json.encode(LEGACY),
        "modern": msgspec.json.encode(MODERN),
        "instructions": handshake.quoted(DELEGATE),
    }
    for name, params in asked.items():
        era, _, method = name.partition(" ")
        version = MODERN[-1] if era == "modern" else LEGACY[-1]
        lines[name] = with_slots(name, result(ask(socket_path, method, params, version)))
    return b"".join(b'{"%s":%s}\n' % (name.encode(), value) for name, value in lines.items())


def ask(socket_path: str, method: str, params: dict[str, Any], version: str) -> bytes:
    """The daemon's answer to one request, as it is on the wire."""
    message = {"jsonrpc": "2.0", "id": 0, "method": method, "params": params}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-method": method,
        "x-subagents-session": "agent:main:recorder",
    }
    if method != "initialize":
        headers["mcp-protocol-version"] = version
    connection = Connection(socket_path)
    try:
        body = msgspec.json.encode(message)
        sent = request("POST", "/mcp", {**headers, "connection": "close"}, body)
        answer = connection.send(sent, timeout_s=_TIMEOUT_S)
        found = next(messages(connection, answer))
    finally:
        connection.close()
    if answer.status != 200:
        raise ValueError(f"{method}: HTTP {answer.status}: {found[:500]!r}")
    return found


def result(content: bytes) -> bytes:
    """The result inside an answer, byte for byte."""
    return content.strip().removeprefix(b'{"jsonrpc":"2.0","id":0,"result":')[:-1]


def with_slots(name: str, found: bytes) -> bytes:
    """A result without what differs from client to client."""
    instructions = msgspec.json.decode(found).get("instructions")
    if instructions is not None:
        found = found.replace(msgspec.json.encode(instructions), handshake.INSTRUCTIONS_SLOT)
    if name == "legacy initialize":
        version = msgspec.json.encode(LEGACY[-1])
        found = found.replace(version, handshake.VERSION_SLOT)
        found = found.replace(_SAYS_NO_CHANGES, _SAYS_CHANGES)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
