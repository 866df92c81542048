"""The listener of the node door: TLS, and a certificate of the cluster from whoever connects."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from subagents.api.calls.cluster_member import ClusterMember, ClusterTrust
from subagents.api.cluster.peers import KEEP_ALIVE_S
from subagents.errors import ConfigError

STOP_S: Final = 5
"""As for the daemon's other listeners."""


@contextlib.contextmanager
def bound(member: ClusterMember) -> Iterator[socket.socket]:
    """A socket at ``cluster.listen``; it does not listen yet.

    Raises:
        ConfigError: The address cannot be had.
    """
    host, _, port = member.listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind)
    except OSError as error:
        raise _not_had(member, error) from error
    with listener:
        # The connections of a node that was killed must not keep the next one from the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as error:
            raise _not_had(member, error) from error
        listener.setblocking(False)
        yield listener


def _not_had(member: ClusterMember, error: OSError) -> ConfigError:
    return ConfigError(
        f"cannot listen for other nodes on {member.listen}: {error.strerror or error}",
        hint="choose another cluster.listen",
        details={"field": "cluster.listen"},
    )


def node_config(app: ASGIApp, trust: ClusterTrust) -> uvicorn.Config:
    """How the node door is served: what its answers say is the owner's own, and nothing else."""

    def context(*_: object) -> ssl.SSLContext:
        return trust.server_context()

    return uvicorn.Config(
        app,
        http=NodeProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_S,
        ssl_context_factory=context,
    )


class NodeProtocol(HttpToolsProtocol):
    """Serves whoever showed a certificate; the context let in none that is not of the cluster."""

    _is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        if not transport.get_extra_info("peercert"):
            # A context that asks for none would open the door to everybody.
            self._is_refused = True
            transport.abort()
            return
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._is_refused:
            super().connection_lost(exc)
