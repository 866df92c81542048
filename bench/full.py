"""(f): a database that already holds many finished runs, made of copies of really finished ones."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench import lifecycle
from subagents.engine.kernel.system_clock import RandomIds

TEMPLATE_RUNS: Final = 1_000
HOUR_MS: Final = 3_600_000

_COPY: Final = {
    "run": """INSERT INTO run
              SELECT NULL, {id}, seq, phase, label, agent_id, requester, requester_run,
              {replaced_session_key}, is_over, keeps_session, created_at_ms - ?3,
              ended_at_ms - ?3, archived_at_ms, {blob_origin}, {blob_state}, NULL, NULL,
              directory, tags, outcome, plan FROM run
              WHERE run_id = ?1""",
    "journal": """INSERT INTO journal
                  SELECT NULL, (SELECT number FROM run WHERE run_id = ?2), {id}, seq,
                  at_ms - ?3, type, {replaced_key}, {blob_data}, NULL FROM journal
                  WHERE run = (SELECT number FROM run WHERE run_id = ?1)""",
    "inbox": """INSERT INTO inbox SELECT NULL, {replaced_message_id}, session_key, {id}, kind,
                created_at_ms - ?3, {replaced_text}, consumed_at_ms - ?3, consumed_by,
                NULL, NULL, NULL FROM inbox
                WHERE run_id = ?1""",
}


def fill(database: Path, *, runs: int) -> int:
    """Make ``database`` hold ``runs`` finished runs; returns its size in bytes.

    A template of really finished runs is copied under new ids, every text with the id in it, an
    hour earlier each time: the same rows, sizes and index entries as if all had been run.
    """
    lifecycle.measure(database, runs=TEMPLATE_RUNS)
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -400000")
        connection.execute("BEGIN")
        templates = [run_id for (run_id,) in connection.execute("SELECT run_id FROM run")]
        copies = list(_copies(templates, runs - len(templates)))
        for statement in _COPY.values():
            connection.executemany(_expanded(statement), copies)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (found,) = connection.execute("SELECT count(*) FROM run").fetchone()
        assert found == runs, found
    finally:
        connection.close()
    return database.stat().st_size


def _copies(templates: list[str], wanted: int) -> Iterator[tuple[str, str, int]]:
    ids = RandomIds()
    for number in range(wanted):
        age_ms = (1 + number // len(templates)) * HOUR_MS
        yield templates[number % len(templates)], ids.run_id(), age_ms


def _expanded(statement: str) -> str:
    """Put SQL that swaps the template's id for the copy's into the marked places."""
    found = {"id": "?2"}
    for column in ("session_key", "key", "message_id", "text"):
        found[f"replaced_{column}"] = f"replace({column}, ?1, ?2)"
    for column in ("origin", "state", "data"):
        found[f"blob_{column}"] = f"CAST(replace(CAST({column} AS TEXT), ?1, ?2) AS BLOB)"
    return statement.format(**found)
