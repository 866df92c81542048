"""What one commit writes: statements by name with their rows, in the order that matters."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar

import msgspec

from subagents.domain.lifecycle.erasure import BEARERS, erased_event
from subagents.domain.run.events import encode_event
from subagents.domain.run.run import Run
from subagents.domain.run.spec import IDEMPOTENCY_WINDOW_MS
from subagents.domain.run.values import RunId, replace
from subagents.ports import Batch
from subagents.store import rows

T = TypeVar("T")
Written: TypeAlias = tuple[str, Iterable[rows.Row]]
"""The name of a statement, and what it is executed with, once for each row."""

Numbers: TypeAlias = Callable[[str], Iterator[int]]
"""Gives the numbers of the next rows, by the statement that reads the newest."""

ERASED_TYPES: Final = msgspec.json.encode([bearer.__name__ for bearer in BEARERS]).decode()
"""The types of events that are overwritten, as a parameter of ``select_events``."""


def written(
    batch: Batch,
    due: Sequence[rows.Checkpoint],
    numbers: Numbers,
    erased: Callable[[RunId], Iterable[Written]],
) -> Iterator[Written]:
    """Everything that a batch writes.

    Args:
        batch: What is committed.
        due: Its runs that are written to their rows (``OpenRuns.after``).
        numbers: Called where rows are new.
        erased: What overwrites the stored row and events of a run (``erased_rows``).
    """
    # Runs before their events, which refer to them by number; messages before what became of
    # them, since one commit may write, move and consume the same one.
    created = [now for now in due if now.run.id in batch.created]
    yield "insert_run", _numbered(rows.inserted, numbers("newest_run"), created)
    yield from updated([now for now in due if now.run.id not in batch.created])
    for run_id in batch.erased:
        yield from erased(run_id)
    entries = (
        replace(each, event=erased_event(each.event)) if each.run_id in batch.erased else each
        for each in batch.journal
    )
    yield "insert_event", _numbered(rows.event_inserted, numbers("newest_number"), entries)
    if batch.messages:
        yield (
            "insert_message",
            _numbered(rows.message_inserted, numbers("newest_message"), batch.messages),
        )
    yield (
        "move_messages",
        ((target, rows.checksum(target), source) for source, target in batch.moved),
    )
    yield (
        "readdress_message",
        ((target, rows.checksum(target), each) for each, target in batch.readdressed),
    )
    yield "consume_message", map(rows.read_by, batch.consumed)
    yield (
        "reopen_message",
        ((target, rows.checksum(target), each) for each, target in batch.reopened.items()),
    )
    yield "outdate_alerts", map(rows.read_by, batch.outdated)
    leases = batch.leases
    yield "put_lease", (rows.lease_put(held) for held in leases.values() if held is not None)
    yield "release_lease", ((run_id,) for run_id, held in leases.items() if held is None)
    yield "put_idempotency", map(rows.remembered_inserted, batch.idempotency)
    if batch.idempotency:
        newest_ms = max(each.at_ms for each in batch.idempotency)
        yield "forget_idempotency", [(newest_ms - IDEMPOTENCY_WINDOW_MS,)]
    schedules = batch.schedules
    yield "put_schedule", (rows.schedule_put(each) for each in schedules.values() if each)
    yield "remove_schedule", ((name,) for name, each in schedules.items() if each is None)


def _numbered(
    insert: Callable[[int, T], rows.Row], numbers: Iterator[int], found: Iterable[T]
) -> Iterator[rows.Row]:
    # The rows come first in `zip`: the other way round it would take a number before it stops.
    return (insert(number, each) for each, number in zip(found, numbers, strict=False))


def updated(changed: Sequence[rows.Checkpoint]) -> Iterator[Written]:
    """What brings the rows of these runs up to date."""
    settled = [each for each in changed if each.run.is_settled]
    yield "update_run", (rows.updated(each) for each in changed if not each.run.is_settled)
    yield (
        "end_run",
        (rows.ended_run(e) for e in settled if e.run.times.archived_at_ms is None),
    )
    yield (
        "archive_run",
        (rows.archived_run(e) for e in settled if e.run.times.archived_at_ms is not None),
    )


def erased_rows(number: int, run: Run, events: Iterable[rows.Row]) -> Iterator[Written]:
    """What overwrites the texts that a run's workers were given; see ``domain.lifecycle.erasure``.

    Args:
        number: The number of its row.
        run: The run as it is from now on.
        events: Its stored events of ``ERASED_TYPES``.
    """
    yield "update_origin", [rows.origin_updated(number, run)]
    changed = []
    for row in events:
        try:
            event = rows.feed_entry_from(row).entry.event
        except rows.DAMAGE:
            continue  # left as it is, for a repair
        *before, _, _ = row
        *_, data, checksum = rows.with_checksum(*before, encode_event(erased_event(event)))
        changed.append((data, checksum, row[0]))
    yield "update_event", changed
