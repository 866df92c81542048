"""One request of the MCP bridge to the daemon, on a connection of its own.

The answer is one JSON document or a stream of events, of which each holds one JSON-RPC message.
Like ``client``, this speaks HTTP/1.1 in a few lines: the bridge starts with every session of every
client, and ``http.client`` costs more than all the rest of it.

Source: 5-surfaces §3.
"""

import base64
import contextlib
import re
import socket
from collections.abc import Iterator, Mapping
from typing import Final

CONNECT_S: Final = 5.0
SILENCE_S: Final = 60.0
"""The daemon says something at least every 15 s; after so long without a byte it is taken for
dead."""
HEAD_BYTES_MAX: Final = 64 * 1024
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
READ_BYTES: Final = 256 * 1024
_PLAIN: Final = re.compile(r"[\x20-\x7e]*")
_WRAPPED: Final = re.compile(r"=\?base64\?.*\?=")


class Gone(Exception):
    """No daemon answers, or it went away; ``was_sent`` says whether it may have acted."""

    def __init__(self, reason: str, *, was_sent: bool) -> None:
        super().__init__(reason)
        self.was_sent = was_sent


class Post:
    """A POST and its answer; ``close`` may be called from any thread, at any time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._rest = bytearray()
        self._headers: dict[str, str] = {}
        self.status = 0
        self.is_closed = False

    def send(self, target: str, headers: Mapping[str, str], body: bytes) -> None:
        """Send the request and read the head of its answer.

        Args:
            target: The path of the URL.
            headers: Names and values in printable ASCII.
            body: JSON.

        Raises:
            Gone: Before or after it was sent.
        """
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"POST {target} HTTP/1.1\r\nhost: subagents\r\nconnection: close\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n{lines}\r\n"
        )
        try:
            self._socket.settimeout(CONNECT_S)
            self._socket.connect(self._path)
        except OSError as error:
            raise Gone(error.strerror or str(error), was_sent=False) from error
        try:
            self._socket.settimeout(SILENCE_S)
            self._socket.sendall(head.encode("ascii") + body)
        except OSError as error:
            # It may have refused early, and said why, before it had read everything.
            with contextlib.suppress(Gone):
                self._read_head()
                return
            raise Gone(error.strerror or str(error), was_sent=True) from error
        self._read_head()

    def _read_head(self) -> None:
        while (end := self._rest.find(b"\r\n\r\n")) < 0:
            if len(self._rest) > HEAD_BYTES_MAX:
                raise Gone("what answers there is no daemon", was_sent=True)
            self._more()
        head = self._rest[:end].decode("latin-1")
        del self._rest[: end + 4]
        status_line, *lines = head.split("\r\n")
        try:
            self.status = int(status_line.split(" ")[1])
        except (IndexError, ValueError) as error:
            raise Gone("what answers there is no daemon", was_sent=True) from error
        pairs = (line.partition(":") for line in lines)
        self._headers = {name.strip().lower(): value.strip().lower() for name, _, value in pairs}

    def messages(self) -> Iterator[bytes]:
        """The messages of the answer as they come, each one JSON document.

        Raises:
            Gone: The answer ended in the middle.
        """
        if "text/event-stream" not in self._headers.get("content-type", ""):
            content = bytearray()
            for part in self._parts():
                content += part
                if len(content) > ANSWER_BYTES_MAX:
                    raise Gone("the answer is too large", was_sent=True)
            yield bytes(content)
            return
        kept = bytearray()
        for part in self._parts():
            kept += part.replace(b"\r", b"")
            while (end := kept.find(b"\n\n")) >= 0:
                event = bytes(kept[:end])
                del kept[: end + 2]
                if data := _data(event):
                    yield data
            if len(kept) > ANSWER_BYTES_MAX:
                raise Gone("the answer is too large", was_sent=True)

    def _parts(self) -> Iterator[bytes]:
        """The body, in the pieces in which it comes."""
        if self._headers.get("transfer-encoding") == "chunked":
            while (size := int(self._line(), 16)) > 0:
                yield self._exactly(size)
                self._exactly(2)
            return
        left = int(self._headers.get("content-length", "0"))
        while left > 0:
            if not self._rest:
                self._more()
            part = bytes(self._rest[:left])
            del self._rest[: len(part)]
            left -= len(part)
            yield part

    def _line(self) -> bytes:
        while (end := self._rest.find(b"\r\n")) < 0:
            self._more()
        line = bytes(self._rest[:end])
        del self._rest[: end + 2]
        return line

    def _exactly(self, size: int) -> bytes:
        while len(self._rest) < size:
            self._more()
        part = bytes(self._rest[:size])
        del self._rest[:size]
        return part

    def _more(self) -> None:
        try:
            found = self._socket.recv(READ_BYTES)
        except OSError as error:
            raise Gone(error.strerror or str(error), was_sent=True) from error
        if not found:
            raise Gone("it closed the connection", was_sent=True)
        self._rest += found

    def close(self) -> None:
        """Leave; whoever reads meanwhile is told that the other side went. Idempotent."""
        self.is_closed = True
        with contextlib.suppress(OSError):
            # Closing alone would not wake a thread that reads.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _data(event: bytes) -> bytes:
    """The data of one event; "" of a comment."""
    lines = [line[5:] for line in event.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(line.removeprefix(b" ") for line in lines)


def header_value(text: str) -> str:
    """A text as the protocol puts it into a header: as it is, or in base64."""
    is_plain = _PLAIN.fullmatch(text) and text == text.strip() and not _WRAPPED.fullmatch(text)
    if is_plain:
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="
