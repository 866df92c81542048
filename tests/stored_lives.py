"""A real store into which the lives of runs are written as the ledger would."""

from pathlib import Path

from tests.builders import Life

from subagents.domain.run.values import RunId
from subagents.ports import Batch, JournalEntry
from subagents.store.sqlite.sqlite_store import SqliteStore


class StoredLives:
    """For those that follow the journal."""

    def __init__(self, root: Path) -> None:
        self.store = SqliteStore(root / "subagents.db", synchronous="OFF")
        self.store.open("me")
        self._known: dict[RunId, int] = {}

    def write(self, life: Life) -> RunId:
        """What happened to the run since it was last written."""
        run = life.run
        known = self._known.get(run.id, 0)
        entries = [
            JournalEntry(run_id=run.id, seq=seq, at_ms=event.at_ms, event=event)
            for seq, event in enumerate(life.journal, 1)
        ]
        created = set() if known else {run.id}
        self.store.commit(Batch(runs={run.id: run}, created=created, journal=entries[known:]))
        self._known[run.id] = len(entries)
        return run.id
