"""Whether a handshake that the bridge made by itself is what the daemon would have said.

The daemon may be of another version, or its configuration may have changed. So it is started and
asked in the background. Where it has other tools, the client is notified that its list is old, and
from then on the daemon answers itself. Its instructions are remembered for the next start.
"""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from subagents.client.transport import Absence, Connection, Gone, request
from subagents.extensions.mcp.bridge.bridge_rpc import Call, decoded, messages, refuse_stopping
from subagents.extensions.mcp.bridge.daemon_link import SILENCE_S, Daemon, say
from subagents.extensions.mcp.bridge.handshake import (
    CAPABILITIES_META,
    VERSION_META,
    Handshake,
    Remembered,
    stamp,
)

ENTRIES_MAX: Final = 64
"""The most places whose instructions are remembered; projects without a configuration share one."""
CHANGED: Final = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'


def check_handshake(
    daemon: Daemon,
    handshake: Handshake,
    write: Callable[[bytes], None],
    files: Sequence[str],
    place: str,
) -> None:
    """Compare and remember; gives up quietly where no daemon comes up, for calls will say so.

    Args:
        daemon: Started when it is not there.
        handshake: What was said in its name.
        write: Sends a message to the client.
        files: The files that the instructions depend on, there or not.
        place: The name under which these are remembered.
    """
    absence = Absence()
    while True:
        absence.asking()
        # Before it reads them: a file that changes meanwhile is then asked about again.
        seen = {file: stamp(file) for file in files}
        try:
            listed = _ask(daemon, handshake, "tools/list")
            introduced = decoded(_ask(daemon, handshake, "server/discover")).get("result")
        except Gone as gone:
            if not daemon.come_back(gone, absence, may_have_acted=False):
                return
        else:
            break
    # Byte by byte: both are written by the same encoder, and the order of tools counts, too.
    if listed != b'{"jsonrpc":"2.0","id":0,"result":' + handshake.tools + b"}":
        say("the daemon offers other tools than this version does; `subagents down` ends it")
        handshake.lists_tools = False
        with contextlib.suppress(OSError):
            write(CHANGED)
    text = introduced.get("instructions") if isinstance(introduced, dict) else None
    remembered = Remembered.at(os.environ)
    if isinstance(text, str) and remembered is not None:
        remember(remembered, place, text, seen)


def _ask(daemon: Daemon, handshake: Handshake, method: str) -> bytes:
    """The daemon's answer to a request of the current era.

    Raises:
        Gone: It gave none, or is stopping.
    """
    meta = {VERSION_META: handshake.modern, CAPABILITIES_META: {}}
    message = {"jsonrpc": "2.0", "id": 0, "method": method, "params": {"_meta": meta}}
    body = msgspec.json.encode(message)
    call = Call(0, 0, method, {"_meta": meta}, body)
    headers = {**daemon.headers, "connection": "close", **call.headers(None)}
    connection = Connection(daemon.socket_path)
    try:
        sent = request("POST", "/mcp", headers, body)
        answer = connection.send(sent, timeout_s=SILENCE_S)
        for data in messages(connection, answer):
            refuse_stopping(decoded(data))
            return data
    finally:
        connection.close()
    raise Gone("it sent no answer", was_sent=True)


def remember(
    remembered: Remembered, place: str, text: str, seen: Mapping[str, Sequence[int] | None]
) -> None:
    """Keep the instructions for that place, and what they depend on; the oldest go first."""
    entries: dict[str, Any] = remembered.entries()
    entry = {"text": text, "files": dict(seen)}
    if entries.get(place) == entry:
        return
    entries.pop(place, None)
    kept = dict([*entries.items(), (place, entry)][-ENTRIES_MAX:])
    file = Path(remembered.file)
    # Replaced whole: other sessions read it at any moment. Of two that write, one is forgotten.
    new = file.with_name(f".{file.name}.{os.getpid()}")
    with contextlib.suppress(OSError, UnicodeError):
        new.write_bytes(msgspec.json.encode(kept))
        new.replace(file)
