"""Which rows of open runs are written again, and what the runs are meanwhile.

A run's journal says everything about it, so the row of an open one is a checkpoint
(docs/decisions/0061): as it was spawned, and as it was some events ago. In between the store keeps
the committed run in memory, and a start folds what came after each checkpoint.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.run import OVER, Run
from subagents.domain.run.values import RunId
from subagents.errors import IllegalTransition
from subagents.ports import Batch, JournalEntry

EVENTS_MIN: Final = 16
EVENTS_MAX: Final = 256
"""Events between two checkpoints, and so the most that a start folds of one run."""

CHILDREN_PER_EVENT: Final = 4
"""A parent's state grows with its children: the more it has, the more seldom it is written."""


class _Known(NamedTuple):
    run: Run
    kept_seq: int
    """Of its checkpoint."""


class OpenRuns:
    """The open runs as they were last committed. One thread at a time changes it, any may read."""

    def __init__(self) -> None:
        self._known: dict[RunId, _Known] = {}
        self.is_complete = False
        """Every open run is here: they were loaded, and no commit failed since."""

    def get(self, run_id: RunId) -> Run | None:
        known = self._known.get(run_id)
        return None if known is None else known.run

    def all(self) -> Sequence[Run]:
        return [each.run for each in tuple(self._known.values())]

    def behind(self) -> Sequence[Run]:
        """Those that their checkpoint is older than."""
        return [each.run for each in tuple(self._known.values()) if each.kept_seq < each.run.seq]

    def is_due(self, run: Run) -> bool:
        """Whether this change of a run is also written to its row."""
        known = self._known.get(run.id)
        # A row that says that its run is over is never left behind, nor one that nobody knows.
        if known is None or run.phase in OVER:
            return True
        every = min(max(EVENTS_MIN, len(run.children) // CHILDREN_PER_EVENT), EVENTS_MAX)
        return run.seq - known.kept_seq >= every

    def committed(self, batch: Batch) -> None:
        for run in batch.runs.values():
            is_kept = run.id in batch.created or self.is_due(run)
            if run.phase in OVER:
                self._known.pop(run.id, None)
            else:
                seq = run.seq if is_kept else self._known[run.id].kept_seq
                self._known[run.id] = _Known(run, seq)

    def load(self, runs: Iterable[Run], checkpoints: Mapping[RunId, Run]) -> None:
        """Begin anew with the open ones of ``runs``, which are all there are."""
        self._known = {
            run.id: _Known(run, checkpoints[run.id].seq) for run in runs if run.phase not in OVER
        }
        self.is_complete = True

    def forget(self) -> None:
        """Only the file can tell what is in it."""
        self._known = {}
        self.is_complete = False


def folded(checkpoint: Run, tail: Iterable[JournalEntry]) -> Run:
    """The run after the events that came after its checkpoint.

    Raises:
        ValueError: They do not continue it; what is wrong, for people.
    """
    run = checkpoint
    for entry in tail:
        if entry.run_id != run.id or entry.seq != run.seq + 1:
            raise ValueError(f"its journal lacks event {run.seq + 1}")
        try:
            run = reduce(run, entry.event).run
        except IllegalTransition as error:
            raise ValueError(f"event {entry.seq} of its journal cannot be: {error}") from error
    return run
