"""Row ↔ domain. A run is two JSON columns: ``origin``, written once, and ``state``.

Each row carries a CRC-32 of what it says, and is read only when the two agree
(docs/decisions/0039).
"""

import zlib
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from subagents.domain.rules.places import with_tree
from subagents.domain.run import linked_runs
from subagents.domain.run.effects import decode_effects, encode_effects
from subagents.domain.run.events import decode_event, encode_event
from subagents.domain.run.run import OVER, Message, MessageKind, Run
from subagents.domain.run.spec import Mode, Resolved, RunSpec
from subagents.domain.run.values import MessageId, RunId, SessionKey, Value, decoded, replace
from subagents.domain.schedules.schedule import Schedule
from subagents.ports import FeedEntry, InboxRow, JournalEntry, Lease, OutboxEntry, RememberedKey

Row: TypeAlias = tuple[object, ...]
T_co = TypeVar("T_co", covariant=True)

DAMAGE: Final = (ValueError, TypeError, msgspec.DecodeError)
"""What reading a damaged row raises."""


class Origin(Value, frozen=True):
    """What never changes after the spawn."""

    spec: RunSpec
    resolved: Resolved


_BLANK_SPEC: Final = RunSpec(task="")
_BLANK_RESOLVED: Final = Resolved(
    agent_id="", runtime="", mode=Mode.RUN, label="", cwd="", lane="", lane_slots=0
)
_encode: Final = msgspec.json.Encoder(enc_hook=linked_runs.as_list).encode
_pack: Final = msgspec.msgpack.Encoder().encode
_runs: Final = msgspec.json.Decoder(Run, dec_hook=linked_runs.from_list)
_origins: Final = msgspec.json.Decoder(Origin)
_schedules: Final = msgspec.json.Decoder(Schedule)


def origin_of(run: Run) -> bytes:
    return _encode(Origin(spec=run.spec, resolved=run.resolved))


def state_of(run: Run) -> bytes:
    """The run without its origin: rewriting a 256 KiB task at every transition buys nothing."""
    return _encode(replace(run, spec=_BLANK_SPEC, resolved=_BLANK_RESOLVED))


class Checkpoint(NamedTuple):
    """What the row of a run says."""

    run: Run
    pending: tuple[OutboxEntry, ...] = ()
    """Its effects that are not known to be done, in their order."""


class Kind(NamedTuple, Generic[T_co]):
    """How rows of one kind are read."""

    read: Callable[[Row], T_co]
    """Raises one of ``DAMAGE``."""
    names: Callable[[Row], tuple[str, ...]]
    """Names what is set aside with a damaged row: run ids, a message id, or ``<run id>/<seq>``."""
    run_id: Callable[[Row], object]


def checksum(*columns: object) -> int:
    """CRC-32 of columns as SQLite gives them back: integers, texts, blobs and NULL."""
    # Packed, since texts that merely follow each other could be divided elsewhere.
    return zlib.crc32(_pack(columns))


def with_checksum(*columns: object) -> Row:
    return (*columns, checksum(*columns))


def verify(written: object, *columns: object) -> None:
    """Raise ValueError unless the checksum is theirs; NULL is of a row older than checksums."""
    if written is not None and written != checksum(*columns):
        raise ValueError("what is stored does not match its checksum")


def run_from(origin: bytes, state: bytes) -> Run:
    """The reverse of ``origin_of`` and ``state_of``.

    Raises:
        msgspec.DecodeError: The columns do not hold a run.
    """
    stored = decoded(_origins, origin)
    run = decoded(_runs, state)
    # The columns of the spawn stay as they were: that its fallback took over is in the state.
    is_fallen_back = run.waiting.fell_back is not None
    resolved = stored.resolved.fallen_back if is_fallen_back else stored.resolved
    for times in range(1, run.retry.handed_over + 1):
        resolved = resolved.handed_over(times)
    if run.placed_tree is not None:  # so is where its worktree is
        resolved = with_tree(resolved, run.placed_tree)
    spec, raised = stored.spec, run.budget.raised
    spec = spec if raised is None else replace(spec, budget=raised)
    return replace(run, spec=spec, resolved=resolved)


def checkpoint_from(row: Row) -> Checkpoint:
    """A whole row of ``run``, in the order of the schema.

    Raises:
        ValueError: It is not what was written.
        msgspec.DecodeError: Its columns do not hold a run.
    """
    number, run_id, seq, phase, label, agent_id, requester, parent, session, is_over, *rest = row
    keeps_session, created, ended, archived, origin, state, *rest = rest
    origin_sum, state_sum, *found_by, pending = rest
    names = (run_id, label, agent_id, requester, parent, session)
    verify(origin_sum, number, *names, keeps_session, created, origin)
    verify(state_sum, *_changing(run_id, seq, phase, is_over, ended, archived, state, pending))
    run = run_from(_bytes(origin), _bytes(state))
    if run.id != run_id:
        raise ValueError(f"it is the state of {run.id}")
    # Lists find runs by these columns, which no checksum covers: they repeat what is in others.
    if found_by != [*_found_by(run), _outcome_of(run), _plan_of(run)]:
        raise ValueError("its directory, tags, outcome or plan are not those of the run")
    return Checkpoint(run, _pending_from(run.id, pending))


