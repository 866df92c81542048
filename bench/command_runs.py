"""(i): what a run of a real program costs the daemon, over what a scripted run costs.

The program is ``true``, so that nothing is measured but us: starting it behind its shim, following
its files, ending what it left behind. Processor time of the daemon and of the process that starts
its workers; one run at a time, spawned and waited for by one client, rounds of both kinds in turn
in one daemon. Then the same beside 300 processes that do nothing: ending a worker that left nothing
must not depend on what else runs on the machine. Linux only.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.daemon import Daemon, clock_s, make_home, serving
from subagents.client.client import Client

ROUND: Final = 20
"""Runs of one kind before the other kind's turn."""


def measure(home: Path, *, runs: int, beside: int) -> dict[str, float]:
    """Milliseconds of processor for each run: ``scripted``, ``real`` and ``real_beside``.

    Args:
        home: Of the daemon.
        runs: Of each kind.
        beside: So many more processes, for the last of them.
    """
    make_home(home)
    with serving(home) as daemon, daemon.client() as client:
        for agent in ("quick", "true"):  # imports, the process that starts workers
            _cpu_of(daemon, client, agent, 5)
        spent = {"scripted": 0.0, "real": 0.0, "real_beside": 0.0}
        rounds = [min(ROUND, runs - done) for done in range(0, runs, ROUND)]
        for size in rounds:
            spent["scripted"] += _cpu_of(daemon, client, "quick", size)
            spent["real"] += _cpu_of(daemon, client, "true", size)
            with _idle(beside):
                spent["real_beside"] += _cpu_of(daemon, client, "true", size)
    found = {name: each * 1000 / runs for name, each in spent.items()}
    return {
        **found,
        "ratio": found["real"] / found["scripted"],
        "ratio_beside": found["real_beside"] / found["scripted"],
    }


def _cpu_of(daemon: Daemon, client: Client, agent: str, runs: int) -> float:
    """Seconds of processor that ``runs`` runs, one after another, took."""
    before = _cpu_s(daemon.pid)
    for _ in range(runs):
        run_id = daemon.spawn(client, agent)
        body = {"runIds": [run_id], "until": "all", "timeoutSeconds": 30}
        client.post("/v1/wait", body, timeout_s=40)
    return _cpu_s(daemon.pid) - before


def _cpu_s(daemon: int) -> float:
    """Of the daemon and its helper; workers are nobody's children here."""
    children = Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split()
    return sum(clock_s(pid) for pid in (daemon, *map(int, children)))


@contextmanager
def _idle(processes: int) -> Iterator[None]:
    """So many processes that do nothing, until the block ends."""
    sleepers = [subprocess.Popen(["sleep", "3600"]) for _ in range(processes)]
    try:
        yield
    finally:
        for each in sleepers:
            each.kill()
        for each in sleepers:
            each.wait()
