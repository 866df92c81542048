"""What the doors of a node know of its cluster: who we are in it, and whom we trust."""

import ssl
from dataclasses import dataclass
from typing import Protocol


class ClusterTrust(Protocol):
    """Makes both ends of a connection between two nodes sure of each other.

    A context is asked for once, and is used for as long as the process lives: whoever renews
    certificates loads the new one into it, and connections that are made later show that.
    """

    def server_context(self) -> ssl.SSLContext:
        """For a listener: shows our certificate, and takes only clients with one of the cluster."""
        ...

    def client_context(self) -> ssl.SSLContext:
        """For calls: shows our certificate, and talks only to a server with one of the cluster."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMember:
    """This node, as it takes part in its cluster."""

    name: str
    listen: str
    """``HOST:PORT`` of the node door; an IPv6 address stands in brackets."""
    url: str
    """Where other nodes reach that door: ``https://HOST:PORT``."""
    trust: ClusterTrust
