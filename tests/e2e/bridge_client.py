"""Clients of the stdio bridge for tests: one that speaks line by line, and the protocol's own."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tests.e2e.live_home import BOUND_S, MARK, LiveHome

if TYPE_CHECKING:
    from mcp.client.client import Client

MODERN = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
PROGRAM = str(Path(sys.executable).parent / "subagents")

Document = dict[str, Any]


def environment(home: LiveHome) -> dict[str, str]:
    """What a client gives its servers; by the mark the home ends a daemon that they started."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home.root),
        "SUBAGENTS_HOME": str(home.paths.state_dir.parent),
        MARK: home.mark,
    }


class BridgeProcess:
    """``subagents mcp`` as a child, fed and read line by line."""

    def __init__(
        self,
        home: LiveHome,
        *,
        session: str | None = "desk",
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = (PROGRAM,),
    ) -> None:
        named = [] if session is None else ["--session", session]
        self.process = subprocess.Popen(
            [*program, "mcp", *named],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment(home), **(env or {})},
            cwd=home.work,
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._numbers = 0
        assert self.process.stdout is not None
        reading = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        reading.start()

    def _read(self, stdout: IO[bytes]) -> None:
        for line in stdout:
            self._lines.put(line)

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, *, tasks: bool = False, **params: Any) -> int:
        """Send a request of the current era; returns its id."""
        self._numbers += 1
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}}
            if tasks
            else {},
        }
        message = {"jsonrpc": "2.0", "id": self._numbers, "method": method}
        self.write(json.dumps({**message, "params": {**params, "_meta": meta}}).encode())
        return self._numbers

    def receive(self, *, within_s: float = BOUND_S) -> Any:
        """The next line."""
        try:
            return json.loads(self._lines.get(timeout=within_s))
        except queue.Empty:
            raise AssertionError(f"nothing within {within_s} s: {self.stderr()}") from None

    def answer_to(self, number: int, *, within_s: float = BOUND_S) -> Document:
        """The answer to one request; what comes before it must be notifications."""
        while True:
            message: Document = self.receive(within_s=within_s)
            if message.get("id") == number:
                return message
            assert "method" in message, message

    def ask(self, method: str, *, tasks: bool = False, **params: Any) -> Document:
        """The result of a request that must succeed."""
        answer = self.answer_to(self.send(method, tasks=tasks, **params))
        assert "result" in answer, answer
        result: Document = answer["result"]
        return result

    def call(self, name: str, *, tasks: bool = False, **arguments: Any) -> Document:
        return self.ask("tools/call", tasks=tasks, name=name, arguments=arguments)

    def start_call(self, name: str, **arguments: Any) -> int:
        return self.send("tools/call", name=name, arguments=arguments)

    def close(self) -> int:
        """End the input and return the exit status."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        return self.process.wait(BOUND_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(BOUND_S)

    def stderr(self) -> str:
        """What it said to the log; only once it has ended."""
        if self.process.poll() is None:
            return ""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


@contextlib.contextmanager
def bridge(
    home: LiveHome,
    *,
    session: str | None = "desk",
    env: Mapping[str, str] | None = None,
    program: Sequence[str] = (PROGRAM,),
) -> Iterator[BridgeProcess]:
    found = BridgeProcess(home, session=session, env=env, program=program)
    try:
        yield found
    finally:
        if found.process.poll() is None:
            found.kill()
        for stream in (found.process.stdin, found.process.stdout, found.process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


@contextlib.asynccontextmanager
async def connected(home: LiveHome, mode: str, session: str = "desk") -> "AsyncIterator[Client]":
    """The ``mcp`` package's client, over the bridge."""
    from mcp.client import client  # noqa: PLC0415 - takes seconds
    from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: PLC0415

    parameters = StdioServerParameters(
        command=PROGRAM,
        args=["mcp", "--session", session],
        env=environment(home),
        cwd=str(home.work),
    )
    async with client.Client(stdio_client(parameters), mode=mode) as found:
        yield found


def completed(result: Document) -> list[Document]:
    """What a ``sessions_wait`` says has ended."""
    found: list[Document] = result["structuredContent"]["completed"]
    return found
