"""What a ``RunFilter`` asks for, as far as it is the same in every dialect of SQL."""

from collections.abc import Iterable
from typing import Final

import msgspec

from subagents.domain.rules.wait_causes import states_of
from subagents.domain.run.outcome import Status
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import Value
from subagents.ports import RunFilter

MOVING: Final = ("phases", "outcomes", "states", "active_since_ms", "ended_after_ms", "by_end")
"""Fields that only the rows of runs that are over answer correctly (``open_runs``)."""
_OFF: Final = {"tags": (), "top": False, "plans": False, "folded": False, "by_end": False}
_encode: Final = msgspec.json.Encoder().encode


def asked(where: RunFilter, fields: Iterable[str]) -> list[str]:
    """Those of the fields that leave something out."""
    return [name for name in fields if getattr(where, name) != _OFF.get(name)]


def leads(where: RunFilter, name: str) -> bool:
    """Whether the field leaves out what most runs are: ended, and well."""
    if name == "phases":
        return Phase.COMPLETED not in (where.phases or ())
    return name != "outcomes" or Status.OK not in (where.outcomes or ())


def open_ones(where: RunFilter, open_runs: Iterable[Run]) -> dict[str, object]:
    """Parameters of what asks for fields of ``MOVING``: which open runs fit, and their ends."""
    found = [run for run in open_runs if _fits(run, where)]
    return {
        "open": value_of(tuple(run.id for run in found)),
        "ends": value_of(tuple((run.id, run.ended_at_ms) for run in found)),
    }


def _fits(run: Run, where: RunFilter) -> bool:
    """What the fields of ``MOVING`` ask for, of the run as it is now."""
    ended_ms, since_ms, after_ms = run.ended_at_ms, where.active_since_ms, where.ended_after_ms
    status = None if run.outcome is None else run.outcome.status
    return (
        (where.phases is None or run.phase in where.phases)
        and (where.outcomes is None or status in where.outcomes)
        and (where.states is None or not states_of(run).isdisjoint(where.states))
        and (since_ms is None or ended_ms is None or ended_ms >= since_ms)
        and (after_ms is None or (ended_ms is not None and ended_ms >= after_ms))
        and not (where.by_end and ended_ms is None)
    )


def value_of(field: object) -> object:
    """A field as the parameter of a statement: one of several values is a JSON list."""
    return _encode(field).decode() if isinstance(field, tuple) else field


class _Spec(Value, frozen=True):
    task: str = ""


class _Given(Value, frozen=True):
    model: str | None = None


class _Asked(Value, frozen=True):
    spec: _Spec = _Spec()
    resolved: _Given = _Given()


ID_CHARS_MIN: Final = 3
_ESCAPED: Final = frozenset('"\\')
_asked: Final = msgspec.json.Decoder(_Asked)


def mentions(run_id: object, label: object, origin: object, text: str) -> bool:
    """Whether the label or the task contains ``text``, in whichever case.

    Or the id begins with it, at three characters or more, also without its ``r-``.
    """
    text = text.casefold()
    if len(text) >= ID_CHARS_MIN and str(run_id).startswith((text, f"r-{text}")):
        return True
    if isinstance(label, str) and text in label.casefold():
        return True
    if not isinstance(origin, bytes):
        return False
    # Of many rows few contain it. In ASCII, JSON writes all but these two and control characters
    # as they are, and no other letter folds to one of them.
    is_plain = text.isascii() and text.isprintable() and not _ESCAPED & set(text)
    if is_plain and origin.isascii() and text.encode() not in origin.lower():
        return False
    try:
        asked = _asked.decode(origin)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False  # a damaged row is found when it is read
    return text in asked.spec.task.casefold()


def is_of_model(origin: object, model: str) -> bool:
    """Whether the run was given this model."""
    if not isinstance(origin, bytes) or model.encode() not in origin:
        return False
    try:
        return _asked.decode(origin).resolved.model == model
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
