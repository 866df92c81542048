"""Calls to the other nodes of the cluster, over connections that are kept.

HTTP is parsed by what also parses it at the other end; a general client took nine times the
processor for each call (docs/decisions/0113).
"""

import asyncio
import socket
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpResponseParser

from subagents.extensions.cluster.shared_store import SeenNode

if TYPE_CHECKING:  # of an extra
    from subagents.extensions.cluster.trust.node_trust import NodeTrust

CONNECT_S: Final = 2.0
"""Nodes are near each other: whoever does not accept by then is not there."""
MEET_S: Final = 5.0
WRITE_S: Final = 30.0
"""The longest time in which a piece of the body is not taken."""
PIECE_BYTES: Final = 256 * 1024
_SILENCE: Final = {
    "TCP_USER_TIMEOUT": int(WRITE_S * 1000),
    "TCP_KEEPIDLE": 10,
    "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 4,
}
"""The same for the other machine's kernel, which acknowledges what is sent, see tcp(7). Who answers
has no such end: whoever reads that may be slow."""
IDLE_CONNECTIONS_MAX: Final = 64
"""Kept for each node."""
IDLE_S: Final = 60.0
"""How long a connection is kept: less than the other side keeps one (``KEEP_ALIVE_S``), so that no
call meets one that closes."""
KEEP_ALIVE_S: Final = 75
# What whoever is no node is answered; the latter by the former version.
STRANGER: Final = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.FORBIDDEN)
_UNFRAMED: Final = frozenset({"GET", "HEAD"})
"""Methods that say nothing of a length where they have no body."""

Headers = Sequence[tuple[bytes, bytes]]


class NotSentError(Exception):
    """Nobody took the request; it was not served."""


class LostError(Exception):
    """The connection broke; whether the request was served is not known."""


class PeerAnswer:
    """The answer of another node, as it comes.

    Args:
        reader: Of its connection.
        read_s: See ``Peers.call``.
        has_body: Not that of a ``HEAD``.
    """

    node = ""
    """The name in the certificate of whoever answers."""

    def __init__(
        self, reader: asyncio.StreamReader, read_s: float | None, *, has_body: bool
    ) -> None:
        self._reader, self._read_s, self._has_body = reader, read_s, has_body
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        """Names in lower case."""
        self.is_complete = self.keeps_alive = False
        self._has_head = False
        self._parts: list[bytes] = []
        self._parser = HttpResponseParser(self)

    async def head(self) -> None:
        """Read up to its body; raises as ``pieces``."""
        while not self._has_head:
            await self._read()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body, cut as the network cut it.

        Raises:
            LostError: It ended before its end.
        """
        while True:
            parts, self._parts = self._parts, []
            for each in parts:
                yield each
            if self.is_complete:
                return
            await self._read()

    async def body(self) -> bytes:
        """All of it; raises as ``pieces``."""
        return b"".join([piece async for piece in self.pieces()])

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(self._read_s):
                found = await self._reader.read(PIECE_BYTES)
            if found:
                self._parser.feed_data(found)
        except (OSError, HttpParserError) as error:  # a TimeoutError is one, and those of TLS
            raise LostError(str(error) or type(error).__name__) from error
        if not found:
            raise LostError("it closed the connection")

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._has_head = True
        self.is_complete = not self._has_body  # and its connection is of no more use

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        self.keeps_alive = self._parser.should_keep_alive()
        self.is_complete = True


class _Connection:
    """One over TLS, for one request after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self._writer = reader, writer
        self.until_s = 0.0

    @property
    def tls(self) -> ssl.SSLObject | None:
        found: ssl.SSLObject | None = self._writer.get_extra_info("ssl_object")
        return found

    @property
    def is_good(self) -> bool:
        """Whether another request may be sent on it."""
        is_there = not self.reader.at_eof() and not self._writer.is_closing()
        return is_there and asyncio.get_running_loop().time() < self.until_s

    async def send(self, head: bytes, body: bytes) -> None:
        """Send a request; LostError where nothing of it is taken any more."""
        # With the beginning of the body: each write is a record of TLS.
        self._writer.write(head + body[:PIECE_BYTES])
        try:
            for at in range(PIECE_BYTES, len(body) + PIECE_BYTES, PIECE_BYTES):
                async with asyncio.timeout(WRITE_S):
                    await self._writer.drain()
                self._writer.write(body[at : at + PIECE_BYTES])
        except TimeoutError as error:
            raise LostError("it does not take the request") from error
        except OSError:
            pass  # refused before it was read, perhaps: the answer says it, or is none

    def end(self) -> None:
        self._writer.transport.abort()


