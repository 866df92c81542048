"""(g): what a worker costs an agent that calls over MCP, on top of the worker's own time.

The caller is a client on the stdio of ``subagents mcp``: one ``sessions_spawn``, one
``sessions_wait``, until the result is in its hands. The worker is a program of about 50 ms. The
floor is the same program started directly and waited for, in turn with the runs, so that a busy
moment hits both. Once in the legacy era of the protocol and once in the modern one.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, Self

from bench.daemon import make_home, serving
from bench.table import percentiles

WORKER: Final = ("sh", "-c", "sleep 0.05; exec date +%s.%N")
"""The command of the agent ``clock``."""
WARM_UP: Final = 5
MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
META: Final = "io.modelcontextprotocol"


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
