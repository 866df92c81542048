"""Nodes that know each other by their rows, without a database; and homes that share one."""

from pathlib import Path
from typing import NamedTuple

from subagents.extensions.cluster.shared_store import SeenNode, Survey
from subagents.extensions.cluster.trust.former_trust import FormerTrust
from subagents.extensions.cluster.trust.node_trust import NodeTrust

HOST = "127.0.0.1"
SECRET = "c2VjcmV0IG9mIGEgY2x1c3RlciBmb3IgdGVzdHM="


class ClusterHomes(NamedTuple):
    """Homes of one cluster; nothing is there yet."""

    url: str
    """Of their database."""
    root: Path


class PinnedNodes:
    """Rows of nodes, as the store would show them at each look.

    Args:
        root: For the files of the nodes.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._rows: dict[str, SeenNode] = {}
        self.survey = Survey({}, {})

    def trust(self, name: str, *, file: str = "", former: FormerTrust | None = None) -> NodeTrust:
        """What a node of that name shows and believes; it has no row yet."""
        made = NodeTrust(
            self._root / f"{file or name}.pem",
            node=name,
            hosts=[HOST],
            survey=lambda: self.survey,
            former=former,
        )
        made.start()
        return made

    def put(self, name: str, certificate: bytes | None) -> None:
        """Its row; one that has no certificate is of the version before, or over."""
        self._rows[name] = SeenNode(name, name, name, None, (), None, "1", 6.0, False, certificate)
        self.survey = Survey(dict(self._rows), {})

    def listed(self, name: str, former: FormerTrust | None = None) -> NodeTrust:
        """A node that has a row."""
        made = self.trust(name, former=former)
        self.put(name, made.certificate)
        return made
