"""A line to a PostgreSQL that fails at a commit: what is sent or answered does not arrive."""

import contextlib
import select
import socket
import tempfile
import threading
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

SOCKET = ".s.PGSQL.5432"
BYTES = 1 << 20


class Cut(Enum):
    """What becomes of the next commit."""

    ANSWER_LOST = "it is made, and nobody is told"
    PACKET_LOST = "it never arrives"
    DELAYED = "the line is cut, and it arrives later"
    HALF_SENT = "whoever sends it is frozen in the middle"
    WHOLE = "nothing of it arrives before all of it was sent"


class CutLine:
    """Between clients and the server whose socket is in ``server``; made by ``laid``."""

    def __init__(self, directory: Path, server: Path) -> None:
        self.directory = directory
        self._server = server
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(directory / SOCKET))
        self._listener.listen()
        self._next: Cut | None = None
        self._held: tuple[socket.socket, bytes] | None = None
        self.is_cut = threading.Event()
        """The commit that ``cut`` is about was met."""
        self._gathered = b""
        self._thawed = threading.Event()
        self._thawed.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, what: Cut) -> None:
        """At the next commit."""
        self.is_cut.clear()
        self._next = what

    def thaw(self) -> None:
        """Who was frozen goes on, and sends the rest, to a server that may have ended it."""
        held, self._held = self._held, None
        self._thawed.set()
        if held is not None:
            with contextlib.suppress(OSError):
                held[0].sendall(held[1])

    def deliver(self) -> bytes:
        """Let what was delayed arrive, and return what the server says of it."""
        assert self._held is not None
        server, data = self._held
        self._held = None
        with server:
            server.sendall(data)
            return server.recv(BYTES)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server / SOCKET))
                threading.Thread(target=self._carry, args=(client, server), daemon=True).start()

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        self._thawed.wait()  # who is frozen in the middle of something begins nothing else
        with contextlib.suppress(OSError), client:
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(BYTES)
                    if not data:
                        server.close()
                        return
                    if ready is server:
                        client.sendall(data)
                    elif not self._sent(data, server):
                        return
        server.close()

    def _sent(self, data: bytes, server: socket.socket) -> bool:
        """Pass on what a client sent; False = it hears no more."""
        if self._next is None or not (self._gathered or b"BEGIN" in data):
            server.sendall(data)
            return True
        self._gathered += data
        if b"COMMIT" not in self._gathered:
            return True
        what, self._next = self._next, None
        data, self._gathered = self._gathered, b""
        is_heard = False
        match what:
            case Cut.ANSWER_LOST:
                server.sendall(data)
                server.recv(BYTES)
                server.close()
            case Cut.PACKET_LOST:
                server.close()
            case Cut.DELAYED:
                self._held = (server, data)
            case Cut.WHOLE:
                server.sendall(data)
                is_heard = True
            case Cut.HALF_SENT:
                self._thawed.clear()
                half = data.index(b"COMMIT") - 20
                server.sendall(data[:half])
                self._held = (server, data[half:])
                is_heard = True
        self.is_cut.set()
        return is_heard

    def close(self) -> None:
        self._thawed.set()
        self._listener.shutdown(socket.SHUT_RDWR)  # closing alone ends no accept
        self._listener.close()


@contextlib.contextmanager
def laid(server: Path) -> Iterator[CutLine]:
    """A line to the server whose socket is there, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="subagents-line-") as directory:
        line = CutLine(Path(directory), server)
        try:
            yield line
        finally:
            line.close()
