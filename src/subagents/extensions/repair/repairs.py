"""Runs whose record a repair made again: what is said of them, and how those end that cannot go on.

Through the ledger, as everything that changes a run: parents, dependants and requesters hear of it
in the same commit. No engine is at work meanwhile.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from subagents.domain.run.events import Repaired, Spawned
from subagents.domain.run.outcome import DeliveryPath, Outcome, Reason, Status
from subagents.domain.run.values import RunId
from subagents.engine.kernel.ledger import Ledger
from subagents.ports import EngineClock, Ids, OffLoop, Store

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