class Peers:
    """Calls nodes by their URLs.

    Args:
        trust: Proves who we are, and who they are.
    """

    def __init__(self, trust: "NodeTrust") -> None:
        self._trust = trust
        self._met: set[str] = set()
        """URLs of nodes that have answered us: they know our certificate."""
        self._kept: defaultdict[str, list[_Connection]] = defaultdict(list)
        """Connections by URL; the one that carried something last is used next."""

    @asynccontextmanager
    async def call(
        self,
        url: str,
        method: str,
        target: bytes,
        headers: Headers,
        body: bytes = b"",
        *,
        read_s: float | None = None,
    ) -> AsyncIterator[PeerAnswer]:
        """Send one request; leaving the context before the answer's end breaks the connection.

        Args:
            url: Of the node.
            method: Of HTTP.
            target: Path and query, sent as they are.
            headers: ``host`` and those of the body's length are added.
            body: May be empty.
            read_s: Nothing for so long, in seconds, counts as lost; None = it may be silent.

        Raises:
            NotSentError: No connection.
            LostError: No answer.
        """
        head = _head(url, method, target, headers, body)
        connection = self._rested(url) or await self._connected(url)
        answer = PeerAnswer(connection.reader, read_s, has_body=method != "HEAD")
        try:
            await connection.send(head, body)
            await answer.head()
            # Over a kept connection, say: its node may be over by now.
            node = self._trust.node_of(connection.tls)
            if node is None:
                raise LostError("what answers is no node any more")
            answer.node = node
            yield answer
        finally:
            if answer.is_complete and answer.keeps_alive:
                self._rest(url, connection)
            else:
                connection.end()

    async def unreached(self, node: SeenNode) -> str | None:
        """Why a node is not reached at its url, now; None = it is. Seconds at most."""
        if node.url is None:
            return "it says no url"
        try:
            async with (
                asyncio.timeout(CONNECT_S),
                self.call(node.url, "GET", b"/node/v1/", (), read_s=CONNECT_S) as answer,
            ):
                if answer.node != node.name:
                    return f"node {answer.node} answers there"
                is_known = answer.status not in STRANGER
                return None if is_known else "it does not take us for a node"
        except (NotSentError, LostError, TimeoutError) as error:
            return str(error) or "no answer"

    async def meet(self, url: str) -> None:
        """Call a node for nothing before it is called for the first time for something.

        In TLS 1.3 a client sends before the server has looked at its certificate. A node that has
        not seen us yet ends the connection, and nobody could say whether a call had been served.

        Raises:
            NotSentError: It does not know us yet, or is not there.
        """
        if url in self._met:
            return
        try:
            async with self.call(url, "GET", b"/node/v1/", (), read_s=MEET_S) as answer:
                if answer.status in STRANGER:
                    raise NotSentError("it does not take us for a node")
        except LostError as error:
            raise NotSentError(str(error)) from error
        self._met.add(url)

    def _rested(self, url: str) -> _Connection | None:
        """A kept connection that is good; where the newest one is not, none is."""
        kept = self._kept[url]
        if kept and kept[-1].is_good:
            return kept.pop()
        while kept:
            kept.pop().end()
        return None

    def _rest(self, url: str, connection: _Connection) -> None:
        connection.until_s = asyncio.get_running_loop().time() + IDLE_S
        kept = self._kept[url]
        kept.append(connection)
        if len(kept) > IDLE_CONNECTIONS_MAX:
            kept.pop(0).end()

    async def _connected(self, url: str) -> _Connection:
        try:
            at, context = urlsplit(url), self._trust.client_context
            async with asyncio.timeout(CONNECT_S):
                opened = await asyncio.open_connection(at.hostname, at.port or 443, ssl=context)
            _notice_silence(opened[1].get_extra_info("socket"))
            return _Connection(*opened)
        except (OSError, ValueError) as error:  # a TimeoutError is one, and those of TLS
            raise NotSentError(str(error) or type(error).__name__) from error

    async def close(self) -> None:
        """End all connections that carry nothing. Idempotent; a later call opens new ones."""
        kept, self._kept = self._kept, defaultdict(list)
        for connection in (each for some in kept.values() for each in some):
            connection.end()


def _notice_silence(connection: socket.socket) -> None:
    # Else a call to one that is alive, and cut off from us alone, waits until TCP gives up: for a
    # quarter of an hour. A kernel that lacks some of it does so then.
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _SILENCE.items():
            if (option := getattr(socket, name, None)) is not None:
                connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _head(url: str, method: str, target: bytes, headers: Headers, body: bytes) -> bytes:
    lines = [
        b"%s %s HTTP/1.1" % (method.encode(), target),
        b"host: " + urlsplit(url).netloc.encode(),
        *(b"%s: %s" % each for each in headers),
    ]
    if body or method not in _UNFRAMED:
        lines.append(b"content-length: %d" % len(body))
    if any(b"\r" in each or b"\n" in each for each in lines):
        raise NotSentError("a header has a line break")
    return b"\r\n".join(lines) + b"\r\n\r\n"
