"""Calls to the other nodes of the cluster, over connections that are kept."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from subagents.extensions.cluster.trust.cluster_trust import ClusterTrust

if TYPE_CHECKING:
    import httpx2

CONNECT_S: Final = 2.0
"""Nodes are near each other: whoever does not accept by then is not there."""
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

    def __init__(self, response: "httpx2.Response") -> None:
        self._response = response
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

    def __init__(self, trust: ClusterTrust) -> None:
        self._trust = trust
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
            yield PeerAnswer(response)
        finally:
            await response.aclose()

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
            verify=self._trust.client_context(),
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
