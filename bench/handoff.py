"""(c): from the end of a worker until its result is in the hands of a waiting caller.

The worker's last act is to print the time (``exec date``), and that is its result; the caller
compares it with its own clock when ``wait`` returns. The interval holds the end of the process,
the daemon noticing it, two commits and the answer over the socket. One run at a time.
"""

import time
from pathlib import Path
from typing import Final

from bench.daemon import Daemon, make_home, serving
from bench.table import percentiles
from subagents.client.client import Client

WARM_UP: Final = 5


def measure(home: Path, *, runs: int) -> dict[str, float]:
    """Milliseconds: ``p50`` and ``p99``."""
    make_home(home)
    with serving(home) as daemon, daemon.client() as client:
        found_ms = percentiles(hand_off(daemon, client, runs))
    return {"p50": found_ms.p50_ms, "p99": found_ms.p99_ms}


def hand_off(daemon: Daemon, client: Client, runs: int) -> list[float]:
    """Seconds of each of so many, after a few that do not count."""
    taken = [_one(daemon, client) for _ in range(WARM_UP + runs)]
    return taken[WARM_UP:]


def _one(daemon: Daemon, client: Client) -> float:
    run_id = daemon.spawn(client, "clock")
    body = {"runIds": [run_id], "until": "all", "timeoutSeconds": 30}
    found = client.post("/v1/wait", body, timeout_s=30)
    now = time.time()
    completed = found["completed"]
    assert isinstance(completed, list), found
    client.post("/v1/inbox/ack", {"messageIds": found["messages"]})
    return now - float(completed[0]["result"])
