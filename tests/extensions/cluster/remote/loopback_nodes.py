"""Nodes that answer over real HTTP on the loopback, without certificates, and a client for them."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Self

import httpx2
import uvicorn
from starlette.applications import Starlette

from subagents.errors import NodeOver, NodeUnreachable
from subagents.extensions.cluster.api import attempt_routes
from subagents.extensions.cluster.node_ports import NodeAnswer, NodeStream
from subagents.extensions.cluster.remote.attempt_host import AttemptHost
from subagents.extensions.cluster.remote.workplace_host import WorkplaceHost
from subagents.ports import Workplace

READY_BOUND_S = 60.0


class NodeServer:
    """The door of one node, on a loop and thread of its own; can be shut and opened again."""

    def __init__(self, host: AttemptHost, files: Workplace | None = None) -> None:
        self._host = host
        self._files = files
        self.port = 0

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()

    def open(self) -> None:
        """Listen; on the port from before, if there was one."""
        app = Starlette(routes=attempt_routes.routes(self._host, WorkplaceHost(self._workplace)))
        config = uvicorn.Config(
            app, host="127.0.0.1", port=self.port, log_level="critical", lifespan="off"
        )
        config.timeout_graceful_shutdown = 0
        self._server, self._ready = uvicorn.Server(config), threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        assert self._ready.wait(READY_BOUND_S)

    def shut(self) -> None:
        """Cut all connections and listen no more."""
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(READY_BOUND_S)
        assert not self._thread.is_alive()

    def _workplace(self) -> Workplace:
        assert self._files is not None
        return self._files

    def _serve(self) -> None:
        async def serve() -> None:
            serving = asyncio.create_task(self._server.serve())
            while not self._server.started:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.005)
            self.port = self._server.servers[0].sockets[0].getsockname()[1]
            self._ready.set()
            await serving

        asyncio.run(serve())


class LoopbackClient:
    """Calls nodes by name; which of them are over is told, as the store would."""

    def __init__(self, nodes: Mapping[str, NodeServer]) -> None:
        self._nodes = nodes
        self.over: set[str] = set()
        self.calls: list[str] = []
        self.ended = 0
        """Streams that were read to their end; the connection of another one is of no more use."""

    def _url(self, node: str, path: str) -> str:
        if node in self.over:
            raise NodeOver(f"node {node} is over")
        return f"http://127.0.0.1:{self._nodes[node].port}{path}"

    async def request(
        self, node: str, method: str, path: str, body: bytes | None = None, *, timeout_s: float
    ) -> NodeAnswer:
        url = self._url(node, path)
        self.calls.append(path)
        try:
            async with httpx2.AsyncClient(timeout=timeout_s, trust_env=False) as client:
                answer = await client.request(method, url, content=body)
        except httpx2.HTTPError as error:
            raise NodeUnreachable(f"node {node} does not answer: {error!r}") from error
        return NodeAnswer(answer.status_code, answer.content)

    @asynccontextmanager
    async def stream(
        self, node: str, method: str, path: str, body: bytes | None = None, *, idle_s: float
    ) -> AsyncIterator[NodeStream]:
        url = self._url(node, path)
        self.calls.append(path)
        async with httpx2.AsyncClient(timeout=idle_s, trust_env=False) as client:
            try:
                answer = await client.send(
                    client.build_request(method, url, content=body), stream=True
                )
            except httpx2.HTTPError as error:
                raise NodeUnreachable(f"node {node} does not answer: {error!r}") from error

            async def pieces() -> AsyncIterator[bytes]:
                try:
                    async for piece in answer.aiter_raw():
                        yield piece
                    self.ended += 1
                except httpx2.HTTPError as error:
                    raise NodeUnreachable(f"node {node} was cut off: {error!r}") from error

            try:
                yield NodeStream(answer.status_code, pieces())
            finally:
                await answer.aclose()
