"""A node is taken out of service while none of its sessions is ever idle, and nothing is lost."""

import sys
import time
from pathlib import Path
from typing import Final

import pytest
from tests.extensions.cluster.nodes.cluster_load import ClusterLoad, judge
from tests.extensions.cluster.nodes.cluster_rig import ClusterNode, ClusterRig
from tests.extensions.cluster.postgres.postgres_server import PostgresServer

from subagents.client.client import Client

DRAIN_S_MAX: Final = 30.0
AT_ONCE: Final = 2
"""Workers of each session at any time, at least."""


def at_work(rig: ClusterRig, node: ClusterNode) -> int:
    """Runs that this node decides about and that have a worker."""
    with Client(node.home.paths.socket, timeout_s=15) as client:
        found = client.get("/v1/runs", {"state": "working", "limit": "500"})
    open_runs, rows = set(rig.open_runs_of(node.name)), found["runs"]
    assert isinstance(rows, list)
    return sum(str(run["runId"]) in open_runs for run in rows)


def drained(server: PostgresServer, root: Path, times: int) -> None:
    """Drain the busiest node, take its power, and start it again, so often."""
    with ClusterRig(server, root, lease_s=6.0, beat_s=0.5) as rig:
        load = ClusterLoad(
            rig, sessions=6, runs=10_000, seconds=(4, 5), pause_s=4 / AT_ONCE, retries=0
        )
        load.begin()
        load.until_accepted(6 * AT_ONCE)
        took: list[float] = []
        for _ in range(times):
            victim = max(rig.nodes, key=lambda node: len(rig.open_runs_of(node.name)))
            assert at_work(rig, victim) >= AT_ONCE
            begun = time.monotonic()
            victim.command("cluster", "drain", "--wait", "--timeout", "50s")
            took.append(time.monotonic() - begun)
            # As a pod ends: nothing of it outlives its daemon.
            victim.kill_with_workers()
            victim.start()
            rig.until_divided()
        load.is_enough = True
        load.finish(120)
        found = judge(load)
    sys.stdout.write(f"\ndrains took {[round(each, 1) for each in took]} s\n")
    assert found.wrong == []
    assert found.repeated == 0
    assert max(took) < DRAIN_S_MAX


@pytest.mark.requirement("cluster:drain")
@pytest.mark.timeout(180)
def test_a_node_whose_sessions_are_never_idle_is_drained_and_loses_nothing(
    server: PostgresServer, tmp_path: Path
) -> None:
    drained(server, tmp_path, 1)


@pytest.mark.requirement("cluster:drain")
@pytest.mark.timeout(1800)
def test_twenty_drains_of_nodes_whose_sessions_are_never_idle_lose_nothing(
    server: PostgresServer, tmp_path: Path
) -> None:
    drained(server, tmp_path, 20)
