"""Three nodes as processes on one real PostgreSQL: one is killed with its workers, one is frozen,
one is drained. ``make test-cluster`` does each of it many times, under more load.
"""

from pathlib import Path

import pytest
from tests.e2e.live_home import until
from tests.extensions.cluster.nodes.cluster_load import ClusterLoad, judge, shown
from tests.extensions.cluster.nodes.cluster_rig import ClusterNode, ClusterRig
from tests.extensions.cluster.postgres.postgres_server import PostgresServer

from subagents.extensions.cluster import node_deadline


def loaded(rig: ClusterRig, *, runs: int = 4) -> ClusterLoad:
    """Some runs of each of nine sessions, and a third of them accepted."""
    load = ClusterLoad(rig, sessions=9, runs=runs, seconds=(0.5, 1.5), pause_s=0.5)
    load.begin()
    load.until_accepted(3 * runs)
    return load


def busiest(rig: ClusterRig) -> ClusterNode:
    """The node that decides about most open runs."""
    return max(rig.nodes, key=lambda node: len(rig.open_runs_of(node.name)))


@pytest.mark.requirement("cluster:node-lost")
def test_runs_of_a_node_that_is_killed_with_its_workers_end_on_the_others(
    server: PostgresServer, tmp_path: Path
) -> None:
    with ClusterRig(server, tmp_path) as rig:
        load = loaded(rig)
        victim = busiest(rig)
        assert load.note("killed with its workers", victim.name)
        victim.kill_with_workers()
        load.finish(60)
        found = judge(load)

    assert found.wrong == []
    assert found.runs == 36
    assert found.settled_after_s, shown(found.settled_after_s)


@pytest.mark.requirement("cluster:node-frozen")
def test_a_node_that_was_frozen_for_longer_than_its_lease_does_nothing_after_it(
    server: PostgresServer, tmp_path: Path
) -> None:
    with ClusterRig(server, tmp_path) as rig:
        load = loaded(rig)
        victim = busiest(rig)
        load.note("frozen", victim.name)
        victim.freeze()
        until(lambda: victim.name not in rig.owners().values(), what="the take-over", pause_s=0.1)
        victim.thaw()
        # Fenced, it begins anew under another identity.
        until(victim.is_well, what="the node takes part again", pause_s=0.1)
        load.finish(60)
        found = judge(load)

    assert found.wrong == []


@pytest.mark.requirement("cluster:daemon-killed")
def test_a_daemon_that_is_away_for_longer_than_its_lease_finds_its_workers_at_work(
    server: PostgresServer, tmp_path: Path
) -> None:
    # A lease in which a daemon can start on a busy machine, and workers that outlast it.
    with ClusterRig(server, tmp_path, lease_s=6.0) as rig:
        load = ClusterLoad(rig, sessions=9, runs=2, seconds=(8, 9), pause_s=0.2)
        load.begin()
        load.until_accepted(9)
        victim = busiest(rig)
        load.note("killed alone", victim.name)
        victim.kill()
        last = node_deadline.read(victim.home.paths.state_dir)
        assert last is not None
        until(lambda: not last.left_ms, what="the end that it had said last", pause_s=0.05)
        victim.start()
        load.finish(60)
        found = judge(load)

    assert found.wrong == []
    assert found.repeated == 0


@pytest.mark.requirement("cluster:drain")
def test_a_node_that_is_drained_and_started_again_repeats_nothing(
    server: PostgresServer, tmp_path: Path
) -> None:
    with ClusterRig(server, tmp_path) as rig:
        load = loaded(rig)
        victim = busiest(rig)
        load.note("drained", victim.name)
        victim.drain()
        assert victim.name not in rig.owned()
        victim.start()
        load.finish(60)
        found = judge(load)

    assert found.wrong == []
    assert found.repeated == 0
