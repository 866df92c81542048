"""Calls of our own to other nodes, by their names; see ``ports.NodeClient``."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from subagents.errors import NodeOver, NodeUnreachable
from subagents.extensions.cluster.api.peers import LostError, NotSentError, PeerAnswer, Peers
from subagents.extensions.cluster.node_ports import SURE, NodeAnswer, NodeStream
from subagents.extensions.cluster.shared_store import Survey

JSON = ((b"content-type", b"application/json"),)


class PeerClient:
    """See ``ports.NodeClient``.

    Args:
        peers: The connections.
        survey: Which nodes there are, as the store said last.
    """

    def __init__(self, peers: Peers, survey: Callable[[], Survey]) -> None:
        self._peers = peers
        self._survey = survey

    async def request(
        self, node: str, method: str, path: str, body: bytes | None = None, *, timeout_s: float
    ) -> NodeAnswer:
        """See ``ports.NodeClient.request``."""
        url = self._url(node)
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._peers.call(url, method, path.encode(), JSON, body or b"") as answer,
            ):
                return NodeAnswer(answer.status, await answer.body())
        except (NotSentError, LostError, TimeoutError) as error:
            raise _unreachable(node, error) from error

    @asynccontextmanager
    async def stream(
        self, node: str, method: str, path: str, body: bytes | None = None, *, idle_s: float
    ) -> AsyncIterator[NodeStream]:
        """See ``ports.NodeClient.stream``."""
        url = self._url(node)
        calling = self._peers.call(url, method, path.encode(), JSON, body or b"", read_s=idle_s)
        try:
            answer = await calling.__aenter__()
        except (NotSentError, LostError) as error:
            raise _unreachable(node, error) from error
        try:
            yield NodeStream(answer.status, _pieces(node, answer))
        finally:
            await calling.__aexit__(None, None, None)

    def _url(self, node: str) -> str:
        """Where a node is, by the newest of its starts.

        Raises:
            NodeOver: None of them is alive.
            NodeUnreachable: It said nowhere where it is.
        """
        alive = [each for each in self._survey().nodes.values() if each.name == node]
        newest = max(alive, key=lambda each: each.left_s, default=None)
        if newest is None or newest.left_s <= 0:
            raise NodeOver(f"node {node} is over, and its workers have ended with it")
        if newest.url is None:
            raise NodeUnreachable(f"node {node} has no address")
        return newest.url


async def _pieces(node: str, answer: PeerAnswer) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.pieces():
            yield piece
    except LostError as error:
        raise _unreachable(node, error) from error


def _unreachable(node: str, error: Exception) -> NodeUnreachable:
    words = f"node {node} does not answer now: {error or type(error).__name__}"
    return NodeUnreachable(words, details={SURE: isinstance(error, NotSentError)})
