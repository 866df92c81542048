"""Where a daemon can be reached in addition to its own socket; extensions bring them."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from subagents import extension
from subagents.api.calls.services import DaemonInfo, Services
from subagents.config.paths import Paths
from subagents.config.settings import DaemonSettings

STOP_S: Final = 5
"""Calls under way at a stop may take so long to end; then they are cut off."""
KEEP_ALIVE_S: Final = 5

Serve: TypeAlias = Callable[[socket.socket, uvicorn.Config], Awaitable[None]]
"""Serve on this listener until the daemon stops; returns when it accepts connections."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What a listener serves with."""

    app: ASGIApp
    """The daemon's application."""
    paths: Paths
    serve: Serve
    later: contextlib.ExitStack
    """Closes what is made meanwhile, after its server."""


class Listener(Protocol):
    """One way to reach the daemon; its methods are called once, in this order."""

    def living(self) -> AbstractAsyncContextManager[None]:
        """Around the daemon's whole life, before anything else of it."""
        ...

    def bind(self, addresses: contextlib.ExitStack) -> None:
        """Take the address before the store is touched; ``addresses`` gives it up at the very end.

        Raises:
            ConfigError: It cannot be had; the daemon does not start.
        """
        ...

    def serving(self, serving: Serving) -> AbstractAsyncContextManager[None]:
        """Around the serving: within the block calls are answered there."""
        ...


def listeners_of(services: Services, paths: Paths, settings: DaemonSettings) -> Sequence[Listener]:
    """Those of all extensions."""
    made = extension.made("listeners", services, paths, settings)
    return [each for _, found in made for each in found]


def server_config(
    app: ASGIApp,
    protocol: type[HttpToolsProtocol],
    info: DaemonInfo,
    tls: ssl.SSLContext | None = None,
) -> uvicorn.Config:
    """How calls of clients are served; without ``tls`` nothing is encrypted."""
    return uvicorn.Config(
        app,
        # Every answer says it, so that no client has to ask first.
        headers=[
            ("x-subagents-version", info.version),
            *([("x-subagents-code", f"{info.code} {info.started_at_ms}")] if info.code else ()),
            # And no browser makes a program or a picture of what a worker wrote.
            ("x-content-type-options", "nosniff"),
            ("cross-origin-resource-policy", "same-origin"),
        ],
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_S,
        ssl_context_factory=None if tls is None else lambda _config, _default: tls,
    )


async def stop_accepting(servers: Sequence[asyncio.Server]) -> None:
    """Close what these listen on; connections that were accepted go on.

    A connection is known only two passes of the loop after it was accepted, and asyncio drops it
    silently when its server is closed meanwhile.
    """
    loop = asyncio.get_running_loop()
    for listener in (each for server in servers for each in server.sockets):
        loop.remove_reader(listener.fileno())
    for _ in range(2):
        await asyncio.sleep(0)
    for server in servers:
        server.close()
