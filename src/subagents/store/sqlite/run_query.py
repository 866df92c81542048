"""``RunFilter`` as SQL: one list of conditions, for lists and counts alike.

A condition that is not asked for is not in the statement: one that can be off by a parameter would
keep SQLite from using an index.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

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
INDEXED: Final = ("below", "plan", "label", "requester_run", "requester")
"""The first of these that is asked for leaves the fewest rows."""
_encode: Final = msgspec.json.Encoder().encode


def narrowed(statement: str, where: RunFilter) -> tuple[str, Parameters]:
    """``statement`` with the conditions in the place of its TRUE, and the parameters these name."""
    off = {"tags": (), "top": False, "plans": False}
    asked = [name for name in CONDITIONS if getattr(where, name) != off.get(name)]
    best = next((name for name in INDEXED if name in asked), None)
    conditions = [] if where.archived else ["archived_at_ms IS NULL"]
    # A plus keeps SQLite from the index of a column.
    conditions += [
        f"+{CONDITIONS[name]}" if name in INDEXED and name != best else CONDITIONS[name]
        for name in asked
    ]
    values = {name: _value(getattr(where, name)) for name in asked}
    return statement.replace("TRUE", "\n  AND ".join(["TRUE", *conditions]), 1), values


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
