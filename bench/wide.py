"""(i): one run with many others beside it, in one process: children, a fan-in, a chain.

A scripted parent spawns scripted children in groups, waits for each group and takes over what came
of it, as a worker does with its tools. A fan-in is one run that depends on many earlier ones. What
counts is the processor time of the loop per child, and of the thread that commits, which is apart:
it may depend on what is open, but not on how many children came before.
"""

import asyncio
import gc
import time
from pathlib import Path
from typing import Final

from bench.lifecycle import READER, REQUESTER, WAIT_S, engine_on
from subagents.config.settings import Agent, AgentSubagents, Settings, SubagentDefaults
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.spec import OnDependencyFailure, RunSpec
from subagents.domain.run.values import RunId, SessionKey
from subagents.engine.engine import Engine
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.store.sqlite.sqlite_store import SqliteStore

GROUP: Final = 100
"""So many children are under way at once."""
DONE: Final[tuple[dict[str, object], ...]] = (
    {"usage": {"tokensIn": 10, "costUsd": 0.01}},
    {"result": "done"},
)
HANGS: Final[tuple[dict[str, object], ...]] = ({"hang": True},)
SETTINGS: Final = Settings(
    defaults=SubagentDefaults(
        max_children_per_agent=100_000, max_concurrent=100_000, max_spawn_depth=1_000
    ),
    agents={
        "main": Agent(runtime="scripted", script=DONE),
        "lead": Agent(
            runtime="scripted", script=HANGS, subagents=AgentSubagents(allow_agents=("*",))
        ),
    },
)


class Spent:
    """The processor time since it was made, of the loop's thread and of all."""

    def __init__(self) -> None:
        gc.collect()
        self._loop, self._all = time.thread_time(), time.process_time()

    def each_us(self, number: int) -> tuple[float, float]:
        """Microseconds for each of so many: of the loop, and of all threads."""
        loop, everything = time.thread_time() - self._loop, time.process_time() - self._all
        return loop / number * 1e6, everything / number * 1e6


async def _until(engine: Engine, run_id: RunId, phase: Phase) -> Run:
    async with asyncio.timeout(WAIT_S):
        while (run := await engine.queries.run(run_id)).phase is not phase:  # noqa: ASYNC110  nothing tells of a phase
            await asyncio.sleep(0.001)
    return run


async def _spawn(
    engine: Engine, session: SessionKey, number: int, agent: str | None = "main", **spec: object
) -> list[RunId]:
    receipts = await asyncio.gather(
        *(
            engine.spawner.spawn(
                RunSpec(task="t", agent_id=agent, **spec),  # type: ignore[arg-type]
                SpawnContext(session=session, settings=SETTINGS, cwd="/"),
            )
            for _ in range(number)
        )
    )
    return [receipt.run.id for receipt in receipts]


async def _take(engine: Engine, session: SessionKey, ids: list[RunId]) -> None:
    found = await engine.mailbox.wait(
        ids, session=session, until="all", timeout_s=WAIT_S, reader=READER
    )
    assert len(found.completed) == len(ids), found
    await engine.mailbox.acknowledge(found.offered, reader=READER)


async def children(engine: Engine, number: int) -> dict[str, float]:
    """One parent with so many children."""
    (parent,) = await _spawn(engine, REQUESTER, 1, "lead")
    session = (await _until(engine, parent, Phase.RUNNING)).session_key
    spent = Spent()
    for start in range(0, number, GROUP):
        ids = await _spawn(engine, session, min(GROUP, number - start))
        await _take(engine, session, ids)
    loop, everything = spent.each_us(number)
    assert len((await engine.queries.run(parent)).children) == number
    await engine.control.cancel(parent, by="bench", reason=None)
    await _take(engine, REQUESTER, [parent])
    return {"loop_us": loop, "all_us": everything}


async def fan_in(engine: Engine, number: int) -> dict[str, float]:
    """One run that waits for so many others, which wait for one."""
    (gate,) = await _spawn(engine, REQUESTER, 1, "lead")
    await _until(engine, gate, Phase.RUNNING)
    spent = Spent()
    ids: list[RunId] = []
    for start in range(0, number, GROUP):
        ids += await _spawn(
            engine,
            REQUESTER,
            min(GROUP, number - start),
            depends_on=(gate,),
            on_dependency_failure=OnDependencyFailure.RUN,
        )
    (last,) = await _spawn(engine, REQUESTER, 1, depends_on=tuple(ids))
    await engine.control.cancel(gate, by="bench", reason=None)
    for start in range(0, number, GROUP):
        await _take(engine, REQUESTER, ids[start : start + GROUP])
    await _take(engine, REQUESTER, [last])
    loop, everything = spent.each_us(number)
    return {"loop_us": loop, "all_us": everything}


async def chain(engine: Engine, depth: int) -> dict[str, float]:
    """Runs below each other, ended from above."""
    spent, ids = Spent(), []
    session = REQUESTER
    for _ in range(depth):
        ids += await _spawn(engine, session, 1, "lead")
        session = (await _until(engine, ids[-1], Phase.RUNNING)).session_key
    await engine.control.cancel(ids[0], by="bench", reason=None)
    await _take(engine, REQUESTER, ids[:1])
    loop, everything = spent.each_us(depth)
    return {"loop_us": loop, "all_us": everything}


SHAPES: Final = {"children": children, "fan_in": fan_in, "chain": chain}


async def _measure(store: SqliteStore, shape: str, number: int) -> dict[str, float]:
    engine = engine_on(store, SETTINGS)
    await engine.start()
    try:
        await SHAPES[shape](engine, 5)  # imports, threads, statements
        return await SHAPES[shape](engine, number)
    finally:
        await engine.stop()


def measure(database: Path, *, shape: str, number: int) -> dict[str, float]:
    """Microseconds of processor time per child, dependency or level, into a new ``database``."""
    return asyncio.run(_measure(SqliteStore(database), shape, number))
