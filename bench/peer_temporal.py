"""Temporal beside it: a workflow of six activities that do nothing, on its development server.

The server keeps its history in a SQLite file and is a process of its own. Activities are
coroutines, executed one after the other as the steps of a life are. As shipped: no setting of
server or worker is changed.

For part t the worker is this process, and nothing runs. For part m it is a process of its own, so
that its processor time is known, and the third activity runs ``true``, as the runs beside it do.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from bench.cluster_nodes import serving_temporal
    from bench.daemon import clock_s

STEPS: Final = 6
STARTING: Final = 2
"""The step that runs a program, where one does."""
PROGRAM: Final = "true"
QUEUE: Final = "bench"
START_S: Final = 30.0
STOP_S: Final = 10.0


@activity.defn
async def step(number: int) -> int:
    """Nothing."""
    return number


@activity.defn
async def execute(number: int, program: str) -> int:
    """Run a program."""
    process = await asyncio.create_subprocess_exec(program)
    await process.wait()
    return number


@workflow.defn
class Life:
    """Six times nothing."""

    @workflow.run
    async def run(self, number: int, program: str | None) -> int:
        """The sum of what the activities say."""
        timeout = timedelta(seconds=60)
        done = 0
        for index in range(STEPS):
            if program is not None and index == STARTING:
                done += await workflow.execute_activity(
                    execute, args=[number, program], start_to_close_timeout=timeout
                )
            else:
                done += await workflow.execute_activity(
                    step, number, start_to_close_timeout=timeout
                )
        return done


def measure(database: Path, *, runs: int) -> dict[str, float]:
    """Runs per second from the first start of a workflow to the last result."""
    with serving_temporal(database) as server:
        return {"runs_per_s": runs / asyncio.run(_alone(server.target, runs))}


def measure_parts(database: Path, *, runs: int) -> dict[str, float]:
    """The same with a worker of its own and ``true``, and milliseconds of processor for each run:
    of the server, and of the worker."""
    with serving_temporal(database) as server, _worker(server.target) as worker:
        asyncio.run(_lives(server.target, 1, program=PROGRAM))
        before = clock_s(server.pid), clock_s(worker)
        took = asyncio.run(_lives(server.target, runs, program=PROGRAM))
        return {
            "runs_per_s": runs / took,
            "server_ms": (clock_s(server.pid) - before[0]) * 1000 / runs,
            "worker_ms": (clock_s(worker) - before[1]) * 1000 / runs,
        }


async def _alone(target: str, runs: int) -> float:
    async with _working(await _connected(target)):
        await _lives(target, 1, program=None)
        return await _lives(target, runs, program=None)


async def _lives(target: str, runs: int, *, program: str | None) -> float:
    """So many at once; how long they took, in seconds."""
    client = await _connected(target)
    began = time.perf_counter()
    results = await asyncio.gather(
        *(
            client.execute_workflow(
                Life.run,
                args=[number, program],
                id=f"life-{runs}-{number}",
                task_queue=QUEUE,
            )
            for number in range(runs)
        )
    )
    took = time.perf_counter() - began
    assert sum(results) == STEPS * sum(range(runs))
    return took


@asynccontextmanager
async def _working(client: Client) -> AsyncIterator[None]:
    async with Worker(client, task_queue=QUEUE, workflows=[Life], activities=[step, execute]):
        yield


@contextmanager
def _worker(target: str) -> Iterator[int]:
    """A process that works until the block ends; its pid."""
    command = [sys.executable, "-m", "bench.peer_temporal", target]
    worker = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield worker.pid
    finally:
        worker.terminate()
        try:
            worker.wait(STOP_S)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()


async def _connected(address: str) -> Client:
    due = time.monotonic() + START_S
    while True:
        try:
            return await Client.connect(address)
        except (RPCError, RuntimeError):
            if time.monotonic() > due:
                raise
            await asyncio.sleep(0.1)


async def _work(target: str) -> None:
    async with _working(await _connected(target)):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1]))
