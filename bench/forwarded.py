"""(n): the processor time of a call at another node than its owner, over that at the owner.

Both are counted at both of two nodes. Once a call that is small, a wait for a run that has ended;
once all calls of ten runs of ``true``: spawns, a wait, what they say, with the runs themselves.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.cluster_caller import Caller
from bench.cluster_nodes import Nodes, serving_cluster
from bench.daemon import spawn_body
from subagents.client.client import Client

SESSION: Final = "agent:main:forwarded"
AGENT: Final = "true"
SLOTS: Final = 64
RUNS: Final = 10


def measure(home: Path, *, calls: int) -> dict[str, float]:
    """``call_ms`` and ``run_ms`` of processor at the owner, ``call_ratio`` and ``run_ratio``.

    Args:
        home: A fresh directory.
        calls: How many small ones; a fifth as many runs.
    """
    with serving_cluster(home, nodes=2, slots=SLOTS) as nodes:
        owner = nodes.owner_of(SESSION)
        found = [_costs(nodes, at, calls) for at in (owner, 1 - owner)]
    (call_ms, run_ms), (call_away_ms, run_away_ms) = found
    return {
        "call_ms": call_ms,
        "run_ms": run_ms,
        "call_ratio": call_away_ms / call_ms,
        "run_ratio": run_away_ms / run_ms,
    }


def _costs(nodes: Nodes, at: int, calls: int) -> tuple[float, float]:
    with Client(nodes.daemons[at].socket, session=SESSION) as client:
        caller = Caller(client, AGENT)
        caller.play(RUNS)
        run_id = client.post("/v1/runs", spawn_body(AGENT), timeout_s=0)["runId"]
        asked = {"runIds": [run_id], "until": "all", "timeoutSeconds": 60}

        def wait() -> None:
            client.post("/v1/wait", asked, timeout_s=70)

        wait()
        call_ms = _cpu_ms(nodes, wait, calls)
        lives = max(calls // 5 // RUNS, 1)
        return call_ms, _cpu_ms(nodes, lambda: caller.play(RUNS), lives) / RUNS


def _cpu_ms(nodes: Nodes, work: Callable[[], None], times: int) -> float:
    before = nodes.cpu()
    for _ in range(times):
        work()
    return nodes.cpu().since(before).nodes * 1000 / times
