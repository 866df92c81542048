"""(a) and (f): runs through their whole life in one process, with the runtime ``scripted``.

Spawned → slot granted → attempt started → result seen → exit seen → delivery settled → cleaned up
→ announcement consumed: eight journaled events, six of them between the spawn and the consumption.
All runs are spawned at once; the clock stops when every announcement is durably consumed and every
run is over on disk.
"""

import asyncio
import atexit
import os
import pickle
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from subagents.config.paths import Paths
from subagents.config.settings import Agent, Settings, SubagentDefaults
from subagents.domain.run.run import Run
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import SessionKey
from subagents.engine.engine import Adapters, Engine
from subagents.engine.kernel.system_clock import RandomIds, SystemClock
from subagents.engine.kernel.threads import DaemonThreads
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.engine.verification.verifier import Verifier
from subagents.ports import Batch, RunFilter, RunLogs
from subagents.process_tuning import SWITCH_S, calm_collector
from subagents.runtimes.scripted import ScriptedRuntime
from subagents.store.allowed_call_file import AllowedCallFile
from subagents.store.environment_files import EnvironmentFiles
from subagents.store.progress_files import ProgressFiles
from subagents.store.result_files import ResultFiles
from subagents.store.sqlite.sqlite_store import SqliteStore
from subagents.store.transcripts.transcript_files import TranscriptFiles

REQUESTER: Final = SessionKey("agent:main:main")
READER: Final = "bench"
FILES: Final = Path(tempfile.gettempdir()) / f"subagents-bench-{os.getpid()}"
"""What engines write beside the database; it goes with this process."""
atexit.register(shutil.rmtree, FILES, ignore_errors=True)
WAIT_RUNS: Final = 1_000
WAIT_S: Final = 60.0

EVENTS: Final = 8

Statement = tuple[str, list[tuple[object, ...]]]
"""One SQL statement and the rows it was executed with."""


class _Listener(sqlite3.Connection):
    """Keeps what it is asked to write instead of writing it."""

    statements: list[Statement]

    def executemany(self, sql: str, parameters: Iterable[object], /) -> sqlite3.Cursor:
        rows = [row for row in parameters if isinstance(row, tuple)]
        if rows:
            self.statements.append((sql, rows))
        return self.cursor()


class RecordingStore(SqliteStore):
    """The real store, which also keeps every statement of every commit with its rows."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.commits: list[list[Statement]] = []
        self._asked: sqlite3.Connection | None = None
        self._listener = sqlite3.connect(":memory:", factory=_Listener, check_same_thread=False)

    def close(self) -> None:
        super().close()
        self._listener.close()

    def _write(self, connection: sqlite3.Connection, batch: Batch) -> int:
        self._asked = connection
        self._listener.statements = []
        super()._write(self._listener, batch)
        self.commits.append(self._listener.statements)
        return super()._write(connection, batch)

    def _newest(self, connection: sqlite3.Connection, name: str) -> int:
        # The listener only listens: it has no tables to read from.
        return super()._newest(self._asked or connection, name)


def settings_for(script: tuple[dict[str, object], ...], *, slots: int = 10_000) -> Settings:
    """One scripted agent, and limits that nothing here meets."""
    return Settings(
        defaults=SubagentDefaults(max_children_per_agent=100_000, max_concurrent=slots),
        agents={"main": Agent(runtime="scripted", script=script)},
    )


def records_of(database: Path) -> Path:
    """Where the track records of its runs are."""
    return database.with_name(f"{database.name}-records")


def engine_on(store: SqliteStore, settings: Settings, records: Path | None = None) -> Engine:
    """An engine as the daemon has it, without its servers.

    Args:
        store: Not opened yet.
        settings: Of the daemon.
        records: The directory of the track records; None = one that goes with this process.
    """
    clock = SystemClock()
    verifier = Verifier(DaemonThreads("verify"), clock, commands_allowed=False)
    return Engine(
        Adapters(
            store=store,
            runtimes={"scripted": ScriptedRuntime(clock)},
            couriers={},
            clock=clock,
            ids=RandomIds(clock),
            off_loop=DaemonThreads("store"),
            verifier=verifier,
            settings=settings,
            logs=RunLogs(
                allowed_calls=AllowedCallFile(Paths.resolve({"SUBAGENTS_HOME": str(FILES)})),
                environments=EnvironmentFiles(FILES / "environments"),
                progress=ProgressFiles(FILES / "progress"),
                results=ResultFiles(FILES / "results"),
                transcripts=TranscriptFiles(FILES / "transcripts"),
            ),
            state_dir=records or FILES / "performance",
            owner="bench",
        )
    )


async def run_through(engine: Engine, settings: Settings, runs: int) -> float:
    """Take ``runs`` runs from spawn to consumed; returns the seconds it took.

    Raises:
        RuntimeError: A run did not end in time.
    """
    began = time.perf_counter()
    context = SpawnContext(session=REQUESTER, settings=settings, cwd="/")
    receipts = await asyncio.gather(
        *(engine.spawner.spawn(RunSpec(task=f"task {i}"), context) for i in range(runs))
    )
    ids = [receipt.run.id for receipt in receipts]
    ended: list[Run] = []
    for start in range(0, runs, WAIT_RUNS):
        found = await engine.mailbox.wait(
            ids[start : start + WAIT_RUNS],
            session=REQUESTER,
            until="all",
            timeout_s=WAIT_S,
            reader=READER,
        )
        if found.pending or found.missing:
            raise RuntimeError(f"{len(found.pending)} runs did not end within {WAIT_S} s")
        await engine.mailbox.acknowledge(found.offered, reader=READER)
        ended += found.completed
    async with asyncio.timeout(WAIT_S):
        # The last ones are still being cleaned up; what is over on disk leaves memory.
        while engine.queries.open_runs:  # noqa: ASYNC110 - the engine has no event for "nothing is open"
            await asyncio.sleep(0.001)
    took = time.perf_counter() - began
    assert len(ended) == runs
    return took


async def _measure(store: SqliteStore, runs: int, records: Path | None = None) -> dict[str, float]:
    settings = settings_for(({"result": "done"},))
    engine = engine_on(store, settings, records)
    sys.setswitchinterval(SWITCH_S)
    await engine.start()
    try:
        await run_through(engine, settings, min(runs, 50))  # imports, threads, statements
        calm_collector()
        took = await run_through(engine, settings, runs)
        newest = (await engine.queries.runs(RunFilter(limit=1, archived=True)))[0]
        assert newest.seq == EVENTS, newest
    finally:
        await engine.stop()
    return {"runs_per_s": runs / took}


def measure(database: Path, *, runs: int) -> dict[str, float]:
    """Runs per second, into ``database`` (new, or with whatever it has)."""
    return asyncio.run(_measure(SqliteStore(database), runs, records_of(database)))


def record(database: Path, recording: Path, *, runs: int) -> None:
    """Do the same once and keep what was written, commit by commit, in ``recording``."""
    store = RecordingStore(database)
    asyncio.run(_measure(store, runs))
    recording.write_bytes(pickle.dumps(store.commits))
