"""Answers about a cluster: its nodes, and what each of them has."""

from subagents.api.wire.wire_struct import WireStruct


class ClusterNode(WireStruct, frozen=True, kw_only=True):
    """A node, as its row says it; one that is over stays for a while."""

    name: str = ""
    """The same after a restart; see `daemon.node`."""
    identity: str = ""
    """Of this start of it; random."""
    url: str | None = None
    """Where other nodes reach it; null = nowhere."""
    labels: list[str] = []
    """What runs can ask for as their place."""
    slots: int | None = None
    """Workers there at most; null = no limit."""
    version: str = ""
    """Of its daemon."""
    alive: bool = True
    """Whether its right lasts; others take over from a node that is over."""
    left_seconds: float = 0
    """So long its right lasts if it is not renewed; negative = so long it is over."""
    draining: bool = False
    """It takes no more partitions, and gives away those that it has."""
    partitions: int = 0
    """So many of the 256 it decides about."""
    is_self: bool = False
    """Whether it is the one that answers."""


class Cluster(WireStruct, frozen=True, kw_only=True):
    """The nodes that share a database."""

    nodes: list[ClusterNode] = []
    """By name; those that are alive first."""
    unowned: int = 0
    """Partitions that no node has at the moment."""
