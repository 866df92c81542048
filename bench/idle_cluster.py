"""(n): what three nodes cost that have nothing to do, lately after every partition was used.

A run in each of the 256 partitions, so that nothing is idle because it was never opened; then
nothing for a while. Then processor time is taken for some seconds, and for as many more, in which
PostgreSQL logs it, every statement is counted.
"""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from bench.cluster_caller import play
from bench.cluster_nodes import Nodes, serving_cluster
from subagents.domain.cluster.partitioning import PARTITIONS, partition_of
from subagents.domain.run.values import SessionKey

NODES: Final = 3
SLOTS: Final = 64
AT_ONCE: Final = 16
AGENT: Final = "true"


def measure(home: Path, *, seconds: float, quiet_s: float, places: str) -> dict[str, float]:
    """Of the worst node ``cpu_percent`` of one core, ``statements`` per second and
    ``connections``; of all nodes ``statements_total`` per second, and PostgreSQL's
    ``postgres_percent``.

    Args:
        home: A fresh directory.
        seconds: Measured for so long.
        quiet_s: After the last run.
        places: One of ``cluster_nodes.PLACES``.
    """
    serving = serving_cluster(home, nodes=NODES, slots=SLOTS, places=places)
    with serving as nodes:
        _use_all(nodes)
        time.sleep(quiet_s)
        before, cpu, began = _each(nodes), nodes.cpu(), time.perf_counter()
        time.sleep(seconds)
        each, used, took = _each(nodes), nodes.cpu().since(cpu), time.perf_counter() - began
        connections = nodes.connections()
        told: Counter[str] = Counter()
        for (node, _), number in nodes.statements(seconds).items():
            told[node] += number
    return {
        "cpu_percent": max(b - a for a, b in zip(before, each, strict=True)) * 100 / took,
        "postgres_percent": used.postgres * 100 / took,
        "temporal_percent": used.temporal * 100 / took,
        "statements": max(told.values()) / seconds,
        "statements_total": told.total() / seconds,
        "connections": max(connections.values()),
    }


def _each(nodes: Nodes) -> list[float]:
    return [nodes.cpu_of(each) for each in nodes.daemons]


def _use_all(nodes: Nodes) -> None:
    """A run in each partition, through any of the nodes."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        playing = [
            pool.submit(
                play, nodes.daemons[partition % len(nodes.daemons)].socket, session, 1, AGENT
            )
            for partition, session in _sessions().items()
        ]
    for each in playing:
        each.result()


def _sessions() -> dict[int, str]:
    """One of each partition."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < PARTITIONS:
        session = f"agent:main:{number}"
        found.setdefault(partition_of(SessionKey(session)), session)
        number += 1
    return found
