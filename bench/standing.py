"""(k): what finished runs cost a daemon that does nothing with them: at its start, and in lists.

CPU time of all threads of a real ``subagents serve``, from the scheduler's own account. A start is
over when the daemon has become quiet: what it puts off until it answers counts as well. Lists are
asked for over its socket, again and again; those in which nothing fits are the dearest where there
is no index, so most of them are such.
"""

import time
from pathlib import Path
from typing import Final

from bench import full
from bench.daemon import cpu_s, make_home, serving
from subagents.client.client import Client

QUIET_S: Final = 2.0
QUIET_CPU_S: Final = 0.03
AFTER_WORK_S: Final = 300.0
REQUESTS: Final = 100
LONG_MINUTES: Final = 525_600
ASKED: Final[dict[str, tuple[str, dict[str, str | int | None]]]] = {
    "list": ("/v1/runs", {}),
    "list --archived": ("/v1/runs", {"archived": 1}),
    "list --phase": ("/v1/runs", {"phase": "running,completed_giveup"}),
    "list --outcome": ("/v1/runs", {"outcome": "error,timeout"}),
    "list --agent": ("/v1/runs", {"agentId": "nobody"}),
    "list --dir": ("/v1/runs", {"directory": "/nowhere"}),
    "list --dir /": ("/v1/runs", {"directory": "/"}),
    "list --tag": ("/v1/runs", {"tag": "none"}),
    "attention": ("/v1/attention", {}),
}


def fill(home: Path, *, runs: int) -> None:
    """A home whose database holds ``runs`` finished runs; with 0 a home without a database."""
    paths = make_home(home)
    # The sweep would archive half of them while the others are listed.
    config = paths.config_file.read_text("utf-8")
    table = "[agents.defaults.subagents]\n"
    longer = f"{table}archive_after_minutes = {LONG_MINUTES}\n"
    paths.config_file.write_text(config.replace(table, longer), "utf-8")
    if runs:
        full.fill(paths.database, runs=runs, records=paths.state_dir)


def start(home: Path) -> dict[str, float]:
    """Seconds of CPU until the daemon answers, and until it is quiet again."""
    with serving(home) as daemon:
        answers_s = cpu_s(daemon.pid)
        return {"answers_s": answers_s, "quiet_s": quiet(daemon.pid)}


def lists(home: Path) -> dict[str, float]:
    """Milliseconds of the daemon's CPU for each of ``ASKED``."""
    with serving(home) as daemon, daemon.client() as client:
        quiet(daemon.pid)
        return {name: _cost_ms(client, daemon.pid, *asked) for name, asked in ASKED.items()}


def _cost_ms(client: Client, pid: int, path: str, query: dict[str, str | int | None]) -> float:
    for _ in range(3):
        client.get(path, query)
    before_s = cpu_s(pid)
    for _ in range(REQUESTS):
        client.get(path, query)
    return (cpu_s(pid) - before_s) / REQUESTS * 1_000


def quiet(pid: int) -> float:
    """The seconds of CPU that it has taken once it takes almost no more.

    Raises:
        RuntimeError: It does not come to rest.
    """
    known_s, due_s = cpu_s(pid), time.monotonic() + AFTER_WORK_S
    while time.monotonic() < due_s:
        time.sleep(QUIET_S)
        now_s = cpu_s(pid)
        if now_s - known_s < QUIET_CPU_S:
            return now_s
        known_s = now_s
    raise RuntimeError(f"still at work after {AFTER_WORK_S} s")
