"""Which part of a JSON document is printed, and how: ``--json=FIELDS``, ``--jq``, ``--format``.

Every command with ``--json`` takes them; they are read before the command's own flags, so that
none has to declare them.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from subagents.cli.parser import near
from subagents.errors import UsageError

JSON: Final = "--json"
JQ: Final = "--jq"
FORMAT: Final = "--format"
_FIELD: Final = r"\{([^{}]*)\}|\{\{|\}\}"
_ESCAPES: Final = {"\\t": "\t", "\\n": "\n"}
FLAGS: Final = (JSON, JQ, FORMAT)
TABLES: Final = ("csv", "json", "jsonl")
"""Values of ``list --format`` that are no template."""
_LISTED: Final = r"[A-Za-z.]+(,[A-Za-z.]+)+"
MISSING: Final = "-"
"""What a template prints for null and for a field that this row does not have."""


class View(NamedTuple):
    """What was asked for; at most one of the three."""

    fields: tuple[str, ...] = ()
    """Names, with dots below an object: ``outcome.status``."""
    jq: str | None = None
    template: str | None = None


def taken_from(
    arguments: Sequence[str], flags: Collection[str] = FLAGS, *, is_separable: bool = True
) -> tuple[list[str], View | None]:
    """The arguments for the command, with a plain ``--json``, and the view; None = none is asked.

    Args:
        arguments: Of the whole command line; what stands behind ``--`` is left alone.
        flags: Those of the three that are looked for.
        is_separable: ``--json runId,label`` is taken as fields, too: no run is named like that.

    Raises:
        UsageError: A value is missing, or two of the three are given.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept: list[str] = []
    views: list[View] = []
    words = list(arguments[:end])
    while words:
        word = words.pop(0)
        name, is_one_word, value = word.partition("=")
        if name not in flags:
            kept.append(word)
        elif name == JSON:
            # `--json last` names a run: only with a comma are words behind it fields.
            if not is_one_word and is_separable and words and re.fullmatch(_LISTED, words[0]):
                value = words.pop(0)
            elif not is_one_word:
                kept.append(word)
                continue
            fields = tuple(each.strip() for each in value.split(",") if each.strip())
            if not fields:
                raise UsageError(f"{JSON}= needs names of fields", hint=f"{JSON}=runId,label")
            views.append(View(fields=fields))
        else:
            given = value if is_one_word else _value_of(name, words)
            if name == FORMAT and given in TABLES:
                # The command's own: a whole table, where a template would have fields.
                kept += [name, given]
            else:
                views.append(View(jq=given) if name == JQ else View(template=given))
    if len(views) > 1:
        raise UsageError(f"give one of {JSON}=FIELDS, {JQ} and {FORMAT}")
    if not views:
        return list(arguments), None
    if JSON not in kept:
        kept.append(JSON)
    return [*kept, *arguments[end:]], views[0]


def _value_of(flag: str, words: list[str]) -> str:
    if not words:
        raise UsageError(f"{flag} needs a value", details={"field": flag})
    return words.pop(0)


def shown(document: object, view: View, *, is_one_of_many: bool = False) -> Iterator[object]:
    """What is printed, in order: a text as a line, anything else as JSON.

    A document that ``is_one_of_many`` may lack fields that others have: they are null.

    Raises:
        UsageError: There is no such field, the expression is none, or ``jq`` is not installed.
    """
    from msgspec import to_builtins  # noqa: PLC0415  a plain --json needs none of it

    plain = to_builtins(document)
    if view.jq is not None:
        yield from _filtered(plain, view.jq)
        return
    if not isinstance(plain, dict):
        raise UsageError("this answer has no fields", hint=f"use {JQ}")
    wanted = view.fields if view.template is None else tuple(_names(view.template))
    rows, is_list = ([plain], False) if is_one_of_many else _rows(plain, wanted)
    if view.template is not None:
        for row in rows:
            yield _filled(view.template, row)
        return
    found = [{name: _at(row, name) for name in wanted} for row in rows]
    if is_list:
        yield found
    else:
        yield from found


