"""A database that a test may look into, and batches as the engine makes them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Protocol

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.events import Event, Prioritized, SlotGranted
from subagents.domain.run.run import Run
from subagents.extensions.testing.stored_values import NOW_MS, entry
from subagents.ports import Batch, Store
from subagents.store.open_runs import asked_for


class RowPlace(Protocol):
    """One database, however it is reached; see also ``conformance.StorePlace``."""

    def store(self) -> Store:
        """Return another store object on this database, not opened yet."""
        ...

    def lose_lock(self) -> None: ...

    def execute(self, sql: str, *parameters: object) -> int:
        """Change it behind the store's back, as a bad disk would; how many rows were changed."""
        ...

    def asked(self, sql: str, *parameters: object) -> list[tuple[object, ...]]:
        """What is in it."""
        ...


@contextmanager
def opened(place: RowPlace) -> Iterator[Store]:
    with closing(place.store()) as store:
        store.open("test")
        yield store


def changed(run: Run, *, times: int = 1) -> tuple[Run, Batch]:
    """The run after so many events, and the batch that has them."""
    batch = Batch()
    for _ in range(times):
        event = Prioritized(at_ms=NOW_MS, by="me", priority=run.seq)
        run = reduce(run, event).run
        batch.journal.append(entry(run, seq=run.seq, event=event))
    batch.runs[run.id] = run
    return run, batch


def happened(run: Run, event: Event, *, key: str | None = None) -> tuple[Run, Batch]:
    """The run after an event, and the batch that the engine makes of it."""
    step = reduce(run, event)
    batch = Batch(runs={run.id: step.run}, outbox=[*asked_for(step)])
    batch.journal.append(entry(step.run, seq=step.run.seq, event=event, key=key))
    return step.run, batch


def granted(run: Run) -> tuple[Run, Batch]:
    """It is to be started."""
    return happened(run, SlotGranted(at_ms=NOW_MS, session_key=run.session.first_key))
