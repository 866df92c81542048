"""What every answer of the daemon is made of: one struct per answer, one spelling of time.

Cheap to import: the command line reads answers with these structs and must start fast. What needs
the domain stands in ``api/answers``, where the structs are built.

They are not the domain's values themselves, which leave out what stands at its default, refuse
words that they do not know, and change with what is stored. ``made`` shows a value as its answer.

Rules of the wire, held by tests:

- a point in time is named ``…At`` and is ISO 8601 in UTC with milliseconds;
- a duration is named ``…Ms`` and is an integer, unless a protocol names it otherwise;
- ``attempts`` is the list of them, ``attempt`` the newest number, ``attemptsMax`` how many at most;
- what was not reported is null, never 0.

The literal below a field is its description: readers of the code see it, and ``field_docs`` puts it
into the OpenAPI document.
"""

from typing import Annotated, TypeAlias, TypeVar

import msgspec

from subagents.errors import DaemonUnreachable
from subagents.text import iso

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")

Document: TypeAlias = dict[str, object]
"""An answer as it came, not read."""
Time: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
"""A point in time: ``2026-11-22T17:26:10.123Z``."""


class WireStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Part of an answer.

    Read leniently: unknown fields (a newer daemon) are ignored, missing ones (an older daemon) have
    their defaults.
    """


class NamedRun(WireStruct, frozen=True, kw_only=True):
    """A run, by its id and its name."""

    run_id: str
    """Its id; it never changes."""
    label: str = ""
    """The name it was given, or one made from its task."""


def read(document: object, kind: type[T]) -> T:
    """An answer as its struct.

    Raises:
        DaemonUnreachable: It is not what this version expects.
    """
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError:
        pass  # perhaps only its times: rewriting them all costs too much to do it always
    try:
        return msgspec.convert(_with_times(document), kind)
    except msgspec.ValidationError as error:
        raise DaemonUnreachable(
            f"the daemon's answer is not understood: {error}",
            hint="daemon and command line are of different versions: subagents down, then up",
        ) from error


def _with_times(value: object, name: str = "") -> object:
    """An answer with its times as they are now: a daemon of version 0.1 gives milliseconds."""
    if isinstance(value, dict):
        return {key: _with_times(each, str(key)) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_times(each) for each in value]
    is_time = name.endswith("At") or name == "deadline"
    return iso(value) if is_time and isinstance(value, int) else value


def made(kind: type[S], value: object = None, /, **others: object) -> S:
    """A value as this answer shows it: by the names that both have, and by theirs what is in it.

    Args:
        kind: The answer.
        value: Has all of its fields but the others; ``…_at`` is its ``…_at_ms``, or its ``…_ms``.
            None = what is not among the others has its default.
        others: Fields that the value does not have, or has otherwise.

    Raises:
        AttributeError: The value lacks a field.
        KeyError: The answer has no such field.
    """
    names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    found = {names[name]: each for name, each in others.items()}
    if value is not None:
        found |= {names[name]: _named(value, name) for name in names if name not in others}
    return msgspec.convert(found, kind, from_attributes=True)


def _named(value: object, name: str) -> object:
    if not name.endswith("_at"):
        return getattr(value, name)
    at_ms = f"{name}_ms"
    return iso_or_none(getattr(value, at_ms if hasattr(value, at_ms) else f"{name[:-3]}_ms"))


def document_of(found: msgspec.Struct) -> Document:
    """The struct as it goes over the wire."""
    document: Document = msgspec.to_builtins(found)
    return document


def iso_or_none(at_ms: int | None) -> str | None:
    """Milliseconds since the epoch as a point in time, of what may not have happened."""
    return None if at_ms is None else iso(at_ms)
