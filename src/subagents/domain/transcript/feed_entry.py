"""What those who follow the runs are shown of an event.

Two kinds of document: the *structured events*, whose names and fields callers rely on to act on
news (``docs/alerts.md``); and one generic ``run`` event per journal entry, for dashboards. A
structured event has, besides its own fields, ``seq`` (the number in the order of all runs, by
which a follower continues), ``runId``, ``label`` and ``occurredAt``. Its ``agentId`` is the name
by which the caller knows the worker: the run's label.
"""

from typing import Final

from subagents.domain.redaction.redact import redact
from subagents.domain.run.alert import AlertKind
from subagents.domain.run.events import Alerted, Event, ParentNotified
from subagents.domain.run.run import Run
from subagents.domain.run.values import Value
from subagents.text import iso

Document = dict[str, object]

COMPLETION: Final = "completion"
CC_MESSAGE: Final = "cc_message"
RUN: Final = "run"
"""The generic event, of every journal entry."""
ROW: Final = "row"
"""A run as it is after it changed, for those who ask for it in addition to the events."""
NEWS: Final = (*(str(kind) for kind in AlertKind), CC_MESSAGE, COMPLETION)
"""The structured events."""
NAMES: Final = (*NEWS, RUN)


class FeedDocument(Value, frozen=True):
    """One document for a follower."""

    number: int
    """Its place in the order of all runs; two documents of one entry share it."""
    name: str
    """One of ``NAMES``."""
    document: Document


def feed_documents(
    run: Run, event: Event, *, number: int, seq: int, names: frozenset[str]
) -> tuple[FeedDocument, ...]:
    """The documents of one journal entry that are in ``names``; the structured one comes first.

    ``number`` is the entry's in the order of all runs, ``seq`` that within its run. The run may be
    as it is now, or as it was when the entry was written.
    """
    wanted: list[tuple[str, Document]] = []
    name, fields = _news(run, event, seq) or ("", None)
    if name in names:
        # Made only where it is wanted: a result is long, and its secrets are looked for.
        told = _end(run) if fields is None else fields
        own = {"type": "event", "event": name, "agentId": run.resolved.label, **told}
        wanted.append((name, own))
    if RUN in names:
        wanted.append((RUN, _step(run, event)))
    about: Document = {
        "seq": number,
        "runId": run.id,
        "label": run.resolved.label,
        "occurredAt": iso(event.at_ms),
    }
    return tuple(
        FeedDocument(number=number, name=name, document={**fields, **about})
        for name, fields in wanted
    )


def _news(run: Run, event: Event, seq: int) -> tuple[str, Document | None] | None:
    """The name and the own fields, None = those of the end; None for all other events."""
    match event:
        case Alerted(alert=alert):
            return str(alert.kind), dict(alert.fields)
        case ParentNotified(message=message, priority=priority):
            return CC_MESSAGE, {"text": redact(message), "priority": priority}
        case _:
            return (COMPLETION, None) if run.is_settled_by(seq) else None


def _end(run: Run) -> Document:
    """How the run ended; the whole result is in the announcement and in ``result``."""
    outcome = run.outcome
    if outcome is None:
        return {}
    # Redacted before it is cut: half a secret does not look like one.
    text = None if run.result is None else redact(run.result)[: run.resolved.max_announce_chars]
    return {
        "status": outcome.status,
        "reason": outcome.reason,
        "error": None if outcome.error is None else redact(outcome.error),
        "result": text,
        "resultBytes": run.conclusion.bytes_total if run.conclusion is not None else 0,
    }


def _step(run: Run, event: Event) -> Document:
    """The generic event: no texts of workers, nothing secret."""
    return {
        "type": type(event).__name__,
        "agentId": run.resolved.agent_id,
        "requester": run.requester,
        "phase": run.phase,
    }
