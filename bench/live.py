"""(e): what 200 live workers cost besides themselves: the daemon's CPU, and memory for each.

Workers are ``sleep``. Memory is what the daemon grew by since before the first one, plus the
proportional set size of every shim (the shell that starts a worker and records its end), over the
number of workers. Linux only: it is read from /proc.
"""

import os
import time
from pathlib import Path
from typing import Final

from bench.daemon import Daemon, make_home, serving
from subagents.client.client import Client

STARTED_S: Final = 120.0
SETTLE_S: Final = 3.0


def _kilobytes(file: str, name: str) -> int:
    try:
        lines = Path(file).read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _shims(run_root: str) -> list[int]:
    """Processes whose command line is the shim with a directory below ``run_root``."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if b"shim.sh" in command and run_root.encode() in command:
                found.append(int(entry.name))
    return found


def _live_attempts(client: Client) -> int:
    number = client.get("/v1/diagnostics", timeout_s=60)["liveAttempts"]
    assert isinstance(number, int)
    return number


def measure(home: Path, *, workers: int, seconds: float) -> dict[str, float]:
    """``cpu_percent`` of one core, ``mb_per_worker``, and its two parts."""
    make_home(home)
    with serving(home) as daemon, daemon.client() as client:
        run_id = daemon.spawn(client, "quick")
        client.post("/v1/wait", {"runIds": [run_id], "until": "all", "timeoutSeconds": 10})
        before = _kilobytes(f"/proc/{daemon.pid}/status", "VmRSS")
        ids = [daemon.spawn(client, "sleep") for _ in range(workers)]
        due = time.monotonic() + STARTED_S
        while _live_attempts(client) < workers:
            if time.monotonic() > due:
                raise RuntimeError(f"only {_live_attempts(client)} workers are live")
            time.sleep(0.2)
        time.sleep(SETTLE_S)
        cpu, began = _cpu_s(daemon.pid), time.monotonic()
        time.sleep(seconds)
        cpu = (_cpu_s(daemon.pid) - cpu) / (time.monotonic() - began)
        grown = _kilobytes(f"/proc/{daemon.pid}/status", "VmRSS") - before
        shims = _shims(str(home))
        shim = sum(_kilobytes(f"/proc/{pid}/smaps_rollup", "Pss") for pid in shims)
        _end(daemon, client, ids)
    return {
        "cpu_percent": cpu * 100,
        "mb_per_worker": (grown + shim) / 1024 / workers,
        "daemon_kb_per_worker": grown / workers,
        "shim_kb_per_worker": shim / workers,
        "shims_per_worker": len(shims) / workers,
    }


def _end(daemon: Daemon, client: Client, ids: list[str]) -> None:
    """No worker is left behind: they would outlive the daemon."""
    for run_id in ids:
        client.post(f"/v1/runs/{run_id}/cancel", {})
    due = time.monotonic() + STARTED_S
    while _shims(str(daemon.home)):
        if time.monotonic() > due:
            raise RuntimeError("some workers did not end")
        time.sleep(0.2)