def _changing(*columns: object) -> Row:
    """What the state's checksum covers; a row without pending effects has the one of the others."""
    *before, pending = columns
    return (*before,) if pending is None else columns


def _pending_from(run_id: RunId, pending: object) -> tuple[OutboxEntry, ...]:
    if pending is None:
        return ()
    return tuple(
        OutboxEntry(run_id=run_id, seq=seq, index=index, effect=effect)
        for seq, index, effect in decode_effects(_bytes(pending))
    )


def _pending_of(kept: Checkpoint) -> bytes | None:
    if not kept.pending:
        return None
    return encode_effects((each.seq, each.index, each.effect) for each in kept.pending)


def is_open(row: Row) -> bool:
    """Whether this row of ``run`` is a checkpoint: what came after it is in the journal."""
    return row[9] == 0


def _found_by(run: Run) -> Row:
    """Directory and tags."""
    return run.resolved.project, _encode(run.spec.tags).decode() if run.spec.tags else None


def _plan_of(run: Run) -> str | None:
    return None if run.resolved.step is None else run.resolved.step.plan


def _outcome_of(run: Run) -> str | None:
    return None if run.outcome is None else run.outcome.status.value


def inserted(number: int, kept: Checkpoint) -> Row:
    """Parameters of ``insert_run``."""
    run = kept.run
    label, requester = run.resolved.label, run.requester
    # The columns of the spawn name the agent that was asked for, also once its fallback took over.
    agent_id = run.resolved.instead_of or run.resolved.agent_id
    names = (run.id, label, agent_id, requester, run.lineage.requester_run, run.session.first_key)
    keeps_session, created = int(run.resolved.mode is Mode.SESSION), run.times.created_at_ms
    origin = origin_of(run)
    origin_sum = checksum(number, *names, keeps_session, created, origin)
    seq, phase, state, state_sum, pending, is_over, ended, outcome, archived, _ = archived_run(kept)
    return (
        *(number, run.id, seq, phase, *names[1:], is_over, keeps_session, created, ended),
        *(archived, origin, state, origin_sum, state_sum, *_found_by(run), outcome),
        *(_plan_of(run), pending),
    )


def updated(kept: Checkpoint) -> Row:
    """Parameters of ``update_run``."""
    return (*_state_columns(kept), kept.run.id)


def ended_run(kept: Checkpoint) -> Row:
    """Parameters of ``end_run``."""
    return (*_state_columns(kept), *_end_columns(kept.run), kept.run.id)


def archived_run(kept: Checkpoint) -> Row:
    """Parameters of ``archive_run``."""
    run = kept.run
    return (*_state_columns(kept), *_end_columns(run), run.times.archived_at_ms, run.id)


def _state_columns(kept: Checkpoint) -> Row:
    """``seq`` to ``pending``."""
    run, state, pending = kept.run, state_of(kept.run), _pending_of(kept)
    seq, phase, is_over, ended = run.seq, run.phase.value, int(run.phase in OVER), run.ended_at_ms
    archived = run.times.archived_at_ms
    written = checksum(*_changing(run.id, seq, phase, is_over, ended, archived, state, pending))
    return seq, phase, state, written, pending


def _end_columns(run: Run) -> Row:
    """``is_over`` to ``outcome``."""
    return int(run.phase in OVER), run.ended_at_ms, _outcome_of(run)


def origin_updated(number: int, run: Run) -> Row:
    """Parameters of ``update_origin``."""
    *_, origin, _, origin_sum, _, _, _, _, _, _ = inserted(number, Checkpoint(run))
    return (origin, origin_sum, run.id)


def event_inserted(number: int, entry: JournalEntry) -> Row:
    """Parameters of ``insert_event``."""
    event = entry.event
    name, data = type(event).__name__, encode_event(event)
    return with_checksum(number, entry.run_id, entry.seq, entry.at_ms, name, entry.key, data)


def feed_entry_from(row: Row) -> FeedEntry:
    number, run_id, seq, at_ms, _, key, data, written = row
    verify(written, *row[:-1])
    entry = JournalEntry(
        run_id=RunId(_str(run_id)),
        seq=_int(seq),
        at_ms=_int(at_ms),
        key=None if key is None else _str(key),
        event=decode_event(_bytes(data)),
    )
    return FeedEntry(number=_int(number), entry=entry)


def applied_from(row: Row) -> tuple[RunId, str]:
    """An event's run and key."""
    *_, run_id, _, _, _, key, _, written = row
    verify(written, *row[:-1])
    return RunId(_str(run_id)), _str(key)


