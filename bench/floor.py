"""The floor of (a): exactly the rows that the engine wrote, in the same commits, and no logic.

Every statement of a real run was kept with its rows (``lifecycle.record``). They are executed
again on an empty database with the same schema, indexes and pragmas. What is left is what SQLite
and the disk cost; nothing that stores the same can be faster.
"""

import gc
import pickle
import sqlite3
import time
from pathlib import Path

from bench.lifecycle import RecordingStore, Statement


class _Replay(RecordingStore):
    """For its connection: opened and migrated by the real store."""

    def replay(self, commits: list[list[Statement]]) -> float:
        return replay(self._require_writer(), commits)


def replay(connection: sqlite3.Connection, commits: list[list[Statement]]) -> float:
    """Execute them, each in a transaction; returns the seconds it took."""
    began = time.perf_counter()
    for statements in commits:
        connection.execute("BEGIN IMMEDIATE")
        for sql, rows in statements:
            connection.executemany(sql, rows)
        connection.execute("COMMIT")
    return time.perf_counter() - began


def measure(database: Path, recording: Path, *, runs: int) -> dict[str, float]:
    """Runs per second; ``recording`` holds the commits of ``runs`` runs and some for warming up."""
    commits: list[list[Statement]] = pickle.loads(recording.read_bytes())  # noqa: S301 - written by the round before
    gc.collect()
    gc.disable()
    store = _Replay(database)
    store.open("bench")
    try:
        took = store.replay(commits)
    finally:
        store.close()
    return {"runs_per_s": runs / took, "commits": len(commits)}
