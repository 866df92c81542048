"""(j): what a command costs its caller, against an interpreter that does nothing.

CPU time of the client's process alone, user and system, with a daemon that runs and everything
compiled. The commands take turns with ``python -c pass``, so that a busy minute hits all alike.
"""

import compileall
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import subagents
from bench.daemon import make_home, serving
from subagents.client.client import Client

START_S: Final = 30.0
NOTHING: Final = ("-c", "pass")
COMMANDS: Final = {
    "list": ("list",),
    "run": ("run", "--agent", "command", "true"),
    "status": ("status", "last"),
    "report": ("report", "done"),
}


def measure(home: Path, *, rounds: int) -> dict[str, float]:
    """For each command, the median of what it costs ÷ what an interpreter costs that does nothing;
    ``pass_ms`` is that in milliseconds."""
    compileall.compile_dir(Path(subagents.__file__).parent, quiet=2)
    make_home(home)
    own = {"PATH": os.environ.get("PATH", os.defpath), "SUBAGENTS_HOME": str(home)}
    with serving(home) as daemon, daemon.client() as client, _working(client, home) as worker:
        nothing: list[float] = []
        taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
        for _ in range(rounds):
            nothing.append(_cpu_s(NOTHING, own))
            for name, words in COMMANDS.items():
                environ = worker if name == "report" else own
                taken[name].append(_cpu_s(("-m", "subagents", *words), environ))
        found = {
            name: statistics.median(mine / floor for mine, floor in zip(each, nothing, strict=True))
            for name, each in taken.items()
        }
    return {**found, "pass_ms": statistics.median(nothing) * 1000}


@contextmanager
def _working(client: Client, home: Path) -> Iterator[dict[str, str]]:
    """The variables of a worker that is there until the block ends."""
    file = home / "worker-environment"
    task = f"env -0 > {file}.new && mv {file}.new {file}; exec sleep 3600"
    body = {"spec": {"task": task, "agentId": "command"}, "cwd": str(home)}
    run_id = client.post("/v1/runs", body)["runId"]
    due = time.monotonic() + START_S
    while not file.exists():
        if time.monotonic() > due:
            raise TimeoutError("the worker did not start")
        time.sleep(0.01)
    pairs = file.read_text(encoding="utf-8").rstrip("\0").split("\0")
    yield dict(pair.split("=", 1) for pair in pairs)
    client.post(f"/v1/runs/{run_id}/cancel")


def _cpu_s(words: tuple[str, ...], environ: Mapping[str, str]) -> float:
    """User and system time of one process, in seconds."""
    with subprocess.Popen(
        [sys.executable, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environ,
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{words} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime
