"""What one run costs the store, counted: these bounds may only shrink."""

import asyncio
import sqlite3
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from bench.lifecycle import RecordingStore, engine_on, run_through, settings_for


class Written(NamedTuple):
    """Of each run."""

    rows: dict[str, float]
    """By the first words of their statement."""
    wal_bytes: float


class CountingStore(RecordingStore):
    """Its log grows with every page that is written, and is never begun anew."""

    def _connect(self) -> sqlite3.Connection:
        connection = super()._connect()
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        return connection


def written(path: Path, *, runs: int, together: int) -> Written:
    """By so many runs through their whole life, so many at a time."""
    store, log = CountingStore(path), path.with_name(f"{path.name}-wal")

    async def live() -> int:
        settings = settings_for(({"result": "done"},))
        engine = engine_on(store, settings)
        await engine.start()
        before = log.stat().st_size
        try:
            for _ in range(runs // together):
                await run_through(engine, settings, together)
            return log.stat().st_size - before
        finally:
            await engine.stop()

    wal_bytes = asyncio.run(live())
    rows: Counter[str] = Counter()
    for sql, found in (each for commit in store.commits for each in commit):
        rows[" ".join(sql.split("(", maxsplit=1)[0].split()[:3])] += len(found)
    return Written({name: count / runs for name, count in rows.items()}, wal_bytes / runs)


@pytest.mark.requirement("store:lean")
def test_a_run_among_many_writes_few_rows_and_little_log(tmp_path: Path) -> None:
    found = written(tmp_path / "db", runs=300, together=300)

    assert sum(found.rows.values()) <= 12, found.rows
    assert found.wal_bytes <= 10_300


@pytest.mark.requirement("store:lean")
def test_a_run_alone_writes_few_pages(tmp_path: Path) -> None:
    found = written(tmp_path / "db", runs=20, together=1)

    assert sum(found.rows.values()) <= 12, found.rows
    assert found.wal_bytes <= 155_000
