"""(s): how much more one session gets done by four nodes with eight slots each than by one.

Its runs ``sleep`` for a second, so that slots are what there is too little of. The session belongs
to one node; what finds no slot there is offered to the others.
"""

import time
from pathlib import Path
from typing import Final

from bench.cluster_caller import Caller
from bench.cluster_nodes import serving_cluster
from subagents.client.client import Client

LANE: Final = 1_000
"""Runs at work that the configuration allows: more than there are slots."""
AGENT: Final = "second"
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
            caller = Caller(client, AGENT)
            caller.play(nodes * slots)  # imports, connections, what starts workers
            number = nodes * slots * waves
            began = time.perf_counter()
            caller.play(number)
            return {"runs_per_s": number / (time.perf_counter() - began)}
