"""A new database, with what can be read of a damaged one and of the runs' files."""

import asyncio
from pathlib import Path

from subagents.api.calls.services import wall_ms
from subagents.config.paths import Paths
from subagents.engine.kernel.system_clock import RandomIds, SystemClock
from subagents.engine.kernel.threads import DaemonThreads
from subagents.extensions.repair.repairs import Repair, apply_repairs
from subagents.extensions.repair.run_remains import records_in, remains_of, runs_with_files
from subagents.extensions.repair.salvage import salvage
from subagents.store.sqlite.sqlite_store import SqliteStore


def rebuild_database(paths: Paths, new: Path, *, is_cut: bool = False) -> list[Repair]:
    """Write a new database with what can be read of this home's, and of its runs' files.

    Args:
        paths: Nobody uses its database meanwhile (``StoreFile.locked``).
        new: A file that is not there yet, in a directory of its own.
        is_cut: What was committed last is missing from its log.

    Returns:
        The runs whose record is not what was committed, with what was done about each.

    Raises:
        OSError: The disk is full, or a file cannot be read.
        sqlite3.Error, SubagentsError: The new database cannot be written.
    """
    found = salvage(paths.database, new, runs_with_files(paths.belongings), is_cut=is_cut)
    records = records_in(paths.state_dir)
    repairs = []
    for each in found:
        remains = remains_of(
            each.run_id,
            attempts=paths.attempts_dir,
            transcripts=paths.transcripts_dir,
            record=records.get(each.run_id),
        )
        text = f"{each.found}{remains.words() if each.is_lost else ''}"
        if each.told is not None:
            text += f"; the announcement of its end is:\n{each.told}"
        made_up = None
        if not each.is_known:
            made_up = remains.spawned(each.run_id, requester=each.requester, now_ms=wall_ms())
        repairs.append(Repair(each.run_id, text, made_up, each.is_lost, each.is_told))
    threads = DaemonThreads("store")
    try:
        store = SqliteStore(new)
        clock = SystemClock()
        asyncio.run(apply_repairs(store, threads, clock, RandomIds(clock), repairs))
    finally:
        threads.close()
    return repairs
