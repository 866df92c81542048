"""Which part of a JSON document is printed, and how: ``--json=FIELDS``, ``--jq``, ``--format``.

Every command with ``--json`` takes them; they are read before the command's own flags, so that
none has to declare them.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from subagents.errors import UsageError

JSON: Final = "--json"
JQ: Final = "--jq"
FORMAT: Final = "--format"
_FIELD: Final = re.compile(r"\{([^{}]*)\}|\{\{|\}\}")
_ESCAPES: Final = {"\\t": "\t", "\\n": "\n"}
MISSING: Final = "-"
"""What a template prints for null and for a field that this row does not have."""


class View(NamedTuple):
    """What was asked for; at most one of the three."""

    fields: tuple[str, ...] = ()
    """Names, with dots below an object: ``outcome.status``."""
    jq: str | None = None
    template: str | None = None


def taken_from(arguments: Sequence[str]) -> tuple[list[str], View | None]:
    """The arguments for the command, with a plain ``--json``, and the view; None = none is asked.

    Raises:
        UsageError: A value is missing, or two of the three are given.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept: list[str] = []
    views: list[View] = []
    words = iter(arguments[:end])
    for word in words:
        name, is_one_word, value = word.partition("=")
        if name == JSON and is_one_word:
            fields = tuple(each.strip() for each in value.split(",") if each.strip())
            if not fields:
                raise UsageError(f"{JSON}= needs names of fields", hint=f"{JSON}=runId,label")
            views.append(View(fields=fields))
        elif name in {JQ, FORMAT}:
            given = value if is_one_word else next(words, None)
            if given is None:
                raise UsageError(f"{name} needs a value", details={"field": name})
            views.append(View(jq=given) if name == JQ else View(template=given))
        else:
            kept.append(word)
    if len(views) > 1:
        raise UsageError(f"give one of {JSON}=FIELDS, {JQ} and {FORMAT}")
    if not views:
        return list(arguments), None
    if JSON not in kept:
        kept.append(JSON)
    return [*kept, *arguments[end:]], views[0]


def shown(document: object, view: View) -> Iterator[object]:
    """What is printed, in order: a text as a line, anything else as JSON.

    Args:
        document: As the command answers it.
        view: What was asked for.

    Raises:
        UsageError: There is no such field, the expression is none, or ``jq`` is not installed.
    """
    plain = msgspec.to_builtins(document)
    if view.jq is not None:
        yield from _filtered(plain, view.jq)
        return
    rows, is_list = _rows(plain)
    wanted = view.fields if view.template is None else tuple(_names(view.template))
    _check(wanted, rows)
    if view.template is not None:
        for row in rows:
            yield _filled(view.template, row)
        return
    found = [{name: _at(row, name) for name in wanted} for row in rows]
    if is_list:
        yield found
    else:
        yield from found


def _rows(document: object) -> tuple[list[Mapping[str, object]], bool]:
    """The objects that a document lists first, or the document itself, which every run is."""
    if not isinstance(document, dict):
        raise UsageError("this answer has no fields", hint=f"use {JQ}")
    for value in () if "runId" in document else document.values():
        if isinstance(value, list) and all(isinstance(each, dict) for each in value):
            return value, True
    return [document], False


def _check(wanted: Iterable[str], rows: Sequence[Mapping[str, object]]) -> None:
    known = dict.fromkeys(name for row in rows for name in row)
    for name in wanted:
        first = name.partition(".")[0]
        if rows and first not in known:
            near = difflib.get_close_matches(first, list(known), n=1)
            guess = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(
                f"there is no field {name!r}{guess}", hint=f"there are: {', '.join(known)}"
            )


def _at(row: Mapping[str, object], name: str) -> object:
    found: object = row
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _names(template: str) -> Iterator[str]:
    for found in _FIELD.finditer(template):
        if found[1] is not None:
            yield found[1]


def _filled(template: str, row: Mapping[str, object]) -> str:
    def value(found: "re.Match[str]") -> str:
        return _text(_at(row, found[1])) if found[1] is not None else found[0][0]

    for written, meant in _ESCAPES.items():
        template = template.replace(written, meant)
    return _FIELD.sub(value, template)


def _text(value: object) -> str:
    if value is None:
        return MISSING
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _filtered(document: object, expression: str) -> Iterator[object]:
    try:
        import jq  # type: ignore[import-not-found]  # noqa: PLC0415  an extra, without types
    except ImportError as error:
        raise UsageError(
            f"{JQ} needs the package jq",
            hint="pip install 'subagents[jq]', or pipe the output of --json into jq",
        ) from error
    try:
        yield from jq.compile(expression).input_value(document)
    except ValueError as error:
        raise UsageError(f"{JQ}: {error}", details={"field": JQ}) from error
