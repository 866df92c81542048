"""The daemon's TCP port: the configured one from the start, else one when a browser needs it.

Without a configured port the one that browsers with a login know is taken again at the start, so
that their pages go on; nobody logged in, nothing listens.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from typing import Final

from msgspec.structs import replace
from starlette.middleware.gzip import GZipMiddleware

from subagents.api.calls.services import Services
from subagents.api.server.listeners import Listener, Serving, server_config
from subagents.config.paths import Paths
from subagents.config.settings import EVERYWHERE, DaemonSettings
from subagents.errors import ConfigError, Unavailable
from subagents.extensions.web.logins import logins_of
from subagents.extensions.web.shared_answers import SharedAnswers
from subagents.extensions.web.tcp import TcpGuard, operator_token
from subagents.extensions.web.tcp_certificate import TcpCertificate, certificate_of
from subagents.extensions.web.tcp_protocol import BoundedProtocol
from subagents.extensions.web.unchanged import Unchanged
from subagents.extensions.web.web_page import WebPage

log = logging.getLogger(__name__)

PAGE_PORTS: Final = (*range(7333, 7343), 0)
"""Tried in this order when none is configured; below those that systems give to callers, whose
connections could be in the way of the next daemon. 0 = whatever is free."""
PACKED_FROM_BYTES: Final = 1024
PACKING: Final = 1
"""Level of gzip: most readers are on this machine. Measured with 1 MB of rows: 4 ms for a tenth of
it; level 9 takes 48 for a twelfth."""


class TcpListener:
    """Has the port, and serves there once the daemon serves; see ``Listener``.

    Args:
        services: Their ``tcp`` says where it answers, and opens it.
        paths: The home.
        settings: Address and port; 0 = none is configured.
    """

    def __init__(self, services: Services, paths: Paths, settings: DaemonSettings) -> None:
        self._services = services
        self._logins = logins_of(services)
        self._paths = paths
        self._settings = settings
        self._addresses: contextlib.ExitStack | None = None
        self._listener: socket.socket | None = None
        self._certificate: TcpCertificate | None = None
        self._opening = asyncio.Lock()
        self._serve: Callable[[], Awaitable[None]] | None = None

    @property
    def context(self) -> ssl.SSLContext | None:
        """For TLS; None = nothing is encrypted. Known once the port is."""
        return None if self._certificate is None else self._certificate.context

    @contextlib.asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Within the block it is known who is logged in."""
        await self._logins.load()
        try:
            yield
        finally:
            await self._logins.flush()

    def bind(self, addresses: contextlib.ExitStack) -> None:
        """Take the port that is known before anybody asks, if there is one.

        Args:
            addresses: Closes the listener, after its server; also one that is made later.

        Raises:
            ConfigError: The configured one cannot be had, or the operator's token is no secret.
        """
        self._addresses = addresses
        if self._settings.http_port:
            self._take(self._settings.http_port)
        elif (port := self._logins.port) is not None:
            try:
                self._take(port)
            except ConfigError as error:
                log.warning("browsers that are logged in do not find us: %s", error.message)

    @contextlib.asynccontextmanager
    async def serving(self, serving: Serving) -> AsyncIterator[None]:
        """Within the block it is answered here, or wherever ``Services.tcp.open`` is asked to."""
        page = WebPage(self._services.off_loop)

        async def serve_here() -> None:
            assert self._listener is not None  # noqa: S101  both callers have one
            token = operator_token(self._paths.state_dir)
            packed = GZipMiddleware(
                Unchanged(serving.app), minimum_size=PACKED_FROM_BYTES, compresslevel=PACKING
            )
            certified = () if self._certificate is None else self._certificate.names
            guarded = TcpGuard(
                SharedAnswers(packed),
                self._services,
                self._settings,
                token,
                page,
                certified=certified,
            )
            config = server_config(guarded, BoundedProtocol, self._services.info, self.context)
            await serving.serve(self._listener, config)
            self._services.tcp.url = _shown(self._settings, certified)
            log.info("listening on %s", self._services.tcp.url)

        self._serve = serve_here
        self._services.tcp.open = self.open
        if self._listener is not None:
            await serve_here()
        yield

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
        known = self._logins.port
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
        assert self._addresses is not None  # noqa: S101  given by ``bind``
        self._listener = self._addresses.enter_context(bound(wanted))
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


def listeners(services: Services, paths: Paths, settings: DaemonSettings) -> list[Listener]:
    """See ``Extension.listeners``."""
    return [TcpListener(services, paths, settings)]
