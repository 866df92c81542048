"""What nodes ask each other while the database cannot be asked (``engine.kernel.ownership``).

Their workers live on for as long as every other node says that it cannot ask it either, and that it
takes nothing over before it could for a whole lease again.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from subagents.errors import NodeOver, NodeUnreachable
from subagents.extensions.cluster.node_ports import NodeClient
from subagents.extensions.cluster.shared_store import SeenNode

PATH: Final = "/node/v1/promise"
ANSWER_S: Final = 1.0
"""A node that says nothing for so long may be taking over."""


def routes(promise: Callable[[], bool], home: Callable[[], str]) -> tuple[Route, ...]:
    """The route that answers for a node with ``Ownership.promise``, and for no other home."""

    async def asked(request: Request) -> JSONResponse:
        """POST /node/v1/promise: whether we cannot ask the database, and take nothing over."""
        return JSONResponse(request.query_params.get("home", home()) == home() and promise())

    return (Route(PATH, asked, methods=["POST"]),)


async def all_promise(client: NodeClient, nodes: Sequence[SeenNode]) -> bool:
    """Whether each of these nodes promises; one that does not answer does not."""

    async def one(node: SeenNode) -> bool:
        try:
            path = f"{PATH}?home={node.home}"
            answer = await client.request(node.name, "POST", path, timeout_s=ANSWER_S)
        except (NodeUnreachable, NodeOver):
            return False
        return answer.status == 200 and answer.body == b"true"

    return all(await asyncio.gather(*map(one, nodes)))
