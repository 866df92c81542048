"""The HTTP client: a request to the daemon's Unix socket, and the answer as it comes.

Every command imports this module, and the MCP bridge starts with every session of an agent
program. Importing httpx2 costs 59 ms and http.client 12 ms; httptools costs 1 ms and is what
uvicorn parses with at the other end. So parsing is the library's, and only the sockets are ours.
asyncio is imported where it is used for the same reason.
"""

import contextlib
import errno
import math
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from httptools import HttpParserError, HttpResponseParser

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

CONNECT_TIMEOUT_S: Final = 5.0
HEAD_BYTES_MAX: Final = 64 * 1024
BODY_BYTES_MAX: Final = 64 * 1024 * 1024
"""A size above that of any answer of the daemon; a larger one is no daemon of ours."""
WAIT_S: Final = 1.0
"""One wait for bytes: a Ctrl-C that comes just before it begins is only seen at its end."""
READ_BYTES: Final = 256 * 1024
IDLE_S: Final = 2.0
"""Less than the five seconds after which uvicorn closes an idle connection: a connection that may
be closing must not carry a request that cannot be repeated."""
RECONNECT_S: Final = 30.0
"""How long a client looks for a daemon since it was last there."""
HELD_S: Final = 1.0
"""A daemon that held a call this long was at work on it, whatever it answered."""


class Gone(Exception):
    """No daemon answers, or it went away.

    Args:
        reason: In a few words, for a person.
        was_sent: Whether the daemon may have acted on the request.
    """

    served = True
    """What took the request was a daemon that was at work on it."""

    def __init__(self, reason: str, *, was_sent: bool) -> None:
        super().__init__(reason)
        self.was_sent = was_sent

    @property
    def was_there(self) -> bool:
        """Whether a daemon served the request until this moment, and then went away."""
        return self.was_sent and self.served


class Silent(Gone):
    """It took the request and did not answer in time."""

    served = False

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it did not answer within {seconds:.0f} s", was_sent=True)


class NotHttp(Gone):
    """What answers is not a subagents daemon."""

    served = False

    def __init__(self) -> None:
        super().__init__("what answers there is not a subagents daemon", was_sent=True)


