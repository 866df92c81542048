"""The listener of the node door: TLS, and a node's certificate from whoever connects."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Final

import uvicorn
from starlette.types import ASGIApp

from subagents.api.calls.services import Services
from subagents.api.server.listeners import Serving
from subagents.errors import ConfigError, Fenced, StoreUnavailable
from subagents.extensions.cluster.api.cluster_member import ClusterMember, partitions_in
from subagents.extensions.cluster.api.forwarding import relayed_calls
from subagents.extensions.cluster.api.node_admission import NodeAdmission, NodeProtocol
from subagents.extensions.cluster.api.node_endpoint import NodeEndpoint
from subagents.extensions.cluster.api.peers import KEEP_ALIVE_S

if TYPE_CHECKING:  # of an extra
    from subagents.extensions.cluster.trust.node_trust import NodeTrust

log = logging.getLogger(__name__)

STOP_S: Final = 5
"""How long a stop waits for calls, the same as with the daemon's other listeners."""
LOOK_S: Final = 1.0
"""The least time between two looks for the sake of whoever is not known."""


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
    host, port = member.address
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return ConfigError(
        f"cannot listen for other nodes on {shown}: {error.strerror or error}",
        hint="choose another cluster.listen",
        details={"field": "cluster.listen"},
    )


def node_config(app: ASGIApp, trust: "NodeTrust") -> uvicorn.Config:
    """How the node door is served: what its answers say is the owner's own, and nothing else."""
    return uvicorn.Config(
        NodeAdmission(app, trust),
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
        ssl_context_factory=lambda *_: trust.server_context,
    )


class NodeListener:
    """Lets the other nodes in; see ``Listener``."""

    def __init__(self, services: Services, member: ClusterMember) -> None:
        self._services = services
        self._member = member
        self._listener: socket.socket | None = None
        self._looking: asyncio.Task[None] | None = None
        self._may_look_s = 0.0

    @contextlib.asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Within the block other nodes can be called."""
        trust = self._member.trust
        await self._services.off_loop(trust.start)
        trust.on_unknown = self._look
        try:
            yield
        finally:
            await self._member.peers.close()

    def _look(self) -> None:
        """Look who is there: somebody came who may have started just now."""
        loop = asyncio.get_running_loop()
        if loop.time() >= self._may_look_s:
            self._may_look_s = loop.time() + LOOK_S
            self._looking = loop.create_task(self._looked())

    async def _looked(self) -> None:
        with contextlib.suppress(StoreUnavailable, Fenced):
            await partitions_in(self._services).look()
            self._member.trust.look()

    def bind(self, addresses: contextlib.ExitStack) -> None:
        """See ``bound``."""
        self._listener = addresses.enter_context(bound(self._member))

    @contextlib.asynccontextmanager
    async def serving(self, serving: Serving) -> AsyncIterator[None]:
        """Within the block other nodes are answered."""
        assert self._listener is not None  # noqa: S101  it is bound before
        member = self._member
        endpoint = NodeEndpoint(serving.app, member=member, calls=relayed_calls(self._services))
        await serving.serve(self._listener, node_config(endpoint, member.trust))
        log.info("other nodes reach us at %s", member.url)
        yield
