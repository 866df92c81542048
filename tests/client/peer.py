"""What listens on a Unix socket in place of the daemon."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from subagents.config.paths import Paths
from subagents.version import __version__

Reply = Callable[[bytes], bytes]


def http(document: object, *, status: int = 200, head: str = "") -> bytes:
    body = msgspec.json.encode(document)
    lines = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n{head}\r\n"
    return lines.encode() + body


class Peer:
    """Answers each request on a Unix socket with what ``reply`` says; no bytes = hang up."""

    def __init__(self, path: Path, reply: Reply) -> None:
        self.path = path
        self.connections = 0
        self.requests: list[bytes] = []
        self._reply = reply
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # A client that goes away in the middle is what some of these tests are about.
        with connection, suppress(OSError):
            while (request := self._read(connection)) is not None:
                self.requests.append(request)
                answer = self._reply(request)
                if not answer:
                    return
                connection.sendall(answer)

    def _read(self, connection: socket.socket) -> bytes | None:
        content = b""
        while b"\r\n\r\n" not in content:
            received = connection.recv(65536)
            if not received:
                return None
            content += received
        head, _, body = content.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += connection.recv(65536)
        return head + b"\r\n\r\n" + body

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)  # closing alone ends no accept
        self._socket.close()
        for each in self._open:
            each.close()


@contextmanager
def peer(directory: Path, reply: Reply) -> Iterator[Peer]:
    found = Peer(directory / "s", reply)
    try:
        yield found
    finally:
        found.close()


@contextmanager
def daemon_of_other_code(
    home: Path, monkeypatch: pytest.MonkeyPatch, document: object
) -> Iterator[None]:
    """Commands of this process find it, of this version, and get this for every call."""
    head = f"x-subagents-version: {__version__}\r\nx-subagents-code: wheel old 0\r\n"
    monkeypatch.setattr("subagents.version.code_stamp", lambda: "wheel new")
    monkeypatch.setenv("SUBAGENTS_HOME", str(home))
    monkeypatch.delenv("SUBAGENTS_SOCKET", raising=False)
    paths = Paths.resolve({"SUBAGENTS_HOME": str(home)})
    paths.ensure()
    with closing(Peer(paths.socket, lambda _: http(document, head=head))):
        yield
