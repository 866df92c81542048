"""(b): how long a spawn and a ``status`` take while 1,000 runs are spawned, at the real daemon.

Closed loop: each spawner asks for the next run when it has the receipt of the one before, which is
durable then. The daemon takes every run through its whole life meanwhile. Beside the spawners a
second process asks for the status of one live and one ended run in turn, with a pause of 2 ms.
"""

import asyncio
import multiprocessing
import time
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Final

from bench.daemon import make_home, serving, spawn_body
from bench.table import percentiles
from subagents.client.client import AsyncClient, Client

PAUSE_S: Final = 0.002


def _probe(socket: str, run_ids: list[str], asks: Event, stop: Event, results: Connection) -> None:
    taken: list[float] = []
    with Client(socket) as client:
        while not stop.is_set():
            for run_id in run_ids:
                began = time.perf_counter()
                client.get(f"/v1/runs/{run_id}/status")
                taken.append(time.perf_counter() - began)
                asks.set()
                stop.wait(PAUSE_S)
    results.send(taken)


async def _burst(socket: Path, *, runs: int, spawners: int) -> tuple[list[float], float]:
    taken: list[float] = []
    left = runs

    async def spawner(client: AsyncClient) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            began = time.perf_counter()
            await client.post("/v1/runs", spawn_body("quick"))
            taken.append(time.perf_counter() - began)

    async with AsyncClient(socket) as client:
        began = time.perf_counter()
        await asyncio.gather(*(spawner(client) for _ in range(spawners)))
        return taken, time.perf_counter() - began


def measure(home: Path, *, runs: int, spawners: int) -> dict[str, float]:
    """p50 and p99 of spawns and of ``status`` in milliseconds, and spawns per second."""
    make_home(home)
    context = multiprocessing.get_context("spawn")
    with serving(home) as daemon:
        with daemon.client() as client:
            live, ended = daemon.spawn(client, "hang"), daemon.spawn(client, "quick")
            client.post("/v1/wait", {"runIds": [ended], "until": "all", "timeoutSeconds": 10})
        asks, stop = context.Event(), context.Event()
        receiving, sending = context.Pipe(duplex=False)
        arguments = (str(daemon.socket), [live, ended], asks, stop, sending)
        prober = context.Process(target=_probe, args=arguments)
        prober.start()
        asks.wait(30)  # the prober is asking before the burst begins
        try:
            taken, took_s = asyncio.run(_burst(daemon.socket, runs=runs, spawners=spawners))
        finally:
            stop.set()
        asked = receiving.recv() if receiving.poll(10) else []
        prober.join(10)
    spawn, status = percentiles(taken), percentiles(asked)
    return {
        "spawn_p50": spawn.p50_ms,
        "spawn_p99": spawn.p99_ms,
        "status_p50": status.p50_ms,
        "status_p99": status.p99_ms,
        "spawns_per_s": runs / took_s,
    }
