"""Answers about events, built from the journal."""

import re
from typing import Final

import msgspec

from subagents.api.answers.explain import Folded, steps_of
from subagents.api.answers.run_building import shown, without_secrets
from subagents.api.wire import event_answers as wire
from subagents.api.wire.run_answers import RunRow
from subagents.api.wire.wire_struct import document_of, iso_or_none, made
from subagents.domain.run.events import Alerted
from subagents.domain.transcript.feed_entry import NEWS, ROW, Document, FeedDocument, feed_documents
from subagents.engine.messages.alert_history import Fate, RaisedAlert
from subagents.text import iso, shortened

TEXT_CHARS_MAX: Final = 2000
"""The longest text in a timeline's event; the whole is in the run."""
# The journal's events name times in several ways; the wire has one.
_MOMENT: Final = re.compile(r"^(?:at|deadline|due|\w+At|\w+Deadline|\w+Due|since|\w+Since)Ms$")
"""Stored fields that hold a point in time, in milliseconds."""


def timeline_event(folded: Folded) -> wire.TimelineEvent:
    """One event of a timeline, with the phase the run was in after it."""
    entry = folded.entry
    raw = document_of(entry.event)
    data = {name: value for name, value in raw.items() if name not in {"type", "atMs"}}
    resolved = data.get("resolved")
    if isinstance(resolved, dict):
        data["resolved"] = without_secrets(resolved)
    cut = _shown(data)
    return made(
        wire.TimelineEvent,
        entry,
        occurred_at=iso(entry.at_ms),
        type=type(entry.event).__name__,
        text="; ".join(each.text for each in steps_of(folded)),
        data=cut if isinstance(cut, dict) else {},
        phase=folded.run.phase,
        stale=folded.stale,
    )


def stream_event(entry: FeedDocument) -> wire.StreamEvent:
    """One event for a follower."""
    return msgspec.convert(entry.document, wire.StreamEvent)


def raised_alert(raised: RaisedAlert) -> wire.RaisedAlert:
    """An alert of the past, and what became of it."""
    entry, run, told = raised.entry.entry, raised.run, raised.told
    (document,) = feed_documents(
        run, entry.event, number=raised.entry.number, seq=entry.seq, names=frozenset(NEWS)
    )
    event = stream_event(document)
    return shown(
        wire.RaisedAlert,
        run,
        seq=raised.entry.number,
        kind=event.name,
        text=entry.event.alert.text if isinstance(entry.event, Alerted) else "",
        occurred_at=iso(entry.at_ms),
        fate=raised.fate,
        why=_why(raised),
        message_id=None if told is None else told.message.id,
        told_at=None if told is None else iso(told.message.created_at_ms),
        read_at=None if told is None else iso_or_none(told.consumed_at_ms),
        stands=raised.stands,
        event=event,
    )


def _why(raised: RaisedAlert) -> str:
    agent, told = raised.run.resolved.agent_id, raised.told
    match raised.fate:
        case Fate.SENT:
            return f"sent to {raised.run.requester if told is None else told.message.session_key}"
        case Fate.HELD:
            tokens = raised.run.resolved.alerts.tokens_per_hour
            digest = "" if told is None else "; counted in a digest"
            return f"held back: more than {tokens} tokens of alerts in that hour{digest}"
        case Fate.OFF:
            return f"not sent: agents.{agent}.alerts.off names its kind"
        case Fate.ESCALATED:
            return f"a blocker was sent instead (agents.{agent}.alerts.on_stuck)"
        case Fate.LATE:
            return "not sent: its run had ended"


def row_document(row: RunRow, number: int, now_ms: int) -> FeedDocument:
    """A run that has changed, for a follower; ``number`` is the newest event that it shows."""
    document: Document = {
        "type": ROW,
        "seq": number,
        "runId": row.run_id,
        "label": row.label,
        "agentId": row.agent_id,
        "occurredAt": iso(now_ms),
        "row": document_of(row),
    }
    return FeedDocument(number=number, name=ROW, document=document)


def _shown(value: object) -> object:
    """A stored value as the wire has it: texts cut, points in time as everywhere."""
    if isinstance(value, str):
        return shortened(value, TEXT_CHARS_MAX)
    if isinstance(value, dict):
        return dict(_field(name, each) for name, each in value.items())
    if isinstance(value, list | tuple):
        return [_shown(each) for each in value]
    return value


def _field(name: str, value: object) -> tuple[str, object]:
    if isinstance(value, int) and not isinstance(value, bool) and _MOMENT.match(name):
        moment = name.removesuffix("Ms").removesuffix("At")
        return (f"{moment}At" if moment != "at" else "occurredAt"), iso(value)
    return name, _shown(value)