def _rows(
    document: Mapping[str, object], wanted: Sequence[str]
) -> tuple[list[Mapping[str, object]], bool]:
    """The objects that have these fields, and whether they are a list.

    They are those that the document lists first, with all below them in a tree, else the document
    itself; for a run it is the other way round.

    Raises:
        UsageError: Neither has them.
    """
    listed = next((name for name, each in document.items() if _is_list_of_objects(each)), None)
    candidates: list[tuple[list[Mapping[str, object]], tuple[str, ...]]] = [([document], ())]
    if listed is not None:
        candidates.append(([*_flat(document[listed])], (listed,)))
    # A run has lists, too (its children), but is what was asked for.
    if "runId" not in document:
        candidates.reverse()
    refusals = []
    for rows, place in candidates:
        refusal = next(
            filter(None, (_refusal(document, rows, place, each) for each in wanted)), None
        )
        if refusal is None:
            return rows, bool(place)
        refusals.append(refusal)
    # The one that knows what was meant.
    raise max(refusals, key=lambda each: "did you mean" in each.message)


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _flat(rows: object) -> Iterator[Mapping[str, object]]:
    for row in rows if isinstance(rows, list) else ():
        yield row
        below = row.get("children")
        if _is_list_of_objects(below):
            yield from _flat(below)


def _refusal(
    document: Mapping[str, object],
    rows: Sequence[Mapping[str, object]],
    place: Sequence[str],
    name: str,
) -> UsageError | None:
    """Why no row has such a field; None = one may."""
    inside: list[Mapping[str, object]] = list(rows)
    path = list(place)
    parts = name.split(".")
    for number, part in enumerate(parts, start=1):
        known: dict[str, None] = dict.fromkeys(key for each in inside for key in each)
        if part not in known:
            # Null, an empty list, or left out: then those count that could be there.
            from subagents.api.answers.declared_fields import fields_of  # noqa: PLC0415

            declared = fields_of(document, path)
            if declared is not None:
                known |= dict.fromkeys(declared)
            elif not inside and path == list(place) and len(document) > 1:
                known = dict.fromkeys(document)
            elif not inside:
                return None
            if part not in known or (not inside and declared is None):
                text = f"there is no field {name!r}{near(part, known)}"
                # Quoted: these are names of fields, and no flags are said in their place.
                names = ", ".join(f"'{each}'" for each in known)
                return UsageError(text, hint=f"there are: {names}")
        path.append(part)
        found = [each.get(part) for each in inside]
        if number < len(parts) and any(isinstance(each, list) for each in found):
            return UsageError(f"{part!r} in {name!r} is a list", hint=f"give {part}, or use {JQ}")
        inside = [each for each in found if isinstance(each, Mapping)]
    return None


def _at(row: Mapping[str, object], name: str) -> object:
    found: object = row
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _names(template: str) -> Iterator[str]:
    for found in re.finditer(_FIELD, template):
        if found[1] is not None:
            yield found[1]


def _filled(template: str, row: Mapping[str, object]) -> str:
    def value(found: "re.Match[str]") -> str:
        return _text(_at(row, found[1])) if found[1] is not None else found[0][0]

    # Within the quotes of a shell neither can be written otherwise.
    for written, meant in _ESCAPES.items():
        template = template.replace(written, meant)
    return re.sub(_FIELD, value, template)


def _text(value: object) -> str:
    if value is None:
        return MISSING
    if isinstance(value, str):
        return value
    from msgspec import json  # noqa: PLC0415

    return json.encode(value).decode()


def _filtered(document: object, expression: str) -> Iterator[object]:
    try:
        import jq  # type: ignore[import-not-found]  # noqa: PLC0415  an extra, without types
    except ImportError as error:
        from subagents.installation import extra_command  # noqa: PLC0415

        raise UsageError(
            f"{JQ} needs the package jq",
            hint=f"{extra_command('jq')}, or pipe the output of --json into jq",
        ) from error
    try:
        yield from jq.compile(expression).input_value(document)
    except ValueError as error:
        raise UsageError(f"{JQ}: {error}", details={"field": JQ}) from error
