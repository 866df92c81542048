"""The daemon's TCP port: the configured one from the start, else one when a browser needs it.

Without a configured port the one that browsers with a login know is taken again at the start, so
that their pages go on; nobody logged in, nothing listens.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Final, TypeAlias

from msgspec.structs import replace
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp

from subagents.api.calls.services import Services
from subagents.api.server.tcp import TcpGuard, operator_token
from subagents.api.server.tcp_certificate import TcpCertificate, certificate_of
from subagents.api.server.unchanged import Unchanged
from subagents.api.server.web_page import WebPage
from subagents.config.paths import Paths
from subagents.config.settings import EVERYWHERE, DaemonSettings
from subagents.errors import ConfigError, Unavailable

log = logging.getLogger(__name__)

PAGE_PORTS: Final = (*range(7333, 7343), 0)
"""Tried in this order when none is configured; below those that systems give to callers, whose
connections could be in the way of the next daemon. 0 = whatever is free."""
PACKED_FROM_BYTES: Final = 1024
PACKING: Final = 1
"""Level of gzip: most readers are on this machine. Measured with 1 MB of rows: 4 ms for a tenth of
it; level 9 takes 48 for a twelfth."""

ServeBy: TypeAlias = Callable[[socket.socket, ASGIApp], Awaitable[None]]
"""Accept connections on this listener, and answer them by this application."""


class TcpListener:
    """Has the port, and gives it to a server once there is one.

    Args:
        services: Their ``tcp`` says where it answers, and opens it.
        paths: The home.
        settings: Address and port; 0 = none is configured.
        stack: Closes the listener, after its server.
    """

    def __init__(
        self,
        services: Services,
        paths: Paths,
        settings: DaemonSettings,
        stack: contextlib.ExitStack,
    ) -> None:
        self._services = services
        self._paths = paths
        self._settings = settings
        self._stack = stack
        self._listener: socket.socket | None = None
        self._certificate: TcpCertificate | None = None
        self._opening = asyncio.Lock()
        self._serve: Callable[[], Awaitable[None]] | None = None

    @property
    def context(self) -> ssl.SSLContext | None:
        """For TLS; None = nothing is encrypted. Known once the port is."""
        return None if self._certificate is None else self._certificate.context

    def bind(self) -> None:
        """Take the port that is known before anybody asks, if there is one.

        Raises:
            ConfigError: The configured one cannot be had, or the operator's token is no secret.
        """
        if self._settings.http_port:
            self._take(self._settings.http_port)
        elif (port := self._services.logins.port) is not None:
            try:
                self._take(port)
            except ConfigError as error:
                log.warning("browsers that are logged in do not find us: %s", error.message)

    async def serve_by(self, serve: ServeBy, app: ASGIApp) -> None:
        """Answer from now on, here or wherever ``Services.tcp.open`` is asked to.

        Args:
            serve: Returns when connections are accepted.
            app: The application.
        """
        page = WebPage(self._services.off_loop)

        async def serve_here() -> None:
            assert self._listener is not None  # noqa: S101  both callers have one
            token = operator_token(self._paths.state_dir)
            packed = GZipMiddleware(
                Unchanged(app), minimum_size=PACKED_FROM_BYTES, compresslevel=PACKING
            )
            certified = () if self._certificate is None else self._certificate.names
            guarded = TcpGuard(
                packed, self._services, self._settings, token, page, certified=certified
            )
            await serve(self._listener, guarded)
            self._services.tcp.url = _shown(self._settings, certified)
            log.info("listening on %s", self._services.tcp.url)

        self._serve = serve_here
        self._services.tcp.open = self.open
        if self._listener is not None:
            await serve_here()

    async def open(self) -> str:
        """Answer on a port, and go on to; returns the address.

        Raises:
            Unavailable: None can be had.
        """
        async with self._opening:
            if self._services.tcp.url is None:
                await self._open()
            assert self._services.tcp.url is not None  # noqa: S101  just set
            return self._services.tcp.url

    async def _open(self) -> None:
        known = self._services.logins.port
        ports = PAGE_PORTS if known is None else (known, *PAGE_PORTS)
        for port in ports:
            try:
                self._take(port)
                break
            except ConfigError as error:
                if port == ports[-1]:
                    raise Unavailable(error.message, hint=error.hint) from error
        assert self._serve is not None  # noqa: S101  it is asked by a call
        await self._serve()

    def _take(self, port: int) -> None:
        wanted = replace(self._settings, http_port=port)
        operator_token(self._paths.state_dir)
        self._certificate = certificate_of(wanted)
        self._listener = self._stack.enter_context(bound(wanted))
        self._settings = replace(wanted, http_port=self._listener.getsockname()[1])


def _shown(settings: DaemonSettings, certified: Collection[str]) -> str | None:
    """An address that can be called, where it is not all of the machine's."""
    if settings.http_host in EVERYWHERE and certified:
        return f"{settings.http_scheme}://{min(certified)}:{settings.http_port}"
    return settings.http_url


@contextlib.contextmanager
def bound(settings: DaemonSettings) -> Iterator[socket.socket]:
    """A socket at the configured address; it does not listen yet.

    Raises:
        ConfigError: The port is taken, or not for us.
    """
    family = socket.AF_INET6 if ":" in settings.http_host else socket.AF_INET
    # With its protocol, or asyncio does not know it for TCP and leaves Nagle's algorithm on.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        # The connections of a daemon that was killed must not keep the next one from the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.http_host, settings.http_port))
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {settings.http_url or settings.http_host}:"
                f" {error.strerror or error}",
                hint="choose another daemon.http_port, or 0 for none",
            ) from error
        listener.setblocking(False)
        yield listener
