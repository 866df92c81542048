"""Runs whose record a repair made again: what is said of them, and how those end that cannot go on.

Through the ledger, as everything that changes a run: parents, dependants and requesters hear of it
in the same commit. No engine is at work meanwhile.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from subagents.api.calls.services import wall_ms
from subagents.config.paths import Paths
from subagents.domain.run.events import Repaired, Spawned
from subagents.domain.run.outcome import DeliveryPath, Outcome, Reason, Status
from subagents.domain.run.values import RunId
from subagents.engine.kernel.ledger import Ledger
from subagents.engine.kernel.system_clock import RandomIds, SystemClock
from subagents.engine.kernel.threads import DaemonThreads
from subagents.extensions.repair.run_remains import records_in, remains_of, runs_with_files
from subagents.extensions.repair.salvage import salvage
from subagents.ports import EngineClock, Ids, OffLoop, Store
from subagents.store.sqlite.sqlite_store import SqliteStore

READER: Final = "subagents db repair"
AT_ONCE: Final = 200
"""Runs in one commit."""


class Repair(NamedTuple):
    """One run."""

    run_id: RunId
    found: str
    """What was damaged, and what its record is made from."""
    spawned: Spawned | None = None
    """Made up for a run that has no record; None = it has one."""
    is_lost: bool = False
    """It ends here, if its record says no end."""
    is_told: bool = False
    """Nobody is told of its end (again)."""


async def apply_repairs(
    store: Store, off_loop: OffLoop, clock: EngineClock, ids: Ids, repairs: Iterable[Repair]
) -> None:
    """Put them on record in a database that nobody uses.

    Raises:
        AlreadyRunning, CorruptState, StoreUnavailable: It cannot be used.
    """
    # What may start is started by the next daemon, after it looked at what still runs.
    ledger = Ledger(store, off_loop, clock, ids, lease_ms=0, may_start=lambda _run: False)
    epoch = await off_loop(lambda: store.open(READER))
    try:
        await ledger.load(READER, epoch)
        writing = asyncio.ensure_future(ledger.run())
        for number, each in enumerate(repairs, start=1):
            await _apply(ledger, each, clock.now_ms())
            if number % AT_ONCE == 0:
                await ledger.committed()
        await ledger.committed()
        writing.cancel()
    finally:
        await off_loop(store.close)


async def _apply(ledger: Ledger, repair: Repair, at_ms: int) -> None:
    if repair.spawned is not None:
        ledger.apply_now(repair.run_id, repair.spawned)
    else:
        await ledger.load_run(repair.run_id)
    lost = Outcome(status=Status.LOST, reason=Reason.RECORD_LOST, error=repair.found)
    event = Repaired(at_ms=at_ms, found=repair.found, outcome=lost if repair.is_lost else None)
    run = ledger.apply_now(repair.run_id, event)
    if repair.is_told and run.is_settled:
        ledger.consume(run, reader=READER, path=DeliveryPath.PULLED)


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
