"""Calls to nodes by their names: ``ports.NodeClient`` over the connections that doors share."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from subagents.api.calls.peers import Headers, LostError, NotSentError, PeerAnswer, Peers
from subagents.errors import NodeOver, NodeUnreachable
from subagents.ports import NodeAnswer, NodeStream, Survey

JSON: Headers = ((b"content-type", b"application/json"),)


class NodeCalls:
    """See ``ports.NodeClient``.

    Args:
        peers: The connections.
        survey: Which nodes there are, as the newest look at the store has it.
    """

    def __init__(self, peers: Peers, survey: Callable[[], Survey]) -> None:
        self._peers = peers
        self._survey = survey

    async def request(
        self, node: str, method: str, path: str, body: bytes | None = None, *, timeout_s: float
    ) -> NodeAnswer:
        """See ``ports.NodeClient.request``."""
        try:
            async with asyncio.timeout(timeout_s), self._call(node, method, path, body) as found:
                return NodeAnswer(found.status, await found.body())
        except (NotSentError, LostError, TimeoutError) as error:
            raise _unreachable(node, error) from error

    @asynccontextmanager
    async def stream(
        self, node: str, method: str, path: str, body: bytes | None = None, *, idle_s: float
    ) -> AsyncIterator[NodeStream]:
        """See ``ports.NodeClient.stream``."""

        async def pieces(found: PeerAnswer) -> AsyncIterator[bytes]:
            try:
                async for piece in found.pieces():
                    yield piece
            except LostError as error:
                raise _unreachable(node, error) from error

        calling = self._call(node, method, path, body, read_s=idle_s)
        try:
            found = await calling.__aenter__()
        except (NotSentError, LostError) as error:
            raise _unreachable(node, error) from error
        try:
            yield NodeStream(found.status, pieces(found))
        finally:
            await calling.__aexit__(None, None, None)

    @asynccontextmanager
    async def _call(
        self,
        node: str,
        method: str,
        path: str,
        body: bytes | None,
        *,
        read_s: float | None = None,
    ) -> AsyncIterator[PeerAnswer]:
        headers = () if body is None else JSON
        calling = self._peers.call(
            self._url(node), method, path.encode(), headers, body or b"", read_s=read_s
        )
        async with calling as found:
            yield found

    def _url(self, name: str) -> str:
        """Where the start of that node that is alive is reached.

        Raises:
            NodeOver: There is none.
            NodeUnreachable: It listens nowhere.
        """
        alive = [each for each in self._survey().nodes.values() if each.left_s > 0]
        for node in alive:
            if node.name == name:
                if node.url is None:
                    raise NodeUnreachable(f"node {name} has no address for other nodes")
                return node.url
        raise NodeOver(f"node {name} is over")


def _unreachable(node: str, error: Exception) -> NodeUnreachable:
    return NodeUnreachable(
        f"node {node} does not answer: {error or 'nothing came in time'}",
        hint="its workers go on; look at it: subagents cluster status",
    )
