"""How the runs of a cluster are divided among its nodes.

A partition has whole sessions: a session that is no run's, all runs that it spawned and all below
them. So whatever is counted or decided for a tree of runs (children, budgets, dependencies, the
inbox, idempotency keys) is decided by one node at a time. See docs/decisions/0078.
"""

import hashlib
from collections.abc import Callable
from typing import Final

from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, SessionKey

OUTAGE_LEASES: Final = 50
"""How many lease lengths a node cut off from the database lets its workers live, on the word of the
nodes that it knows. A node that it does not know takes nothing from it before they are over."""
TRIES: Final = 4
"""How often a lease is renewed within its length."""
KEPT_LEASES: Final = 2
"""How many lease lengths the lease of a daemon that is gone is renewed in its place."""
PARTITIONS: Final = 256
"""The width of the hash: it is in every row of a run, so it can never be another number."""


def partition_of(session: SessionKey) -> int:
    """The partition of a session that is no run's: 0 to 255, the same on every machine."""
    return hashlib.blake2b(session.encode(), digest_size=1).digest()[0]


def partition_of_new(run: Run, of_run: Callable[[RunId], int]) -> int:
    """The partition of a run that is spawned now; ``of_run`` gives that of one that is there."""
    above = run.lineage.requester_run
    return partition_of(run.requester) if above is None else of_run(above)
