"""A daemon for tests of the bridge: it takes one turn for each connection, and dies at will."""

import queue
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

BOUND_S = 90.0
Turn = Callable[[socket.socket], None]


def dies(_connection: socket.socket) -> None:
    """It had read the request, and is gone."""


def answers(body: bytes, *, status: int = 200, kind: str = "application/json") -> Turn:
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return lambda connection: connection.sendall(head.encode() + body)


def result(number: object, **more: Any) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "result": more})


class FakeDaemon:
    """Takes one turn for each connection, in order; keeps what it was sent."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.turns: queue.Queue[Turn] = queue.Queue()
        self.heads: list[str] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self.heads.append(_request(connection))
                self.turns.get(timeout=BOUND_S)(connection)

    def stop(self) -> None:
        """As one that was told to: its socket is gone."""
        self.path.unlink(missing_ok=True)
        self._listener.close()


def _request(connection: socket.socket) -> str:
    content = b""
    while b"\r\n\r\n" not in content:
        content += connection.recv(65536)
    head, _, body = content.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return head.decode()
