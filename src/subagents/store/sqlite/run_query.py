"""``RunFilter`` as SQL: one list of conditions, for lists and counts alike.

A condition that is not asked for is not in the statement: one that can be off by a parameter would
keep SQLite from using an index.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from subagents.domain.run.run import Run
from subagents.domain.run.values import Value
from subagents.ports import RunFilter

Parameters: TypeAlias = dict[str, object]

CONDITIONS: Final[Mapping[str, str]] = {
    "below": """run_id IN (
        WITH RECURSIVE below(id) AS (
          VALUES (:below)
          UNION SELECT child.run_id FROM run AS child JOIN below ON child.requester_run = below.id
        ) SELECT id FROM below)""",
    "plan": "plan = :plan",
    "label": "label = :label",
    "requester_run": "requester_run = :requester_run",
    "requester": "requester = :requester",
    "agent_id": "agent_id = :agent_id",
    "phases": "phase IN (SELECT value FROM json_each(:phases))",
    "outcomes": "outcome IN (SELECT value FROM json_each(:outcomes))",
    "top": "requester_run IS NULL",
    "plans": "plan = run_id",
    "keeps_session": "keeps_session = :keeps_session",
    "since_ms": "created_at_ms >= :since_ms",
    "until_ms": "created_at_ms < :until_ms",
    "active_since_ms": "(ended_at_ms IS NULL OR ended_at_ms >= :active_since_ms)",
    "ended_after_ms": "ended_at_ms >= :ended_after_ms",
    "tags": """NOT EXISTS (
        SELECT 1 FROM json_each(:tags) AS wanted WHERE wanted.value NOT IN (
          SELECT value FROM json_each(CASE WHEN json_valid(run.tags) THEN run.tags ELSE '[]' END)
        ))""",
    "directory": "rtrim(:directory, '/') || '/' ="
    " substr(directory || '/', 1, length(rtrim(:directory, '/')) + 1)",
    "text": "mentions(label, origin, :text)",
}
"""By the field of the filter, in the order in which they are tried."""
MOVING: Final = ("phases", "outcomes", "active_since_ms", "ended_after_ms")
"""What these ask for is right in the rows of runs that are over only (``open_runs``)."""
OPEN_ONES: Final = "is_over = 0 AND run_id IN (SELECT value FROM json_each(:open))"
INDEXED: Final = ("below", "plan", "label", "requester_run", "requester")
"""The first of these that is asked for leaves the fewest rows."""
_encode: Final = msgspec.json.Encoder().encode


def narrowed(
    statement: str, where: RunFilter, open_runs: Callable[[], Iterable[Run]]
) -> tuple[str, Parameters]:
    """``statement`` with the conditions in the place of its TRUE, and the parameters these name.

    Args:
        statement: A query of ``run``.
        where: Its limit and offset are not looked at.
        open_runs: Gives all that are not over; called when the filter needs to know.
    """
    off = {"tags": (), "top": False, "plans": False}
    asked = [name for name in CONDITIONS if getattr(where, name) != off.get(name)]
    best = next((name for name in INDEXED if name in asked), None)
    conditions = [] if where.archived else ["archived_at_ms IS NULL"]
    # A plus keeps SQLite from the index of a column.
    conditions += [
        f"+{CONDITIONS[name]}" if name in INDEXED and name != best else CONDITIONS[name]
        for name in asked
        if name not in MOVING
    ]
    values = {name: _value(getattr(where, name)) for name in asked}
    if moving := [CONDITIONS[name] for name in asked if name in MOVING]:
        values["open"] = _encode([run.id for run in open_runs() if _matches(run, where)]).decode()
        conditions.append(f"({' AND '.join(['is_over = 1', *moving])} OR {OPEN_ONES})")
    return statement.replace("TRUE", "\n  AND ".join(["TRUE", *conditions]), 1), values


def _matches(run: Run, where: RunFilter) -> bool:
    """What the conditions of ``MOVING`` say, of the run as it is now."""
    ended_ms, since_ms, after_ms = run.ended_at_ms, where.active_since_ms, where.ended_after_ms
    status = None if run.outcome is None else run.outcome.status
    return (
        (where.phases is None or run.phase in where.phases)
        and (where.outcomes is None or status in where.outcomes)
        and (since_ms is None or ended_ms is None or ended_ms >= since_ms)
        and (after_ms is None or (ended_ms is not None and ended_ms >= after_ms))
    )


def _value(field: object) -> object:
    return _encode(field).decode() if isinstance(field, tuple) else field


class _Spec(Value, frozen=True):
    task: str = ""


class _Asked(Value, frozen=True):
    spec: _Spec = _Spec()


_asked: Final = msgspec.json.Decoder(_Asked)


def mentions(label: object, origin: object, text: str) -> bool:
    """The SQL function: whether the label or the task contains ``text``, in whichever case."""
    text = text.casefold()
    if isinstance(label, str) and text in label.casefold():
        return True
    try:
        asked = _asked.decode(origin if isinstance(origin, bytes) else b"")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False  # a damaged row is found when it is read
    return text in asked.spec.task.casefold()
