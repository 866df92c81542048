"""``/node/v1/attempts/{call}`` and ``/node/v1/files/{call}``: attempts that run here and that other
nodes decide about, and their files.

Served on the node door only, which lets nobody in but nodes of the cluster.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from subagents.extensions.cluster.node_ports import NodeAnswer
from subagents.extensions.cluster.remote.attempt_host import AttemptHost
from subagents.extensions.cluster.remote.workplace_host import WorkplaceHost


def routes(host: AttemptHost, files: WorkplaceHost) -> tuple[Route, ...]:
    """The routes that answer for them."""

    async def watch(request: Request) -> Response:
        """POST /node/v1/attempts/watch: lines of JSON, until the attempt ends."""
        found = await host.watch(await request.body())
        return _answer(found) if isinstance(found, NodeAnswer) else _Lines(found)

    async def call(request: Request) -> Response:
        """POST /node/v1/attempts/{call}: one call of the attempt's runtime."""
        return _answer(await host.call(request.path_params["call"], await request.body()))

    async def on_files(request: Request) -> Response:
        """POST /node/v1/files/{call}: one call about the files of a run."""
        return _answer(await files.call(request.path_params["call"], await request.body()))

    return (
        Route("/node/v1/files/{call}", on_files, methods=["POST"]),
        Route("/node/v1/attempts/watch", watch, methods=["POST"]),
        Route("/node/v1/attempts/{call}", call, methods=["POST"]),
    )


class _Lines(StreamingResponse):
    """Closes what it reads when its reader goes, so that nothing watches for nobody."""

    def __init__(self, lines: AsyncGenerator[bytes, None]) -> None:
        super().__init__(lines, media_type="application/x-ndjson")
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._lines):
            await super().__call__(scope, receive, send)


def _answer(found: NodeAnswer) -> Response:
    return Response(found.body, status_code=found.status, media_type="application/json")
