"""The listener of the node door: TLS, and a certificate of the cluster from whoever connects."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from subagents.api.calls.cluster_member import ClusterMember
from subagents.api.calls.peers import KEEP_ALIVE_S
from subagents.api.server.node_admission import NodeProtocol
from subagents.errors import ConfigError
from subagents.ports import ClusterTrust

STOP_S: Final = 5
"""As for the daemon's other listeners."""


@contextlib.contextmanager
def bound(member: ClusterMember) -> Iterator[socket.socket]:
    """A socket at the configured address; it does not listen yet.

    Raises:
        ConfigError: The address cannot be had.
    """
    host, port = member.address
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # With its protocol: see ``tcp_listener.bound``.
        listener = socket.socket(family, kind, protocol)
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
        f"cannot listen for other nodes on {_shown(member)}: {error.strerror or error}",
        hint="choose another cluster.listen",
        details={"field": "cluster.listen"},
    )


def _shown(member: ClusterMember) -> str:
    host, port = member.address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


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
