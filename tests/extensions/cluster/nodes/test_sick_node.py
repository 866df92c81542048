"""The disk of one node is full: it says so, others do its work, and no retry is used for it."""

import os
from pathlib import Path

import pytest
from tests.e2e.live_home import until
from tests.e2e.small_disk import CannotMount, fill, small_disk
from tests.extensions.cluster.nodes.cluster_load import ClusterLoad, judge
from tests.extensions.cluster.nodes.cluster_rig import ClusterNode, ClusterRig
from tests.extensions.cluster.nodes.node_calls import client_of, result_of, spawned
from tests.extensions.cluster.postgres.postgres_server import PostgresServer

from subagents.client.client import Client
from subagents.runtimes.process.processes import scan

NO_SPACE = "no space left on its disk"
LEFT_BYTES = 768 * 1024
"""Enough for workers to end, and too little to start one."""


def health_of(node: ClusterNode) -> dict[str, object]:
    with Client(node.home.paths.socket, timeout_s=5) as client:
        return {**client.get("/healthz")}


def fill_but(disk: Path, left: int) -> Path:
    """What is at work may end; nothing new has room."""
    filler = disk / "filler"
    found = os.statvfs(disk)
    with filler.open("wb") as file:
        file.write(b"\0" * (found.f_bavail * found.f_frsize - left))
    return filler


def has_workers(node: ClusterNode) -> bool:
    root = str(node.home.paths.attempts_dir)
    return any(each.marker is not None and each.marker.root == root for each in scan())


def is_owned_by_others(rig: ClusterRig, node: ClusterNode) -> bool:
    owned = rig.owned()
    return node.name not in owned and sum(owned.values()) == 256


@pytest.mark.requirement("cluster:sick-node")
@pytest.mark.timeout(240)
def test_a_node_whose_disk_is_full_uses_no_retry_and_others_do_its_work(
    server: PostgresServer, tmp_path: Path
) -> None:
    try:
        with (
            small_disk(tmp_path / "n1" / "home", 48) as disk,
            ClusterRig(server, tmp_path) as rig,
        ):
            sick, well = rig.nodes[:2]
            load = ClusterLoad(
                rig, sessions=9, runs=10_000, seconds=(0.3, 0.6), pause_s=0.5, retries=0
            )
            load.begin()
            load.until_accepted(18)
            assert health_of(sick) == {"status": "ok"}
            load.note("disk full", sick.name)
            filler = fill_but(disk, LEFT_BYTES)
            until(lambda: is_owned_by_others(rig, sick), what="others have it all", pause_s=0.1)
            assert health_of(sick) == {"status": "degraded", "degraded": NO_SPACE}
            assert f"nothing is started on this node: {NO_SPACE}" in said(sick, "status")
            assert f"node n1 starts nothing: {NO_SPACE}" in said(well, "cluster", "status")
            # What worked there could write to the end.
            until(lambda: not has_workers(sick), what="its workers' end", pause_s=0.1)
            fill(disk)
            load.until_accepted(27)

            # A session that was its own is asked for at the sick node itself.
            with client_of(sick, "agent:main:of-nobody") as client:
                run_id = spawned(client, rig.root, 'echo "$SUBAGENTS_SOCKET"')
                outcome, socket = result_of(client, run_id)
            assert (outcome, str(socket) != str(sick.home.paths.socket)) == ("ok", True)

            filler.unlink()
            rig.until_divided()
            assert health_of(sick)["status"] == "ok"
            load.until_accepted(9)
            load.is_enough = True
            load.finish(60)
            found = judge(load)
    except CannotMount as error:
        pytest.skip(str(error))

    assert found.wrong == []
    assert found.repeated == 0
    assert max(found.settled_after_s) < 20


def said(node: ClusterNode, *words: str) -> str:
    """What a command says to people."""
    with node.program(*words) as program:
        return "".join(program.communicate(timeout=60))
