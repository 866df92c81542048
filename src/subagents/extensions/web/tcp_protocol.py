"""HTTP on the TCP port, bounded before anybody proved who they are.

A port is open to every program of the machine. So what one may keep of our memory and descriptors
without a token is little: so many connections, and on each a request's head of bounded size that is
complete in bounded time.
"""

import asyncio
import logging
from typing import Final

from subagents.api.server.watched_protocol import WatchedProtocol
from subagents.extensions.web.tcp_peer import PEER, TcpPeer

log = logging.getLogger(__name__)

HEAD_BYTES_MAX: Final = 64 * 1024
"""The longest request line with all headers, as other servers have it."""
HEADERS_MAX: Final = 100
HEAD_S: Final = 10.0
"""The time from the connection, or the first byte of a later request, to the end of its headers."""
CONNECTIONS_MAX: Final = 512
"""The most connections in all; further ones are answered 503 and closed."""
CONNECTIONS_PER_PEER_MAX: Final = 256
"""The most connections of one address."""


class HeadRefusedError(Exception):
    """The head is larger than a request may have; ends the parsing of it."""


class BoundedProtocol(WatchedProtocol):
    """Serves what stays within the limits of this module."""

    _is_refused = False
    _is_in_head = True
    _head_bytes = 0
    _headers = 0
    _kept_bytes = 0
    _is_too_large = False
    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        super().connection_made(transport)
        theirs, ours = (transport.get_extra_info(name)[:2] for name in ("peername", "sockname"))
        self.app_state = {**self.app_state, PEER: TcpPeer(theirs, ours)}
        peer = self.client[0] if self.client else ""
        of_peer = sum(
            1
            for each in self.connections
            if isinstance(each, BoundedProtocol) and each.client and each.client[0] == peer
        )
        if len(self.connections) > CONNECTIONS_MAX or of_peer > CONNECTIONS_PER_PEER_MAX:
            self._is_refused = True
            self._refuse(b"503 Service Unavailable", "Too many connections.")
            return
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        if self._is_in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        # What is in the parser is not counted by it: a name without end, for example.
        if self._is_in_head and self._head_bytes > HEAD_BYTES_MAX and not self._is_refused:
            self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._due is None:
            self._begin_head()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > HEAD_BYTES_MAX:
            self._is_too_large = True
            raise HeadRefusedError

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers += 1
        self._kept_bytes += len(name) + len(value)
        if self._headers > HEADERS_MAX or self._kept_bytes > HEAD_BYTES_MAX:
            self._is_too_large = True
            raise HeadRefusedError
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._end_head()
        self._is_in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_in_head = True
        self._head_bytes = self._headers = self._kept_bytes = 0

    def send_400_response(self, msg: str) -> None:
        if self._is_too_large:
            self._refuse_head()
        else:
            super().send_400_response(msg)

    def _begin_head(self) -> None:
        self._due = self.loop.call_later(HEAD_S, self._too_slow)

    def _end_head(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _too_slow(self) -> None:
        self._due = None
        self._refuse(b"408 Request Timeout", "The head of the request took too long.")

    def _refuse_head(self) -> None:
        self._refuse(
            b"431 Request Header Fields Too Large", "The head of the request is too large."
        )

    def _refuse(self, status: bytes, text: str) -> None:
        self._is_refused = True
        self._end_head()
        if self.transport.is_closing():
            return
        log.info("refused a connection of %s: %s", self.client, text)
        body = text.encode()
        self.transport.write(
            b"HTTP/1.1 " + status + b"\r\ncontent-type: text/plain; charset=utf-8\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body
        )
        self.transport.close()
