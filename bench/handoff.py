"""(c): from the end of a worker until its result is in the hands of a waiting caller.

The worker's last act is to print the time (``exec date``), and that is its result; the caller
compares it with its own clock when ``wait`` returns. The interval holds the end of the process,
the daemon noticing it, two commits and the answer over the socket. One run at a time.
"""

import time
from pathlib import Path

from bench.daemon import make_home, serving
from bench.table import percentiles


def measure(home: Path, *, runs: int) -> dict[str, float]:
    """Milliseconds: ``p50`` and ``p99``."""
    make_home(home)
    taken: list[float] = []
    with serving(home) as daemon, daemon.client() as client:
        for number in range(runs + 5):
            run_id = daemon.spawn(client, "clock")
            body = {"runIds": [run_id], "until": "all", "timeoutSeconds": 30}
            found = client.post("/v1/wait", body, timeout_s=30)
            now = time.time()
            (ended,) = _list(found["completed"])
            if number >= 5:
                taken.append(now - float(str(ended["result"])))
    found_ms = percentiles(taken)
    return {"p50": found_ms.p50_ms, "p99": found_ms.p99_ms}


def _list(value: object) -> list[dict[str, object]]:
    assert isinstance(value, list), value
    return value
