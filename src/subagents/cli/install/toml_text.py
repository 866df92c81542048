"""Adds one table to somebody else's TOML file, or takes it away, and changes nothing else.

Source: 5-surfaces §1 (``mcp install``).
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Final

from subagents.errors import ConfigError

_HEADER: Final = re.compile(r"^\s*\[")
_CONTENT: Final = re.compile(r"^\s*[^\s#]")


def table(path: Sequence[str], entry: Mapping[str, object]) -> str:
    """The text of a table: texts, numbers and lists in it, tables below it."""
    plain = {name: value for name, value in entry.items() if not isinstance(value, Mapping)}
    lines = [f"[{'.'.join(path)}]", *(f"{name} = {_value(value)}" for name, value in plain.items())]
    below = [
        table([*path, name], value) for name, value in entry.items() if isinstance(value, Mapping)
    ]
    return "\n".join(["\n".join(lines) + "\n", *below])


def _value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_value(each) for each in value)}]"
    return json.dumps(value, ensure_ascii=False)


def with_table(text: str, path: Sequence[str], entry: Mapping[str, object]) -> str:
    """``text`` with the table at its end; the same when it is there already.

    Raises:
        ConfigError: The text is no TOML, or there is another table of that name.
    """
    known = _at(_parsed(text), path)
    name = ".".join(path)
    if known is not None:
        if known == entry:
            return text
        raise ConfigError(
            f"there is a table [{name}] already, and it is another one",
            hint="look at it, then take it away by hand or with: subagents mcp uninstall",
        )
    head = f"{text.rstrip()}\n\n" if text.strip() else ""
    changed = head + table(path, entry)
    try:
        is_right = _at(_parsed(changed), path) == entry
    except ConfigError:
        is_right = False
    if not is_right:
        raise ConfigError(
            f"[{name}] cannot be put at the end: what it belongs to is written in another form",
            hint="add it by hand; it is printed by: subagents mcp config",
        )
    return changed


def without_table(text: str, path: Sequence[str]) -> str:
    """``text`` without the table and those below it; the same when there is none.

    Raises:
        ConfigError: The text is no TOML, or the table is written in a form not known here.
    """
    before = _parsed(text)
    if _at(before, path) is None:
        return text
    kept: list[str] = []
    is_ours = False
    held: list[str] = []
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line):
            was_ours, is_ours = is_ours, _names(line)[: len(path)] == list(path)
            if is_ours and not was_ours:
                # The empty lines before it came with it.
                kept = "".join(kept).rstrip().splitlines(keepends=True)
                kept += ["\n"] if kept else []
            kept += [] if is_ours and was_ours else held
            held = []
        if not is_ours:
            kept.append(line)
        elif _CONTENT.match(line):
            held = []
        else:
            # A comment above the next table is about that one.
            held.append(line)
    changed = "".join([*kept, *held])
    changed = changed.rstrip() + "\n" if changed.strip() else ""
    if _parsed(changed) != _less(before, path):
        raise ConfigError(
            f"{'.'.join(path)} is written in a form not known here", hint="take it away by hand"
        )
    return changed


def _names(header: str) -> list[str]:
    """``[a."b".c]`` → a, b, c."""
    inside = header.strip().lstrip("[").partition("]")[0]
    return [each.strip().strip("\"'") for each in inside.split(".")]


def _parsed(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not valid TOML: {error}") from error


def _at(document: object, path: Sequence[str]) -> object:
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _less(document: Mapping[str, object], path: Sequence[str]) -> dict[str, object]:
    """The document without what is at ``path``, nor the table that held nothing else."""
    first, *rest = path
    below = document.get(first)
    if not rest or not isinstance(below, dict):
        return {name: value for name, value in document.items() if name != first}
    left = _less(below, rest)
    others = {name: value for name, value in document.items() if name != first}
    return {**document, first: left} if left else others
