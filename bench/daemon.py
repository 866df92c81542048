"""A real daemon in a home of its own, as a user starts it: ``subagents serve``."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from subagents.client.client import Client, Document
from subagents.config.paths import Paths
from subagents.errors import DaemonUnreachable

START_S: Final = 90.0
STOP_S: Final = 20.0

CONFIG: Final = """\
[agents.defaults.subagents]
max_children_per_agent = 100000
max_concurrent = {slots}
max_spawn_depth = {depth}
max_transcript_mb = {transcript_mb}
agent = "quick"

[agents.main]
subagents.allow_agents = ["*"]

[agents.quick]
runtime = "scripted"
script = [{{ result = "done" }}]

[agents.hang]
runtime = "scripted"
script = [{{ hang = true }}]

[agents.clock]
runtime = "command"
command = ["sh", "-c", "sleep 0.05; exec date +%s.%N"]

[agents.true]
runtime = "command"
command = ["true"]

[agents.nap]
runtime = "command"
command = ["sleep", "2"]

[agents.sleep]
runtime = "command"
command = ["sleep", "3600"]
"""


class Daemon:
    """One daemon process and how to ask it."""

    def __init__(self, home: Path, process: "subprocess.Popen[bytes]", ready_s: float) -> None:
        self.home = home
        self.pid = process.pid
        self.ready_s = ready_s
        """From starting the process until it answered ``/healthz``."""

    @property
    def socket(self) -> Path:
        return paths_of(self.home).socket

    def client(self) -> Client:
        return Client(self.socket)

    def spawn(self, client: Client, agent: str) -> str:
        """Spawn one run of ``agent``; returns its id."""
        return str(client.post("/v1/runs", spawn_body(agent))["runId"])


def cpu_s(pid: int) -> float:
    """Processor time of a process until now, by the scheduler's own account.

    Of its threads that are there; those that are not were short.
    """
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def clock_s(pid: int) -> float:
    """Processor time of a process until now, threads that ended included."""
    # The clock of another process, as clock_getcpuclockid(3) makes it: finer than ticks.
    return time.clock_gettime((~pid << 3) | 2)


def spawn_body(agent: str, **parameters: object) -> Document:
    """What a client posts for one run."""
    return {"spec": {"task": "work", "agentId": agent, **parameters}, "cwd": "/"}


def paths_of(home: Path) -> Paths:
    """Where the daemon of ``home`` keeps things."""
    return Paths.resolve({"SUBAGENTS_HOME": str(home)})


def make_home(
    home: Path, *, slots: int = 10_000, depth: int = 1, transcript_mb: int = 32, more: str = ""
) -> Paths:
    """A home with the agents that are measured, and with ``more`` in its configuration."""
    paths = paths_of(home)
    paths.ensure()
    paths.config_file.parent.mkdir(parents=True, exist_ok=True)
    text = CONFIG.format(slots=slots, depth=depth, transcript_mb=transcript_mb)
    paths.config_file.write_text(text + more, "utf-8")
    paths.config_file.chmod(0o600)  # there may be a secret in it
    return paths


@contextmanager
def serving(home: Path) -> Iterator[Daemon]:
    """The daemon of a home that ``make_home`` made, until the block ends.

    Raises:
        RuntimeError: It did not answer in time; the message has the end of what it printed.
    """
    paths = paths_of(home)
    output = home / "output"
    with output.open("wb") as sink:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "subagents", "serve"],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            cwd="/",
            env={**os.environ, "SUBAGENTS_HOME": str(home)},
        )
    try:
        _until_it_answers(paths, process, began + START_S, output)
        yield Daemon(home, process, time.perf_counter() - began)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until_it_answers(
    paths: Paths, process: "subprocess.Popen[bytes]", due: float, output: Path
) -> None:
    while True:
        try:
            with Client(paths.socket, timeout_s=2.0) as client:
                client.get("/healthz")
        except DaemonUnreachable as error:
            if process.poll() is not None or time.perf_counter() > due:
                raise RuntimeError(f"no daemon: {output.read_text()[-2000:]}") from error
            time.sleep(0.002)
        else:
            return
