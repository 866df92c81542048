"""The open runs of other nodes, as they are by their rows and journals.

A list asks for all of them. So each is folded once, later events are added to what is known, and
what was looked at a moment ago is not looked at again.
"""

import logging
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from subagents.domain.run.run import OVER, Run
from subagents.domain.run.values import RunId
from subagents.store import rows

AGE_MAX_S: Final = 1.0
"""How old a look may be."""

log = logging.getLogger(__name__)


class Asked(Protocol):
    """The store that looks; it is not kept, so that its connections go when nobody has it."""

    def ids_elsewhere(self) -> Iterable[RunId]:
        """Of the open runs that are not in its memory."""
        ...

    def rows_of(self, ids: Collection[RunId]) -> Sequence[rows.Row]: ...

    def checkpoint_of(self, row: rows.Row) -> rows.Checkpoint: ...

    def tails(self, heads: Mapping[str, object]) -> Mapping[str, Sequence[rows.Row]]:
        """What the journals of runs have behind the ``seq`` that is given of each."""
        ...

    def folded(self, kept: rows.Checkpoint, tail: Sequence[rows.Row]) -> rows.Checkpoint: ...


class OpenElsewhere:
    """What is not in the memory of a store."""

    def __init__(self) -> None:
        self._known: dict[RunId, rows.Checkpoint] = {}
        self._looked_s: float | None = None
        self._looking = threading.Lock()

    def runs(self, store: Asked) -> Sequence[Run]:
        """All that are open, as they were at most ``AGE_MAX_S`` ago."""
        with self._looking:
            now_s = time.monotonic()
            if self._looked_s is None or now_s - self._looked_s > AGE_MAX_S:
                self._look(store)
                self._looked_s = now_s
            return [each.run for each in self._known.values() if each.run.phase not in OVER]

    def forget(self) -> None:
        """Look again when they are asked for."""
        with self._looking:
            self._looked_s = None

    def _look(self, store: Asked) -> None:
        ids = set(store.ids_elsewhere())
        known = {run_id: each for run_id, each in self._known.items() if run_id in ids}
        for row in store.rows_of(ids - known.keys()):
            try:
                kept = store.checkpoint_of(row)
            except rows.DAMAGE as error:
                log.debug("%s is left out: %s", row[1], error)  # its owner sets it aside
            else:
                known[kept.run.id] = kept
        tails = store.tails({run_id: each.run.seq for run_id, each in known.items()})
        for run_id, tail in tails.items():
            found = RunId(run_id)
            try:
                known[found] = store.folded(known[found], tail)
            except rows.DAMAGE as error:
                log.debug("%s is left out: %s", run_id, error)
                del known[found]
        self._known = known
