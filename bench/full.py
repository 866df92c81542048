"""(f): a database that already holds many finished runs, made of copies of really finished ones."""

import asyncio
import sqlite3
from itertools import count
from pathlib import Path
from typing import Final

from bench import lifecycle
from subagents.config.settings import Settings
from subagents.domain.run.values import RunId, replace
from subagents.engine.kernel.system_clock import RandomIds
from subagents.extensions.track_record.track_record_files import PerformanceFiles
from subagents.ports import RunFilter
from subagents.store.sqlite.sqlite_store import SqliteStore

TEMPLATE_RUNS: Final = 1_000
HOUR_MS: Final = 3_600_000
OLDEST_MS: Final = 20 * 24 * HOUR_MS
"""Less than what is kept: nothing is pruned while it is measured."""

_COPY: Final = {
    "run": """INSERT INTO run
              SELECT NULL, {id}, seq, phase, label, agent_id, requester, requester_run,
              {replaced_session_key}, is_over, keeps_session, created_at_ms - ?3,
              ended_at_ms - ?3, archived_at_ms - ?3, {blob_origin}, {blob_state}, NULL, NULL,
              directory, tags, outcome, plan, NULL FROM run
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


def fill(database: Path, *, runs: int, records: Path | None = None) -> int:
    """Make ``database`` hold ``runs`` finished runs; returns its size in bytes.

    A template of really finished runs is copied under new ids, every text with the id in it, some
    time earlier each time: the same rows, sizes and index entries as if all had been run. Every
    second one is archived.

    Args:
        database: Not there yet.
        runs: In all.
        records: The directory of their track records; None = where ``lifecycle`` has it.
    """
    records = records or lifecycle.records_of(database)
    settings = lifecycle.settings_for(({"result": "done"},))
    asyncio.run(_make_template(database, settings, min(TEMPLATE_RUNS, runs), records))
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
        (newest,) = connection.execute("SELECT max(number) FROM journal").fetchone()
    finally:
        connection.close()
    _copy_records(PerformanceFiles(records), copies, newest)
    return database.stat().st_size


async def _make_template(database: Path, settings: Settings, runs: int, records: Path) -> None:
    engine = lifecycle.engine_on(SqliteStore(database), settings, records)
    await engine.start()
    try:
        await lifecycle.run_through(engine, settings, runs)
        for run in (await engine.queries.runs(RunFilter(limit=runs)))[::2]:
            await engine.control.archive(run.id)
    finally:
        await engine.stop()


class _EverySecond:
    """A clock on which a second passes with every look."""

    def __init__(self) -> None:
        self._seconds = count()

    def now_ms(self) -> int:
        return next(self._seconds) * 1_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _copies(templates: list[str], wanted: int) -> list[tuple[str, str, int]]:
    """Of each copy the template, its own id, and how much older it is, in milliseconds."""
    # One second after the other, so that they lie as evenly in the indexes as in a year's runs.
    ids, rounds = RandomIds(_EverySecond()), 1 + wanted // len(templates)
    step_ms = min(HOUR_MS, OLDEST_MS // rounds)
    return [
        (templates[number % len(templates)], ids.run_id(), (1 + number // len(templates)) * step_ms)
        for number in range(wanted)
    ]


def _copy_records(log: PerformanceFiles, copies: list[tuple[str, str, int]], newest: int) -> None:
    """Their track records are kept as well, up to the newest event, as in any database."""
    known = {record.run_id: record for day in log.sizes() for record in log.read(day, offset=0)[0]}
    log.append(
        [
            replace(
                known[RunId(template)],
                run_id=RunId(run_id),
                started_at=known[RunId(template)].started_at - age_ms,
                ended_at=known[RunId(template)].ended_at - age_ms,
            )
            for template, run_id, age_ms in copies
        ]
    )
    log.keep_mark(newest)


def _expanded(statement: str) -> str:
    """Put SQL that swaps the template's id for the copy's into the marked places."""
    found = {"id": "?2"}
    for column in ("session_key", "key", "message_id", "text"):
        found[f"replaced_{column}"] = f"replace({column}, ?1, ?2)"
    for column in ("origin", "state", "data"):
        found[f"blob_{column}"] = f"CAST(replace(CAST({column} AS TEXT), ?1, ?2) AS BLOB)"
    return statement.format(**found)
