"""One session on several nodes: what its owner has no slot for is done by the others."""

import os
import time
from pathlib import Path
from typing import Any, Final

import pytest
from tests.extensions.cluster.nodes.cluster_rig import ClusterRig, patiently
from tests.extensions.cluster.postgres.postgres_server import PostgresServer

from subagents.client.client import Client

SESSION: Final = "agent:main:spread"
SLOTS: Final = 8
"""Of each node."""
NODES: Final = 4
WAVES: Final = int(os.environ.get("SPREAD_WAVES", "4"))
"""So many runs for each slot."""
TASK: Final = "sleep 2; echo $SUBAGENTS_SOCKET"
MORE_MIN: Final = 3.0
WITHIN_S: Final = 240.0

pytestmark = pytest.mark.timeout(900)


def played(client: Client, cwd: Path, number: int) -> list[str]:
    """So many runs spawned at once; who did each, by its socket, once all have ended."""

    def post(path: str, body: dict[str, object], wait_s: float = 0.0) -> Any:
        return patiently(lambda: client.post(path, body, timeout_s=wait_s), within_s=WITHIN_S)

    spec = {"task": TASK, "agentId": "sh"}
    run_ids = [post("/v1/runs", {"spec": spec, "cwd": str(cwd)})["runId"] for _ in range(number)]
    asked = {"runIds": run_ids, "until": "all", "timeoutSeconds": WITHIN_S}
    found = post("/v1/wait", asked, wait_s=WITHIN_S)
    assert found["pending"] == []
    assert {each["outcome"]["status"] for each in found["completed"]} == {"ok"}
    post("/v1/inbox/ack", {"messageIds": found["messages"]})
    return [str(each["result"]) for each in found["completed"]]


def runs_per_s(rig: ClusterRig, cwd: Path) -> float:
    """Of one session, from its first spawn to its last result; all nodes take part in it."""
    owner = rig.owner_of(SESSION)
    number = len(rig.nodes) * SLOTS
    with Client(owner.home.paths.socket, session=SESSION, reader="r", timeout_s=15) as client:
        played(client, cwd, number)  # what is made with the first run is there then
        begun = time.monotonic()
        workers = played(client, cwd, number * WAVES)
        took_s = time.monotonic() - begun
    assert set(workers) == {str(node.home.paths.socket) for node in rig.nodes}
    return len(workers) / took_s


@pytest.mark.requirement("cluster:slots")
def test_one_session_gets_three_times_as_much_done_by_four_nodes_as_by_one(
    server: PostgresServer, tmp_path: Path
) -> None:
    env = {"SUBAGENTS_CLUSTER__SLOTS": str(SLOTS)}
    rates = []
    for nodes in (1, NODES):
        root = tmp_path / str(nodes)
        root.mkdir()
        with ClusterRig(server, root, nodes=nodes, lease_s=6.0, env=env) as rig:
            rates.append(runs_per_s(rig, tmp_path))
    one, four = rates

    assert four >= MORE_MIN * one, f"{four:.1f} runs/s of {NODES} nodes, {one:.1f} of one"
