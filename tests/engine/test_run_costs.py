"""What a run's whole life costs the engine's loop, counted: no clock is asked."""

import asyncio
import cProfile
import pstats
import sys
from pathlib import Path

import pytest
from bench.lifecycle import engine_on, run_through, settings_for

from subagents.engine.runs import disk_probes
from subagents.store.sqlite.sqlite_store import SqliteStore

RUNS = 500
CALLS_MAX = 1_130
"""Of Python functions and builtins, on the loop's thread; it rises only for a promise. Counted by
Python 3.11, our floor: later ones count a quarter more for the same.
"""


async def _calls_per_run(database: Path) -> float:
    settings = settings_for(({"result": "done"},))
    engine = engine_on(SqliteStore(database), settings)
    await engine.start()
    try:
        await run_through(engine, settings, 50)  # what is found once: statements, types, settings
        profile = cProfile.Profile()
        profile.enable()
        await run_through(engine, settings, RUNS)
        profile.disable()
    finally:
        await engine.stop()
    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]  # not in typeshed
    return calls / RUNS


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="calls are counted with Python 3.11")
@pytest.mark.requirement("speed:calls-per-run")
def test_a_run_from_spawn_to_consumption_costs_the_loop_no_more_calls_than_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a machine that is busy enough the disk would be looked at again in between.
    monkeypatch.setattr(disk_probes, "PROBE_MS", 600_000)
    monkeypatch.setattr(disk_probes, "PROBE_MS_MAX", 600_000)
    # It also writes in smaller groups there, which costs calls: the least of three counts.
    counts = (asyncio.run(_calls_per_run(tmp_path / f"{each}.db")) for each in range(3))
    assert any(each <= CALLS_MAX for each in counts)
