"""Which trace and span a run's attempts are, without storing anything.

Ids are hashes of the run's: a worker gets its span before it starts, and the same run has the
same ids whenever it is exported. See docs/decisions/0022.
"""

import hashlib
from collections.abc import Callable
from typing import Final

from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, Value

DEPTH_MAX: Final = 64
"""A depth above that of nested runs, so that a walk up ends."""
UNTRIED: Final = 0
"""Number of the attempt that never was."""


class Lineage(Value, frozen=True):
    """Where a run stands in its tree."""

    root: RunId
    parent: Run | None = None


def trace_id(root: RunId) -> str:
    """Of the tree that grew from that run."""
    return _hash("trace", root)[:32]


def span_id(run_id: RunId, attempt: int, *part: str) -> str:
    """Of an attempt, or of one part of it."""
    return _hash("span", run_id, str(attempt), *part)[:16]


def traceparent(root: RunId, run_id: RunId, attempt: int) -> str:
    """W3C trace context for a worker: its own spans lie under its attempt's, and are recorded."""
    return f"00-{trace_id(root)}-{span_id(run_id, attempt)}-01"


def _hash(*words: str) -> str:
    return hashlib.sha256("\0".join(("subagents", *words)).encode()).hexdigest()


def lineage(run: Run, run_of: Callable[[RunId], Run | None]) -> Lineage:
    """Where ``run`` stands; an ancestor that is gone (pruned) ends the way up below it.

    Args:
        run: Any run.
        run_of: A run by id, None when there is none.
    """
    above = run.lineage.requester_run
    parent = run_of(above) if above is not None else None
    root, current = above or run.id, parent
    for _ in range(DEPTH_MAX):
        if current is None or current.lineage.requester_run is None:
            break
        root = current.lineage.requester_run
        current = run_of(root)
    return Lineage(root=root, parent=parent)