class Absence:
    """How long one call looks for its daemon: the same rule for every client.

    It counts from when a daemon was last there, not from when the call began. A call that waits for
    something may lose any number of daemons until its own time is up. One that is answered at once
    counts from the first that it lost: it may itself be what ends them.

    Args:
        until: When the call's own time is up, by ``now``; ``math.inf`` = it waits as long as it
            takes, None = it is answered at once.
        for_s: Seconds; None = ``RECONNECT_S``.
        now: A clock in seconds that only goes on.
    """

    def __init__(
        self,
        *,
        until: float | None = None,
        for_s: float | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._until = -math.inf if until is None else until
        self._for_s = RECONNECT_S if for_s is None else for_s
        self._now = now
        self._asked = now()
        # When a daemon was last there, as far as this call knows.
        self._since: float | None = None

    def asking(self) -> None:
        """The daemon is asked now; call it before each try."""
        self._asked = self._now()

    @property
    def was_held(self) -> bool:
        """Whether the last try took so long that a daemon was at it."""
        return self._now() - self._asked >= HELD_S

    def goes_on(self, *, was_there: bool) -> bool:
        """Whether to ask again after a try that failed.

        Args:
            was_there: See ``Gone.was_there``.
        """
        now = self._now()
        if was_there and (self._since is None or now < self._until):
            self._since = now
        elif self._since is None:
            self._since = self._asked
        return now < self._since + self._for_s


def request(
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes | None,
    *,
    host: str = "subagents",
) -> bytes:
    """The bytes of a request.

    Args:
        method: ``GET`` or ``POST``.
        target: Path and query, escaped.
        headers: Names and values in printable ASCII; those of the body are added.
        body: JSON; None = there is none.
        host: Whose it is.
    """
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    kind = "" if body is None else "content-type: application/json\r\n"
    head = f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{lines}{kind}"
    return f"{head}content-length: {len(body or b'')}\r\n\r\n".encode("ascii") + (body or b"")


class Answer:
    """One answer, parsed as its bytes come; does no I/O.

    Args:
        has_length: It must have one, as every answer of the daemon.
    """

    def __init__(self, *, has_length: bool = True) -> None:
        self._has_length = has_length
        self.status = 0
        self.headers: dict[str, str] = {}
        """Names in lower case."""
        self.has_head = False
        self.is_complete = False
        self.keeps_alive = False
        """Whether the connection can carry another request; known once it is complete."""
        self._parts: list[bytes] = []
        self._fed = 0
        self._parser = HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """Parse what was received.

        Raises:
            NotHttp: It is no answer, has no length, or is larger than any of the daemon's.
        """
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            raise NotHttp from error
        self._fed += len(data)
        if self.is_complete:
            return
        # Refused by its head, before a gigabyte of somebody else's answer is read.
        if self.has_head and self._has_length:
            length = self.headers.get("content-length")
            is_framed = length is not None or "transfer-encoding" in self.headers
            if not is_framed or int(length or 0) > BODY_BYTES_MAX:
                raise NotHttp
        elif not self.has_head and self._fed > HEAD_BYTES_MAX:
            raise NotHttp

    def take(self) -> bytes:
        """What came of the body since the last call."""
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        # Below 200 it is no answer yet: "100 Continue" and its like.
        self.has_head = self.status >= 200

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        if not self.has_head:
            self.headers.clear()
            return
        self.keeps_alive = self._parser.should_keep_alive()
        self.is_complete = True


class Connection:
    """A connection that blocks, for one request after another.

    ``close`` may be called from any thread at any time; whoever reads meanwhile gets ``Gone``.
    """

    def __init__(self, path: "Path | str") -> None:
        """Connects at the first request."""
        self._path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._is_connected = False
        self._timeout_s = 0.0
        self._answer: Answer | None = None
        self._answered_at = 0.0

    @property
    def is_reusable(self) -> bool:
        """Whether another request may be sent on it."""
        is_done = self._answer is not None and self._answer.keeps_alive
        return is_done and time.monotonic() - self._answered_at <= IDLE_S

    def exchange(self, sent: bytes, *, timeout_s: float) -> tuple[Answer, bytes]:
        """Send a request and read the whole answer.

        Args:
            sent: From ``request``.
            timeout_s: Seconds without a byte after which the daemon counts as silent.

        Returns:
            The answer and its body.

        Raises:
            Gone: See ``Gone.was_sent``; the connection is of no use any more.
        """
        answer = self.send(sent, timeout_s=timeout_s)
        content = bytearray()
        for part in self.parts():
            content += part
            if len(content) > BODY_BYTES_MAX:
                raise NotHttp
        return answer, bytes(content)

    def send(self, sent: bytes, *, timeout_s: float) -> Answer:
        """Send a request and read the head of its answer; ``parts`` reads the rest.

        Raises:
            Gone: As ``exchange`` does.
        """
        self._connect()
        self._answer = answer = Answer()
        self._timeout_s = timeout_s
        try:
            self._socket.settimeout(timeout_s)
            self._socket.sendall(sent)
        except TimeoutError as error:
            raise Silent(timeout_s) from error
        except OSError as error:
            # It may have refused early, and said why, before it had read everything.
            with contextlib.suppress(Gone):
                self._read_head(answer)
                return answer
            raise Gone(_reason(error), was_sent=True) from error
        self._read_head(answer)
        return answer

    def parts(self) -> Iterator[bytes]:
        """The body of the answer, in the pieces in which it comes.

        Raises:
            Gone: It ended in the middle.
        """
        answer = self._answer
        while answer is not None:
            if part := answer.take():
                yield part
            if answer.is_complete:
                self._answered_at = time.monotonic()
                return
            self._read(answer)

    def close(self) -> None:
        """Leave. Idempotent."""
        self._answer = None
        with contextlib.suppress(OSError):
            # Closing alone would not wake a thread that reads.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _connect(self) -> None:
        if self._is_connected:
            return
        try:
            self._socket.settimeout(CONNECT_TIMEOUT_S)
            self._socket.connect(self._path)
            _check_peer(self._socket)
        except OSError as error:
            raise Gone(_reason(error), was_sent=False) from error
        self._is_connected = True

    def _read_head(self, answer: Answer) -> None:
        while not answer.has_head:
            self._read(answer)

    def _read(self, answer: Answer) -> None:
        due = time.monotonic() + self._timeout_s
        while True:
            try:
                # Another thread may have closed it meanwhile.
                self._socket.settimeout(max(min(due - time.monotonic(), WAIT_S), 0.001))
                found = self._socket.recv(READ_BYTES)
                break
            except TimeoutError as error:
                if time.monotonic() >= due:
                    raise Silent(self._timeout_s) from error
            except OSError as error:
                raise Gone(_reason(error), was_sent=True) from error
        if not found:
            raise _closed()
        answer.feed(found)


class AsyncConnection:
    """Like ``Connection``, for an event loop; use ``open``."""

    def __init__(self, reader: "asyncio.StreamReader", writer: "asyncio.StreamWriter") -> None:
        self._reader = reader
        self._writer = writer
        self._is_reusable = False
        self._answered_at = 0.0

    @classmethod
    async def open(cls, path: "Path | str") -> "AsyncConnection":
        """Connect.

        Raises:
            Gone: No process listens there.
        """
        import asyncio  # noqa: PLC0415

        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                reader, writer = await asyncio.open_unix_connection(path, limit=READ_BYTES)
            try:
                _check_peer(writer.get_extra_info("socket"))
            except OSError:
                writer.close()
                raise
            return cls(reader, writer)
        except OSError as error:
            raise Gone(_reason(error), was_sent=False) from error

    @property
    def is_reusable(self) -> bool:
        is_fresh = time.monotonic() - self._answered_at <= IDLE_S
        return self._is_reusable and is_fresh and not self._reader.at_eof()

    async def exchange(self, sent: bytes, *, timeout_s: float) -> tuple[Answer, bytes]:
        """Like ``Connection.exchange``; ``timeout_s`` bounds the whole of it."""
        import asyncio  # noqa: PLC0415

        self._is_reusable = False
        answer = Answer()
        try:
            async with asyncio.timeout(timeout_s):
                self._writer.write(sent)
                await self._writer.drain()
                content = await self._read(answer)
        except TimeoutError as error:
            self._writer.transport.abort()
            raise Silent(timeout_s) from error
        except OSError as error:
            self._writer.transport.abort()
            raise Gone(_reason(error), was_sent=True) from error
        except BaseException:
            # Cancelled in the middle, say: an answer half read must not be the next call's.
            self._writer.transport.abort()
            raise
        self._is_reusable, self._answered_at = answer.keeps_alive, time.monotonic()
        return answer, content

    async def _read(self, answer: Answer) -> bytes:
        content = bytearray()
        while not answer.is_complete:
            if not (found := await self._reader.read(READ_BYTES)):
                raise _closed()
            answer.feed(found)
            content += answer.take()
            if len(content) > BODY_BYTES_MAX:
                raise NotHttp
        return bytes(content)

    async def close(self) -> None:
        self._writer.close()
        # It may have been closed from the other side first, which is what was wanted.
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


def _closed() -> Gone:
    return Gone("it closed the connection", was_sent=True)


def _check_peer(connection: socket.socket) -> None:
    """Refuse whoever else answers: a socket with a short path lies below /tmp, where any user may
    have made its directory before us. Only Linux says who it is.

    Raises:
        OSError: It is another user.
    """
    if sys.platform != "linux":
        return
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    user = int.from_bytes(credentials[4:8], sys.byteorder)
    if user != os.getuid():
        raise PermissionError(errno.EPERM, f"it is a process of another user (uid {user})")


def _reason(error: OSError) -> str:
    return error.strerror or (os.strerror(error.errno) if error.errno else "it took too long")
