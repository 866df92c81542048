"""Which rows of open runs are written again, and what the runs are meanwhile.

A run's journal says everything about it, so the row of an open one is a checkpoint
(docs/decisions/0061): as it was spawned, and as it was some events ago. In between the store keeps
the committed run in memory, and a start folds what came after each checkpoint. The same goes for
what a run has to do (0067): an event asks for an effect, and the one with its key answers it. That
an effect is done which no event answers is written to the row at once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.effects import Transition
from subagents.domain.run.run import OVER, Run
from subagents.domain.run.values import RunId
from subagents.errors import IllegalTransition
from subagents.ports import Batch, JournalEntry, OutboxEntry
from subagents.store.rows import Checkpoint

EVENTS_MIN: Final = 16
EVENTS_MAX: Final = 256
"""Events between two checkpoints, and so the most that a start folds of one run."""

CHILDREN_PER_EVENT: Final = 4
"""A parent's state grows with its children: the more it has, the more seldom it is written."""


class _Known(NamedTuple):
    now: Checkpoint
    kept_seq: int
    """The ``seq`` of the run in its row."""


class OpenRuns:
    """The runs that are open or have something to do, as they were last committed.

    One thread at a time changes it, any may read.
    """

    def __init__(self) -> None:
        self._known: dict[RunId, _Known] = {}
        self.is_complete = False
        """Whether all of them are here: they were loaded, and no commit has failed since."""
        self._committing: frozenset[RunId] = frozenset()
        """Runs that the file may already show in a state that is not here yet."""

    def __contains__(self, run_id: RunId) -> bool:
        return run_id in self._known

    def get(self, run_id: RunId) -> Run | None:
        """The run, no older than what the file has shown; None = it must be read from the file."""
        # In this order: a reader that sees a commit as ended finds here what it changed.
        known = None if run_id in self._committing else self._known.get(run_id)
        return None if known is None else known.now.run

    def all(self) -> Sequence[Run]:
        """The open ones."""
        found = (each.now.run for each in tuple(self._known.values()))
        return [run for run in found if run.phase not in OVER]

    def pending(self) -> Sequence[OutboxEntry]:
        return [entry for each in tuple(self._known.values()) for entry in each.now.pending]

    def behind(self) -> Sequence[Checkpoint]:
        """The runs whose rows are older than they are."""
        known = tuple(self._known.values())
        return [each.now for each in known if each.kept_seq < each.now.run.seq]

    def is_due(self, run: Run) -> bool:
        """Whether this change of a run is also written to its row."""
        known = self._known.get(run.id)
        # A row is never left behind where its run is over, since it is then read as it is, nor
        # where the run is not known here: then nothing says how far behind the row would be.
        if known is None or run.phase in OVER:
            return True
        every = min(max(EVENTS_MIN, len(run.children) // CHILDREN_PER_EVENT), EVENTS_MAX)
        return run.seq - known.kept_seq >= every

    def after(self, batch: Batch) -> Iterator[tuple[Checkpoint, bool]]:
        """Each run of a batch as it is once that is committed, and whether its row says so then."""
        pending: dict[RunId, tuple[OutboxEntry, ...]] = {}
        for entry in batch.outbox:
            pending[entry.run_id] = (*self._left(pending, entry.run_id), entry)
        # An effect that an event of this batch answers needs no row of its own: `folded` drops it
        # by the key that both have.
        answered = {entry.key for entry in batch.journal} if batch.performed else set()
        marked: dict[RunId, None] = {}
        for run_id, seq, index in batch.performed:
            left = self._left(pending, run_id)
            pending[run_id] = tuple(e for e in left if (e.seq, e.index) != (seq, index))
            if f"{run_id}/{seq}/{index}" not in answered:
                marked[run_id] = None
        for run_id in dict.fromkeys((*batch.runs, *marked)):
            known = self._known.get(run_id)
            run = batch.runs.get(run_id) or (known and known.now.run)
            if run is not None:
                is_due = run_id in marked or run_id in batch.created or self.is_due(run)
                yield Checkpoint(run, self._left(pending, run_id)), is_due

    def _left(
        self, pending: Mapping[RunId, tuple[OutboxEntry, ...]], run_id: RunId
    ) -> tuple[OutboxEntry, ...]:
        if (found := pending.get(run_id)) is not None:
            return found
        known = self._known.get(run_id)
        return () if known is None else known.now.pending

    @contextmanager
    def committing(self, batch: Batch) -> Iterator[None]:
        """The block makes the commit of this batch; after one that raises: ``forget``."""
        # No `finally`: when the commit raises, only the file knows whether it was made. Until
        # `forget` these runs are read from there.
        self._committing = frozenset(batch.runs)
        yield
        for now, is_kept in self.after(batch):
            self._keep(now, now.run.seq if is_kept else self._known[now.run.id].kept_seq)
        self._committing = frozenset()

    def load(self, found: Iterable[tuple[Checkpoint, int]]) -> None:
        """Start over with these, which are all there are, and the ``seq`` of their rows."""
        self._known = {}
        self.add(found)
        self.is_complete = True

    def add(self, found: Iterable[tuple[Checkpoint, int]]) -> None:
        """Count these as ours from now on."""
        for now, kept_seq in found:
            self._keep(now, kept_seq)

    def _keep(self, now: Checkpoint, kept_seq: int) -> None:
        # Its row says that it is over (`is_due`), so it can be read from there like any other.
        if now.run.phase in OVER and not now.pending:
            self._known.pop(now.run.id, None)
        else:
            self._known[now.run.id] = _Known(now, kept_seq)

    def drop(self, run_ids: Iterable[RunId]) -> None:
        """Count these as another node's from now on."""
        for run_id in run_ids:
            self._known.pop(run_id, None)

    def forget(self) -> None:
        """Know nothing any more: only the file shows what is in it."""
        self._known = {}
        self.is_complete = False
        self._committing = frozenset()


def folded(checkpoint: Checkpoint, tail: Iterable[JournalEntry]) -> Checkpoint:
    """The run, and what it has to do, after the events that came after its checkpoint.

    Raises:
        ValueError: They do not continue it; what is wrong, for people.
    """
    run, pending = checkpoint
    for entry in tail:
        if entry.run_id != run.id or entry.seq != run.seq + 1:
            raise ValueError(f"its journal lacks event {run.seq + 1}")
        try:
            step = reduce(run, entry.event)
        except IllegalTransition as error:
            raise ValueError(f"event {entry.seq} of its journal cannot be: {error}") from error
        run = step.run
        pending = (*(each for each in pending if each.key != entry.key), *asked_for(step))
    return Checkpoint(run, pending)


def asked_for(step: Transition) -> Iterator[OutboxEntry]:
    """The effects of an event, as the engine commits them."""
    for index, effect in enumerate(step.effects):
        yield OutboxEntry(run_id=step.run.id, seq=step.run.seq, index=index, effect=effect)
