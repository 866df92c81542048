"""What the cluster adds; most of it is imported only where a daemon is in one: 40 modules."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from subagents.api.calls.services import Services
from subagents.config.paths import Paths
from subagents.config.settings import DaemonSettings
from subagents.extensions.cluster.api.cluster_member import member_in
from subagents.extensions.cluster.cluster_settings import ClusterSettings

if TYPE_CHECKING:
    from starlette.middleware import Middleware

    from subagents.api.server.listeners import Listener
    from subagents.node import NodeHost, NodeParts


def node(host: "NodeHost") -> "NodeParts | None":
    """See ``Extension.node``."""
    if host.settings.table(ClusterSettings).listen is None:
        return None
    from subagents.extensions.cluster.node_parts import node  # noqa: PLC0415

    return node(host)


def middleware(services: Services, refuse: Callable[..., Any]) -> "Sequence[Middleware]":
    """See ``Extension.middleware``."""
    if (member := member_in(services)) is None:
        return ()
    from subagents.extensions.cluster.api.forwarding import middleware  # noqa: PLC0415

    return [middleware(services, member, refuse)]


def listeners(services: Services, _paths: Paths, _settings: DaemonSettings) -> "Sequence[Listener]":
    """See ``Extension.listeners``."""
    if (member := member_in(services)) is None:
        return ()
    from subagents.extensions.cluster.api.node_listener import NodeListener  # noqa: PLC0415

    return [NodeListener(services, member)]
