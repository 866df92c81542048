"""Row ↔ domain. A run is two JSON columns: ``origin``, written once, and ``state``."""

from typing import Final

import msgspec

from subagents.domain.run.events import decode_event, encode_event
from subagents.domain.run.run import (
    OVER,
    Message,
    MessageKind,
    Run,
)
from subagents.domain.run.spec import Mode, Resolved, RunSpec
from subagents.domain.run.values import (
    MessageId,
    RunId,
    SessionKey,
    Value,
    replace,
)
from subagents.ports import (
    FeedEntry,
    InboxRow,
    JournalEntry,
    RunFilter,
)


class Origin(Value, frozen=True):
    """What never changes after the spawn."""

    spec: RunSpec
    resolved: Resolved


_BLANK_SPEC: Final = RunSpec(task="")
_BLANK_RESOLVED: Final = Resolved(
    agent_id="", runtime="", mode=Mode.RUN, label="", cwd="", lane="", lane_slots=0
)
_encode: Final = msgspec.json.Encoder().encode
_decode_run: Final = msgspec.json.Decoder(Run).decode
_decode_origin: Final = msgspec.json.Decoder(Origin).decode


def origin_of(run: Run) -> bytes:
    return _encode(Origin(spec=run.spec, resolved=run.resolved))


def state_of(run: Run) -> bytes:
    """The run without its origin: rewriting a 256 KiB task at every transition buys nothing."""
    return _encode(replace(run, spec=_BLANK_SPEC, resolved=_BLANK_RESOLVED))


def run_from(origin: bytes, state: bytes) -> Run:
    """The reverse of ``origin_of`` and ``state_of``.

    Raises:
        msgspec.DecodeError: The columns do not hold a run.
    """
    stored = _decode_origin(origin)
    return replace(_decode_run(state), spec=stored.spec, resolved=stored.resolved)


def inserted(run: Run) -> tuple[object, ...]:
    """Parameters of ``insert_run``."""
    return (
        run.id,
        run.seq,
        run.phase.value,
        run.resolved.label,
        run.resolved.agent_id,
        run.requester,
        run.lineage.requester_run,
        run.session.first_key,
        run.phase in OVER,
        run.resolved.mode is Mode.SESSION,
        run.times.created_at_ms,
        run.ended_at_ms,
        run.times.archived_at_ms,
        origin_of(run),
        state_of(run),
    )


def updated(run: Run) -> tuple[object, ...]:
    """Parameters of ``update_run``."""
    return (
        run.seq,
        run.phase.value,
        run.phase in OVER,
        run.ended_at_ms,
        run.times.archived_at_ms,
        state_of(run),
        run.id,
    )


def event_inserted(number: int, entry: JournalEntry) -> tuple[object, ...]:
    """Parameters of ``insert_event``."""
    event = entry.event
    name = type(event).__name__
    return (entry.run_id, entry.seq, entry.at_ms, name, entry.key, encode_event(event), number)


def feed_entry_from(row: tuple[int, str, int, int, str | None, bytes]) -> FeedEntry:
    """A row of ``select_feed``.

    Raises:
        msgspec.DecodeError: It holds no event.
    """
    number, run_id, seq, at_ms, key, data = row
    event = decode_event(data)
    entry = JournalEntry(run_id=RunId(run_id), seq=seq, at_ms=at_ms, key=key, event=event)
    return FeedEntry(number=number, entry=entry)


def message_inserted(message: Message) -> tuple[object, ...]:
    """Parameters of ``insert_message``."""
    return (
        message.id,
        message.session_key,
        message.run_id,
        message.kind.value,
        message.created_at_ms,
        message.text,
        message.created_at_ms if message.consumed else None,
        "not expected" if message.consumed else None,
    )


def inbox_row_from(row: tuple[object, ...]) -> InboxRow:
    number, message_id, session, run_id, kind, created, text, consumed_at, consumed_by = row
    return InboxRow(
        number=_int(number),
        message=Message(
            id=MessageId(str(message_id)),
            session_key=SessionKey(str(session)),
            run_id=RunId(str(run_id)),
            kind=MessageKind(str(kind)),
            created_at_ms=_int(created),
            text=str(text),
            consumed=consumed_at is not None,
        ),
        consumed_at_ms=None if consumed_at is None else _int(consumed_at),
        consumed_by=None if consumed_by is None else str(consumed_by),
    )


def selection(where: RunFilter) -> str:
    """The statement that finds these runs by an index instead of reading every run there is."""
    if where.label is not None:
        return "select_runs_labelled"
    if where.requester_run is not None:
        return "select_runs_of_parent"
    if where.requester is not None:
        return "select_runs_of_requester"
    return "select_runs"


def filters(where: RunFilter) -> tuple[object, ...]:
    """The parameters that all those statements have in common."""
    phases = None if where.phases is None else msgspec.json.encode(where.phases).decode()
    return (
        where.requester,
        where.requester_run,
        phases,
        where.label,
        where.agent_id,
        where.archived,
        where.ended_after_ms,
    )


def _int(value: object) -> int:
    if not isinstance(value, int):
        msg = f"expected an integer column, found {value!r}"
        raise TypeError(msg)
    return value
