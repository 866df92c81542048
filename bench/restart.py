"""(d): a daemon that finds 10,000 open runs: from starting its process until it answers.

Half of the runs wait for one that has not ended, half are queued behind it in a lane of one slot.
The socket is opened after everything is loaded, so the first answer means all are there; that they
are is checked afterwards.
"""

import asyncio
from pathlib import Path

from bench.daemon import make_home, paths_of, serving
from bench.lifecycle import REQUESTER, engine_on, settings_for
from subagents.domain.run.spec import BATCH_RUNS_MAX, RunSpec
from subagents.engine.runs.spawn_call import RunAsked, SpawnContext
from subagents.store.sqlite.sqlite_store import SqliteStore


async def _fill(database: Path, runs: int) -> None:
    settings = settings_for(({"hang": True},), slots=1)
    engine = engine_on(SqliteStore(database), settings)
    await engine.start()
    try:
        # The first one gets the slot and is lost with this process; the next one then holds it.
        for _ in range(2):
            first = RunSpec(task="hold the only slot")
            receipt = await engine.spawner.spawn(
                first, SpawnContext(session=REQUESTER, settings=settings, cwd="/")
            )
        waiting = RunSpec(task="work", chain_after=receipt.run.id)
        specs = [RunSpec(task="work"), waiting] * (runs // 2)
        for start in range(0, len(specs), BATCH_RUNS_MAX):
            part = specs[start : start + BATCH_RUNS_MAX]
            await engine.spawner.spawn_batch(
                [RunAsked(spec=each) for each in part],
                SpawnContext(session=REQUESTER, settings=settings, cwd="/"),
            )
    finally:
        await engine.stop()


def fill(home: Path, *, runs: int) -> None:
    """A home whose database holds ``runs`` open runs."""
    make_home(home, slots=1)
    asyncio.run(_fill(paths_of(home).database, runs))


def measure(home: Path, *, runs: int) -> dict[str, float]:
    """Seconds until the daemon of ``home`` answers with all its runs in memory."""
    with serving(home) as daemon, daemon.client() as client:
        found = client.get("/v1/diagnostics", timeout_s=60)
        open_runs = found["openRuns"]
        assert isinstance(open_runs, int)
        assert open_runs >= runs, found
    return {"seconds": daemon.ready_s, "open_runs": open_runs}
