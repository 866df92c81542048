"""What an owner asks the nodes that it sees: ``POST /node/v1/place`` with an ``Offer``."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from subagents.errors import NodeOver, NodeUnreachable
from subagents.extensions.cluster.node_ports import NodeClient, Offer
from subagents.extensions.cluster.shared_store import Survey

PATH: Final = "/node/v1/place"
ANSWER_S: Final = 1.0
"""A node that says nothing for so long is frozen, or cut off: the next one is asked."""

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Offer).decode


def routes(asked: Callable[[Offer], Awaitable[bool]]) -> tuple[Route, ...]:
    """The route that answers with ``PolledTaking.asked``."""

    async def place(request: Request) -> JSONResponse:
        """POST /node/v1/place: whether we keep a slot for an attempt."""
        try:
            offer = decode(await request.body())
        except msgspec.DecodeError:  # of another version, which has rows for us
            return JSONResponse(content=False)
        return JSONResponse(await asked(offer))

    return (Route(PATH, place, methods=["POST"]),)


class AskedNodes:
    """Asks the others, another one first each time.

    Args:
        node: Our name.
        client: Reaches them.
        survey: The newest look at them.
    """

    def __init__(self, node: str, client: NodeClient, survey: Callable[[], Survey]) -> None:
        self._node, self._client, self._survey = node, client, survey
        self._last = ""
        """Who kept a slot last."""

    async def ask(self, offer: Offer) -> str | None:
        """The node that keeps a slot for an attempt; None = none that answers does."""
        others = {
            each.name
            for each in self._survey().nodes.values()
            if each.left_s > 0 and each.takes and each.url and each.name != self._node
            if offer.label is None or offer.label in each.labels
        }
        body = encode(offer)
        for name in sorted(others, key=lambda each: (each <= self._last, each)):
            try:
                answer = await self._client.request(name, "POST", PATH, body, timeout_s=ANSWER_S)
            except (NodeUnreachable, NodeOver):
                continue  # it may keep one for nothing for a while
            if (answer.status, answer.body) == (200, b"true"):
                self._last = name
                return name
        return None
