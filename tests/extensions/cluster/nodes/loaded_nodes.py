"""Nodes with callers inside their own processes, for a load that no way over HTTP slows down."""

import json
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.e2e.live_home import until
from tests.extensions.cluster.nodes.cluster_rig import ClusterNode, ClusterRig

from subagents.domain.cluster.partitioning import partition_of
from subagents.domain.run.events import AnnouncementConsumed
from subagents.domain.run.values import SessionKey

LOADED_NODE: Final = "tests.extensions.cluster.nodes.loaded_node"
"""What such a node is started as, with ``LOADED_ENV``."""
LOADED_ENV: Final = {"PYTHONPATH": str(Path(__file__).parents[4])}
ASKED: Final = "load.json"
DONE: Final = "loaded.json"
AGENT: Final = "quick"
SESSIONS: Final = 16
"""Of each node."""


class Load(NamedTuple):
    """What one node is to do."""

    sessions: Sequence[str]
    """It owns the partitions of all of them."""
    runs_per_s: float
    """Of all sessions; less where the machine does less."""
    seconds: float


class Loaded(NamedTuple):
    """What came of it, in a node or in all."""

    runs: int
    """Their results were read and consumed."""
    seconds: float
    wrong: list[str]

    @property
    def runs_per_s(self) -> float:
        return self.runs / self.seconds


class NodesLoad:
    """What all nodes of a cluster do at the same time; made by ``begin_load``."""

    def __init__(self, rig: ClusterRig) -> None:
        self._rig = rig

    def finish(self, within_s: float) -> Loaded:
        """What came of it, by the callers and by the journal."""
        found = until(self._all, what="the end of the load in each node", within_s=within_s)
        runs = sum(each.runs for each in found)
        wrong = [text for each in found for text in each.wrong]
        consumed = self._rig.asked(
            "SELECT count(*), count(DISTINCT run_id) FROM journal JOIN run USING (run_id)"
            " WHERE agent_id = %s AND type = %s",
            AGENT,
            AnnouncementConsumed.__name__,
        )
        if consumed != [(runs, runs)]:
            wrong.append(f"of {runs} runs the journal has (consumptions, runs) {consumed}")
        return Loaded(runs, max(each.seconds for each in found), wrong)

    def _all(self) -> list[Loaded] | None:
        found = []
        for node in self._rig.nodes:
            with suppress(FileNotFoundError):
                found.append(Loaded(**json.loads(_in(node, DONE).read_text())))
        return found if len(found) == len(self._rig.nodes) else None


def begin_load(rig: ClusterRig, *, runs_per_s: float, seconds: float) -> NodesLoad:
    """Let every node, started as ``LOADED_NODE``, work off runs of its own sessions."""
    owners = rig.owners()
    sessions: dict[str, list[str]] = defaultdict(list)
    for number in count():
        name = f"agent:main:load{number}"
        sessions[owners[partition_of(SessionKey(name))]].append(name)
        if all(len(sessions[node.name]) >= SESSIONS for node in rig.nodes):
            break
    for node in rig.nodes:
        of_node = sessions[node.name][:SESSIONS]
        write(_in(node, ASKED), Load(of_node, runs_per_s / len(rig.nodes), seconds)._asdict())
    return NodesLoad(rig)


def write(path: Path, value: dict[str, Any]) -> None:
    """All of it or nothing is there for whoever looks."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(value))
    beside.rename(path)


def _in(node: ClusterNode, name: str) -> Path:
    return node.home.paths.state_dir / name
