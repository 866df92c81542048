"""Calls to the other nodes of the cluster, over connections that are kept."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from subagents.extensions.cluster.shared_store import SeenNode

if TYPE_CHECKING:  # of an extra
    import ssl

    import httpx2

    from subagents.extensions.cluster.trust.node_trust import NodeTrust

CONNECT_S: Final = 2.0
"""Nodes are near each other: whoever does not accept by then is not there."""
MEET_S: Final = 5.0
WRITE_S: Final = 30.0
"""The longest time in which nothing of the body is taken."""
IDLE_CONNECTIONS_MAX: Final = 64
IDLE_S: Final = 60.0
"""How long a connection is kept: less than the other side keeps one (``KEEP_ALIVE_S``), so that no
call meets one that closes."""
KEEP_ALIVE_S: Final = 75

Headers = Sequence[tuple[bytes, bytes]]


class NotSentError(Exception):
    """Nobody took the request; it was not served."""


class LostError(Exception):
    """The connection broke; whether the request was served is not known."""


class PeerAnswer:
    """The answer of another node, as it comes."""

    def __init__(self, response: "httpx2.Response", node: str) -> None:
        self._response, self.node = response, node
        self.status: int = response.status_code
        self.headers: Headers = [(name.lower(), value) for name, value in response.headers.raw]

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body, cut as the network cut it.

        Raises:
            LostError: It ended before its end.
        """
        import httpx2  # noqa: PLC0415  see ``Peers``

        try:
            async for piece in self._response.aiter_raw():
                yield piece
        except httpx2.HTTPError as error:
            raise LostError(str(error) or type(error).__name__) from error

    async def body(self) -> bytes:
        """All of it.

        Raises:
            LostError: It ended before its end.
        """
        return b"".join([piece async for piece in self.pieces()])


class Peers:
    """Calls nodes by their URLs; loads its HTTP client with the first call.

    Args:
        trust: Proves who we are, and who they are.
    """

    def __init__(self, trust: "NodeTrust") -> None:
        self._trust = trust
        self._met: set[str] = set()
        """URLs of nodes that have answered us: they know our certificate."""
        self._client: httpx2.AsyncClient | None = None
        self._making = asyncio.Lock()

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
        client = self._client or await self._made()
        import httpx2  # noqa: PLC0415

        limits = {"connect": CONNECT_S, "write": WRITE_S, "read": read_s, "pool": CONNECT_S}
        request = httpx2.Request(
            method,
            url,
            headers=list(headers),
            content=body,
            extensions={"target": target, "timeout": limits},
        )
        try:
            response = await client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise NotSentError(str(error) or type(error).__name__) from error
        except httpx2.HTTPError as error:
            raise LostError(str(error) or type(error).__name__) from error
        try:
            # Over a kept connection, say: its node may be over by now.
            node = self._trust.node_of(_tls_of(response))
            if node is None:
                raise LostError("what answers is no node any more")
            yield PeerAnswer(response, node)
        finally:
            await response.aclose()

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
                is_known = answer.status != HTTPStatus.FORBIDDEN
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
                if answer.status == HTTPStatus.FORBIDDEN:
                    raise NotSentError("it does not take us for a node")
        except LostError as error:
            raise NotSentError(str(error)) from error
        self._met.add(url)

    async def _made(self) -> "httpx2.AsyncClient":
        """On a thread: it takes 0.2 s of processor, in which a loop that stood still would renew
        nothing, and where there is little of it that is seconds."""
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(self._make)
            return self._client

    def _make(self) -> "httpx2.AsyncClient":
        import httpx2  # noqa: PLC0415

        # It has a line for each request, which would be most of the daemon's log.
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        return httpx2.AsyncClient(
            verify=self._trust.client_context,
            trust_env=False,
            limits=httpx2.Limits(
                max_connections=None,
                max_keepalive_connections=IDLE_CONNECTIONS_MAX,
                keepalive_expiry=IDLE_S,
            ),
        )

    async def close(self) -> None:
        """End all connections. Idempotent; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _tls_of(response: "httpx2.Response") -> "ssl.SSLObject | None":
    found: ssl.SSLObject | None = response.extensions["network_stream"].get_extra_info("ssl_object")
    return found
