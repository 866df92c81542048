"""What the doors of a node know of its cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from starlette.routing import BaseRoute

from subagents.api.calls.services import Services

if TYPE_CHECKING:  # of an extra, and what a daemon that is alone does not need
    from subagents.extensions.cluster.api.peers import Peers
    from subagents.extensions.cluster.engine.shared_partitions import SharedPartitions
    from subagents.extensions.cluster.trust.node_trust import NodeTrust

NAME: Final = "cluster"
"""The name of this extension, and so of the ``ClusterMember`` in ``Services.parts``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMember:
    """This node, as it takes part in its cluster."""

    name: str
    address: tuple[str, int]
    """Host, without brackets, and port of the node door; port 0 = any."""
    url: str
    """Where other nodes reach that door: ``https://HOST:PORT``."""
    trust: "NodeTrust"
    peers: "Peers"
    """The way to the other nodes; closed by whoever starts ``trust``."""
    routes: Sequence[BaseRoute] = ()
    """What other nodes ask besides calls of their clients; all below ``/node/v1/``."""


def member_in(services: Services) -> ClusterMember | None:
    """This node; None = the daemon is alone."""
    found = services.parts.get(NAME)
    return found if isinstance(found, ClusterMember) else None


def partitions_in(services: Services) -> "SharedPartitions":
    """What is this node's; it is one of a cluster."""
    return cast("SharedPartitions", services.engine.partitions)  # as ``node_parts`` gave it
