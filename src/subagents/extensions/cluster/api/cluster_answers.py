"""Answers about the cluster; cheap to import, as ``subagents.api.wire`` is."""

from subagents.api.wire.wire_struct import WireStruct


class ClusterNode(WireStruct, frozen=True, kw_only=True):
    """A node, as its row says it; one that is over stays for a while."""

    name: str = ""
    """The same after a restart; see `daemon.node`."""
    identity: str = ""
    """A random id of this start of it."""
    url: str | None = None
    """Where other nodes reach it; null = nowhere."""
    labels: list[str] = []
    """What runs can ask for as their place."""
    slots: int | None = None
    """Workers there at most; null = no limit."""
    version: str = ""
    """Its daemon's version."""
    alive: bool = True
    """Whether its right lasts; others take over from a node that is over."""
    left_seconds: float = 0
    """So long its right lasts if it is not renewed; negative = so long it is over."""
    draining: bool = False
    """It takes no more partitions, and gives away those that it has."""
    degraded: str | None = None
    """What its machine lacks, so that nothing is started there, and others take what it has; null =
    it is well."""
    unreached: str | None = None
    """Why it is not reached at its `url` from the node that answers; null = it is, or `doors` was
    not asked for."""
    partitions: int = 0
    """So many of the 256 it decides about."""
    is_self: bool = False
    """Whether it is the one that answers."""


class WorkHere(WireStruct, frozen=True, kw_only=True):
    """A run that works on a node that drains, whoever decides about it."""

    run_id: str = ""
    """The run."""
    label: str = ""
    """Its label."""
    repeated: bool = False
    """Whether its retry policy begins it again elsewhere, should the machine stop now; else it is
    lost."""


class Cluster(WireStruct, frozen=True, kw_only=True):
    """The nodes that share a database."""

    nodes: list[ClusterNode] = []
    """The nodes by name, those that are alive first."""
    unowned: int = 0
    """Partitions that no node has at the moment."""
    refused: int = 0
    """Callers, and rows of nodes, that were refused since this node's start."""
    went_back: str | None = None
    """How the node that answers knows that the database lacks what was stored in it; null = it does
    not."""
    work_here: list[WorkHere] = []
    """What still works on the node that answers, while it drains."""
