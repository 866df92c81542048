"""A small MCP server of somebody else's: one tool, ``weigh``, that says what it was given.

    python small_mcp_server.py             over stdin and stdout
    with serving("Bearer x") as url: …     over streamable HTTP

Its answer has the SHA-256 of ``$WEIGHING_KEY``, or of the header ``authorization``: so a test sees
that the secret came, and the secret is in no answer. It says so, too, where a process shows it.
"""

import hashlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TOOL = {
    "name": "weigh",
    "description": "Weighs things",
    "inputSchema": {"type": "object", "properties": {}},
}
SESSION = "session-1"


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def weighed(secret: str) -> str:
    shown = any(secret.encode() in _read(each) for each in Path("/proc").glob("[0-9]*/cmdline"))
    return f"weighed {digest(secret)}{', which an argument shows' if shown else ''}."


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # that process is gone
        return b""


def answer(message: dict[str, Any], secret: str) -> dict[str, Any] | None:
    """The answer to one message; None = it needs none."""
    if "id" not in message:
        return None
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "scales", "version": "1"},
        },
        "tools/list": {"tools": [TOOL]},
        "tools/call": {"content": [{"type": "text", "text": weighed(secret)}]},
    }
    found = results.get(str(message.get("method")))
    head = {"jsonrpc": "2.0", "id": message["id"]}
    if found is None:
        return {**head, "error": {"code": -32601, "message": "Method not found"}}
    return {**head, "result": found}


class _Handler(BaseHTTPRequestHandler):
    wanted = ""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers.get("authorization") != self.wanted:
            self.send_error(401)
            return
        if body.get("method") != "initialize" and self.headers.get("mcp-session-id") != SESSION:
            self.send_error(400)
            return
        made = answer(body, self.wanted)
        self.send_response(202 if made is None else 200)
        self.send_header("mcp-session-id", SESSION)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if made is not None:
            self.wfile.write(f"event: message\ndata: {json.dumps(made)}\n\n".encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(authorization: str) -> Iterator[str]:
    """Where it answers whoever sends that header."""
    handler = type("Handler", (_Handler,), {"wanted": authorization})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()


if __name__ == "__main__":
    for line in sys.stdin:
        if (found := answer(json.loads(line), os.environ.get("WEIGHING_KEY", ""))) is not None:
            sys.stdout.write(f"{json.dumps(found)}\n")
            sys.stdout.flush()
