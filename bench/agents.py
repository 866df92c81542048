"""(g): what a worker costs an agent that calls over MCP, on top of the worker's own time.

The caller is a client on the stdio of ``subagents mcp``: one ``sessions_spawn``, one
``sessions_wait``, until the result is in its hands. The worker is a program of about 50 ms. The
floor is the same program started directly and waited for, in turn with the runs, so that a busy
moment hits both. Once in the legacy era of the protocol and once in the modern one.

And what it costs the daemon's processor against plain HTTP: the same spawn, wait and
acknowledgement of a scripted worker over both, in turn, and a ``ping`` beside ``/healthz``.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from bench.daemon import Daemon, make_home, serving
from bench.table import percentiles
from subagents.client.client import Client
from subagents.client.transport import Connection, request

WORKER: Final = ("sh", "-c", "sleep 0.05; exec date +%s.%N")
"""The command of the agent ``clock``."""
WARM_UP: Final = 5
MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
META: Final = "io.modelcontextprotocol"
GROUP: Final = 10
"""Calls of one kind between two looks at the clock of the processor."""


class StdioClient:
    """A client that speaks JSON-RPC lines to ``subagents mcp``, one call at a time."""

    def __init__(self, home: Path, *, version: str) -> None:
        self._version = version
        self._number = 0
        self._bridge = subprocess.Popen(
            [sys.executable, "-m", "subagents", "mcp", "--session", "bench"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=home,
            env={**os.environ, "SUBAGENTS_HOME": str(home)},
        )
        if version == LEGACY:
            client = {"name": "bench", "version": "0"}
            self.call(
                "initialize",
                {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client},
            )
            self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._bridge.stdin is not None
        self._bridge.stdin.close()
        self._bridge.wait(20)

    def tool(self, name: str, arguments: dict[str, object]) -> dict[str, object]:
        """The structured content of a tool's answer.

        Raises:
            RuntimeError: The tool refused.
        """
        found = self.call("tools/call", {"name": name, "arguments": arguments})
        if found.get("isError"):
            raise RuntimeError(f"{name}: {found['content']}")
        structured = found["structuredContent"]
        assert isinstance(structured, dict), found
        return structured

    def call(self, method: str, params: dict[str, object]) -> dict[str, object]:
        """The result of one request.

        Raises:
            RuntimeError: It was answered with an error, or not at all.
        """
        self._number += 1
        if self._version == MODERN:
            meta = {
                f"{META}/protocolVersion": MODERN,
                f"{META}/clientCapabilities": {},
                f"{META}/clientInfo": {"name": "bench", "version": "0"},
            }
            params = {**params, "_meta": meta}
        self._write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._bridge.stdout is not None
        for line in self._bridge.stdout:
            message = json.loads(line)
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result = message["result"]
                assert isinstance(result, dict)
                return result
        raise RuntimeError(f"{method}: the bridge ended")

    def _write(self, message: dict[str, object]) -> None:
        assert self._bridge.stdin is not None
        self._bridge.stdin.write(json.dumps(message).encode() + b"\n")
        self._bridge.stdin.flush()


def measure(home: Path, *, runs: int, version: str) -> dict[str, float]:
    """Milliseconds: ``own`` (the program alone, p50), ``added_p50`` and ``added_p99``."""
    make_home(home)
    own: list[float] = []
    added: list[float] = []
    with serving(home), StdioClient(home, version=version) as client:
        for number in range(runs + WARM_UP):
            alone = _alone()
            began = time.perf_counter()
            receipt = client.tool("sessions_spawn", {"task": "work", "agentId": "clock"})
            wait = {"runIds": [receipt["runId"]], "until": "all", "timeoutSeconds": 30}
            found = client.tool("sessions_wait", wait)
            whole = time.perf_counter() - began
            if not found["completed"]:
                raise RuntimeError(f"not completed: {found}")
            if number >= WARM_UP:
                own.append(alone)
                added.append(whole - alone)
    found_ms = percentiles(added)
    own_ms = percentiles(own)
    return {"own": own_ms.p50_ms, "added_p50": found_ms.p50_ms, "added_p99": found_ms.p99_ms}


def _alone() -> float:
    began = time.perf_counter()
    subprocess.run(WORKER, check=True, capture_output=True)
    return time.perf_counter() - began


def measure_cpu(home: Path, *, runs: int) -> dict[str, float]:
    """The daemon's milliseconds of CPU for each call, and their ratios, taken group by group.

    ``http``, ``mcp_legacy`` and ``mcp_modern`` are a spawn, its wait and the acknowledgement;
    ``ping`` and ``healthz`` are one call each.
    """
    make_home(home)
    with (
        serving(home) as daemon,
        daemon.client() as http,
        StdioClient(home, version=LEGACY) as legacy,
        StdioClient(home, version=MODERN) as modern,
    ):
        works: dict[str, Callable[[], None]] = {
            "healthz": _asking(daemon, "GET", "/healthz", None),
            "ping": _asking(daemon, "POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
            "http": lambda: _spawn_and_wait(daemon, http),
            "mcp_legacy": lambda: _delegate(legacy),
            "mcp_modern": lambda: _delegate(modern),
        }
        taken: dict[str, list[float]] = {name: [] for name in works}
        for number in range(max(runs // GROUP, 1) + 1):
            for name, work in works.items():
                before = _cpu_ms(daemon.pid)
                for _ in range(GROUP):
                    work()
                if number:  # the first one imports and fills caches
                    taken[name].append((_cpu_ms(daemon.pid) - before) / GROUP)
    found = {name: statistics.median(each) for name, each in taken.items()}
    for name, over in (("ping", "healthz"), ("mcp_legacy", "http"), ("mcp_modern", "http")):
        pairs = zip(taken[name], taken[over], strict=True)
        found[f"{name}_ratio"] = statistics.median(mine / other for mine, other in pairs)
    return found


def _delegate(client: StdioClient) -> None:
    receipt = client.tool("sessions_spawn", {"task": "work", "agentId": "quick"})
    wait = {"runIds": [receipt["runId"]], "until": "all", "timeoutSeconds": 30}
    if not client.tool("sessions_wait", wait)["completed"]:
        raise RuntimeError("not completed")


def _spawn_and_wait(daemon: Daemon, client: Client) -> None:
    wait = {"runIds": [daemon.spawn(client, "quick")], "until": "all", "timeoutSeconds": 30}
    found = client.post("/v1/wait", wait)
    client.post("/v1/inbox/ack", {"messageIds": found["messages"]})


def _asking(
    daemon: Daemon, method: str, target: str, document: dict[str, object] | None
) -> Callable[[], None]:
    """Ask that again and again, on one connection while it is fresh."""
    connection: Connection | None = None
    headers = {"accept": "application/json, text/event-stream"}
    body = None if document is None else json.dumps(document).encode()

    def ask() -> None:
        nonlocal connection
        if connection is None or not connection.is_reusable:
            connection = Connection(daemon.socket)
        answer, content = connection.exchange(
            request(method, target, headers, body), timeout_s=30.0
        )
        if answer.status != 200:
            raise RuntimeError(f"{target}: HTTP {answer.status}: {content!r}")

    return ask


def _cpu_ms(pid: int) -> float:
    """Of all its threads."""
    found = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            found += int((thread / "schedstat").read_text().split()[0])
        except FileNotFoundError:
            continue
    return found / 1e6
