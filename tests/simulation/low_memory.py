"""A machine with little memory: whatever is bounded forgets, evicts and pages all the time.

A bound may cost time when it is reached, and nothing else: the invariants are the same.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Final
from unittest.mock import patch

from subagents.engine import outbox
from subagents.engine.messages import leases, mailbox
from subagents.engine.records import recorder, results, writer
from subagents.engine.runs import disk_probes, idempotency_keys, sweep
from subagents.extensions.track_record import track_record_files, track_record_log
from subagents.store.sqlite import sqlite_store
from subagents.store.transcripts import transcript_files

RESULT_BYTES: Final = 256
"""Of a result that is kept in its run; so that some are longer, in every seed."""
LOW: Final[tuple[tuple[ModuleType, str, int], ...]] = (
    (leases, "LAPSED_MAX", 1),
    (mailbox, "TOLD_MAX", 1),
    (outbox, "RUNS_AT_ONCE", 1),
    (recorder, "PENDING_MAX", 2),
    (idempotency_keys, "KEYS_MAX", 1),
    (disk_probes, "PROBES_MAX", 1),
    (sqlite_store, "READERS_MAX", 1),
    (sqlite_store, "WAL_PAGES_MAX", 8),
    (sweep, "ROWS_MAX", 1),
    (track_record_files, "DAYS_KNOWN_MAX", 0),
    (track_record_log, "DUE_MAX", 1),
    (track_record_log, "PAGE", 1),
    (transcript_files, "KNOWN_MAX", 1),
    (writer, "JOURNAL_PAGE", 1),
)


@contextmanager
def low_bounds(*, is_small: bool) -> Iterator[None]:
    """Everything that is bounded, bounded low."""
    with ExitStack() as patches:
        patches.enter_context(patch.object(results, "RESULT_BYTES_MAX", RESULT_BYTES))
        for module, name, bound in LOW if is_small else ():
            patches.enter_context(patch.object(module, name, bound))
        yield