def lease_put(held: Lease) -> Row:
    """Parameters of ``put_lease``."""
    return with_checksum(
        held.run_id, held.attempt, held.owner, held.epoch, held.until_ms, held.cursor
    )


def lease_from(row: Row) -> Lease:
    run_id, attempt, owner, epoch, until_ms, cursor, written = row
    verify(written, *row[:-1])
    return Lease(
        run_id=RunId(_str(run_id)),
        attempt=_int(attempt),
        owner=_str(owner),
        epoch=_int(epoch),
        until_ms=_int(until_ms),
        cursor=_int(cursor),
    )


def schedule_put(schedule: Schedule) -> Row:
    """Parameters of ``put_schedule``."""
    return with_checksum(schedule.id, _encode(schedule))


def schedule_from(row: Row) -> Schedule:
    """The reverse of ``schedule_put``."""
    schedule_id, state, written = row
    verify(written, schedule_id, state)
    found = decoded(_schedules, _bytes(state))
    if found.id != schedule_id:
        raise ValueError(f"it is the state of {found.id}")
    return found


def remembered_from(row: Row) -> RememberedKey:
    """The reverse of ``remembered_inserted``."""
    requester, key, run_id, at_ms, digest, written = row
    known = RememberedKey(
        *(SessionKey(_str(requester)), _str(key), RunId(_str(run_id)), _int(at_ms)),
        None if digest is None else _str(digest),
    )
    verify(written, *_checked(known))
    return known


def remembered_inserted(known: RememberedKey) -> Row:
    """Parameters of ``put_idempotency``."""
    return (*known, checksum(*_checked(known)))


def _checked(known: RememberedKey) -> Row:
    """What the checksum covers; a row of before there were digests has the one of the others."""
    return known if known.digest is not None else known[:-1]


def message_inserted(number: int, message: Message) -> Row:
    """Parameters of ``insert_message``."""
    session, kind, at_ms = message.session_key, message.kind.value, message.created_at_ms
    read = (at_ms, "not expected") if message.consumed else (None, None)
    return (
        *(number, message.id, session, message.run_id, kind, at_ms, message.text, *read),
        checksum(number, message.id, message.run_id, kind, at_ms, message.text),
        checksum(session),
        checksum(*read) if message.consumed else None,
    )


def read_by(read: tuple[str, int, str]) -> Row:
    """Parameters of ``consume_message`` and ``outdate_alerts``."""
    name, at_ms, reader = read
    return (at_ms, reader, checksum(at_ms, reader), name)


def inbox_row_from(row: Row) -> InboxRow:
    number, message_id, session, run_id, kind, created, text, consumed_at, consumed_by, *sums = row
    written, place_sum, read_sum = sums
    verify(written, number, message_id, run_id, kind, created, text)
    verify(place_sum, session)
    verify(read_sum, consumed_at, consumed_by)
    if (consumed_at is None) != (consumed_by is None):
        raise ValueError("it was read, but not by anybody or not at any time")
    return InboxRow(
        number=_int(number),
        message=Message(
            id=MessageId(_str(message_id)),
            session_key=SessionKey(_str(session)),
            run_id=RunId(_str(run_id)),
            kind=MessageKind(_str(kind)),
            created_at_ms=_int(created),
            text=_str(text),
            consumed=consumed_at is not None,
        ),
        consumed_at_ms=None if consumed_at is None else _int(consumed_at),
        consumed_by=None if consumed_by is None else _str(consumed_by),
    )


def _names_of_run(row: Row) -> tuple[str, ...]:
    """The id of the row and the one inside it: a flipped bit in one of them makes them two."""
    try:
        inside = decoded(_runs, _bytes(row[15])).id
    except DAMAGE:
        return (str(row[1]),)
    return tuple(dict.fromkeys((str(row[1]), str(inside))))


RUN: Final = Kind(lambda row: checkpoint_from(row).run, _names_of_run, lambda row: row[1])
CHECKPOINT: Final = Kind(checkpoint_from, _names_of_run, lambda row: row[1])
EVENT: Final = Kind(feed_entry_from, lambda row: (f"{row[1]}/{row[2]}",), lambda row: row[1])
APPLIED: Final = Kind(applied_from, lambda row: (str(row[1]),), lambda row: row[1])
LEASE: Final = Kind(lease_from, lambda row: (str(row[0]),), lambda row: row[0])
SCHEDULE: Final = Kind(schedule_from, lambda row: (str(row[0]),), lambda row: row[0])
MESSAGE: Final = Kind(inbox_row_from, lambda row: (str(row[1]),), lambda row: row[3])


def _int(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"expected an integer column, found {value!r}")
    return value


def _str(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text column, found {value!r}")
    return value


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"expected a blob column, found {value!r}")
    return value
