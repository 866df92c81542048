"""(s): how much more one session gets done by four nodes with eight slots each than by one.

Its runs ``sleep`` for a second, so that slots are what there is too little of. The session belongs
to one node; what finds no slot there is offered to the others.
"""

import time
from pathlib import Path
from typing import Any, Final

from bench.cluster_nodes import serving_cluster
from bench.daemon import spawn_body
from subagents.client.client import Client

LANE: Final = 1_000
"""Runs at work that the configuration allows: more than there are slots."""
WAIT_S: Final = 300
SESSION: Final = "agent:main:spread"


def measure(home: Path, *, nodes: int, slots: int, waves: int, places: str) -> dict[str, float]:
    """``runs_per_s`` from the first spawn to the last result.

    Args:
        home: A fresh directory.
        nodes: How many.
        slots: Of each.
        waves: So many runs for each slot.
        places: One of ``cluster_nodes.PLACES``.
    """
    serving = serving_cluster(home, nodes=nodes, slots=LANE, places=places, node_slots=slots)
    with serving as found:
        owner = found.daemons[found.owner_of(SESSION)]
        with Client(owner.socket, session=SESSION) as client:
            _run(client, nodes * slots)  # imports, connections, what starts workers
            number = nodes * slots * waves
            began = time.perf_counter()
            _run(client, number)
            return {"runs_per_s": number / (time.perf_counter() - began)}


def _run(client: Client, number: int) -> None:
    ids = [str(client.post("/v1/runs", spawn_body("second"))["runId"]) for _ in range(number)]
    body = {"runIds": ids, "until": "all", "timeoutSeconds": WAIT_S}
    found: Any = client.post("/v1/wait", body, timeout_s=WAIT_S)
    assert len(found["completed"]) == number, found["pending"]
    client.post("/v1/inbox/ack", {"messageIds": found["messages"]})
