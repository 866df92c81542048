"""How many files and rows an ended run leaves, and that nothing is left of one that was pruned."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from subagents.config.layers import load
from subagents.config.paths import Paths
from subagents.config.settings import Retention
from subagents.domain.run.run import Run
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import SessionKey, replace
from subagents.engine.engine import Engine
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.wiring import build_node

ME: Final = SessionKey("agent:main:main")
RUNS: Final = 5

ATTEMPT: Final = 3
"""The run's directory, the attempt's, and its claim."""
TRANSCRIPT: Final = 2
"""The run's directory, and its lines."""
PER_RUN: Final = ATTEMPT + TRANSCRIPT
"""Of a command that ended and was handed over; this may only become less."""
OF_THE_HOME: Final = {"attempts", "transcripts", "results", "progress", "worktrees"}
EMPTIED: Final = {"run", "journal", "inbox", "lease"}


def entries(state: Path) -> int:
    """Files and directories of runs, at any depth."""
    found = (each for name in OF_THE_HOME for each in (state / name).rglob("*"))
    return sum(1 for _ in found)


async def handed_over(engine: Engine, cwd: Path) -> list[Run]:
    """Runs of ours that ended, were read and are over."""
    settings = load(None, os.environ, paths=Paths.resolve({"SUBAGENTS_HOME": str(cwd)})).settings
    receipts = [
        await engine.spawner.spawn(
            RunSpec(task=f"echo {number}; echo no >&2", agent_id="command"),
            SpawnContext(session=ME, settings=settings, cwd=str(cwd)),
        )
        for number in range(RUNS)
    ]
    ids = [receipt.run.id for receipt in receipts]
    found = await engine.mailbox.wait(ids, session=ME, until="all", timeout_s=30, reader="me")
    await engine.mailbox.acknowledge(found.offered, reader="me")
    async with asyncio.timeout(30):
        while engine.queries.open_runs:  # noqa: ASYNC110 - no event says so
            await asyncio.sleep(0.01)
    return list(found.completed)


@pytest.mark.requirement("retention:files-per-run", "retention:nothing-left")
def test_an_ended_run_leaves_few_files_and_a_pruned_one_nothing(tmp_path: Path) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    paths.ensure()
    config = load(None, {}, paths=paths)
    none = Retention(result_retention_days=-1)
    defaults = replace(config.settings.defaults, archive_after_minutes=-1)
    settings = replace(config.settings, retention=none, defaults=defaults)
    node = build_node(paths, replace(config, settings=settings))

    async def play() -> tuple[int, int]:
        await node.engine.start()
        try:
            ended = await handed_over(node.engine, tmp_path)
            assert [run.result for run in ended] == [str(number) for number in range(RUNS)]
            left = entries(paths.state_dir)
            for _ in range(2):
                await node.engine.sweep.once()
            return left, entries(paths.state_dir)
        finally:
            await node.engine.stop()
            node.close()

    left, after = asyncio.run(play())
    with closing(sqlite3.connect(paths.database)) as connection:
        rows = [connection.execute(f"SELECT 1 FROM {name}").fetchone() for name in EMPTIED]  # noqa: S608

    assert left <= RUNS * PER_RUN
    assert after == 0
    assert rows == [None] * len(EMPTIED)
