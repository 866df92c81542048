"""A server of ours without a daemon: what it does with one connection."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from tests.api.home_daemon import DEADLINE_S

from subagents.api.server import listeners, unix_sockets
from subagents.api.server.daemon import _Server
from subagents.api.server.watched_protocol import WatchedProtocol

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


@contextlib.asynccontextmanager
async def one_server(
    path: Path, app: ASGIApp, stop_s: int = listeners.STOP_S
) -> AsyncIterator[_Server]:
    """A server alone; it has stopped at the end."""
    stopping = asyncio.Event()
    config = uvicorn.Config(
        app,
        http=WatchedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        timeout_graceful_shutdown=stop_s,
    )
    with unix_sockets.listening(path) as listener:
        server = _Server(config, stopping)
        server.serving = asyncio.create_task(server.serve(sockets=[listener]))
        await server.opened()
        yield server
        stopping.set()
        async with asyncio.timeout(DEADLINE_S):
            await server.serving
