"""Changes one entry of somebody else's JSON file and leaves every other character as it is.

Harnesses keep their configuration in JSON, in JSON with comments (opencode, Gemini) or in JSON5
(OpenClaw), and people order and comment it. A parser that gives back values alone would lose all
that, so this one keeps where things stand, and a change is a splice of the text.

Source: 5-surfaces §1 (``mcp install`` prints the change first).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from subagents.errors import ConfigError

DEPTH_MAX: Final = 200
_SPACE: Final = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^'\\]|\\.)*'", re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z_$][\w$]*")
_ATOM: Final = re.compile(r"[+-]?[\w.]+(?:[+-]\d+)?")
_WORDS: Final[Mapping[str, object]] = {"true": True, "false": False, "null": None}
_ESCAPES: Final[Mapping[str, str]] = {
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "0": "\0",
    "\n": "",
    "\r\n": "",
}
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|\r\n|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Member:
    """One ``name: value`` of an object."""

    name: str
    start: int
    node: "Node"


@dataclass(frozen=True, slots=True)
class Node:
    """One value and where it stands in the text."""

    start: int
    end: int
    value: object
    members: tuple[Member, ...] = ()
    """Of an object, in their order."""

    def member(self, name: str) -> Member | None:
        """The one that counts when a name is given twice: the last."""
        return next((each for each in reversed(self.members) if each.name == name), None)


def parse(text: str) -> Node:
    """The value that a JSON, JSONC or JSON5 text holds.

    Raises:
        ConfigError: It is none of these; line and column are named.
    """
    reader = _Reader(text)
    node = reader.value(reader.skip(0), depth=0)
    if reader.skip(node.end) != len(text):
        raise reader.broken(reader.skip(node.end), "the end")
    return node


def with_entry(text: str, path: Sequence[str], value: object) -> str:
    """``text`` with ``value`` at ``path``; objects on the way are made where there are none.

    Raises:
        ConfigError: The text cannot be read, or something on the way is not an object.
    """
    before, (node, rest) = parse(text).value, _descend(text, path)
    if rest:
        below = value
        for name in reversed(rest[1:]):
            below = {name: below}
        changed = _appended(text, node, rest[0], below)
    else:
        found = _parent(text, path).member(path[-1])
        if found is None or found.node.value == value:
            return text
        rendered = _rendered(value, _indent_at(text, found.start), text)
        changed = text[: found.node.start] + rendered + text[found.node.end :]
    return _checked(changed, _with(before, path, value))


def without_entry(text: str, path: Sequence[str]) -> str:
    """``text`` without what is at ``path``; the same when nothing is there.

    Raises:
        ConfigError: The text cannot be read.
    """
    _, rest = _descend(text, path)
    parent = _parent(text, path)
    member = parent.member(path[-1])
    if rest or member is None:
        return text
    wanted = _without(parse(text).value, path)
    index = parent.members.index(member)
    end = member.node.end
    start = len(text[: member.start].rstrip(" \t"))
    comma = _comma_after(text, end)
    if comma is not None:
        end = comma + 1
    elif index:
        # The last one goes, and with it the comma that announced it.
        before = _comma_after(text, parent.members[index - 1].node.end)
        if before is not None:
            text = f"{text[:before]}{text[before + 1 :]}"
            start, end = start - 1, end - 1
    if text[:start].endswith("\n"):
        start -= 2 if text[:start].endswith("\r\n") else 1
    return _checked(text[:start] + text[end:], wanted)


def _with(document: object, path: Sequence[str], value: object) -> object:
    if not path:
        return value
    known = document if isinstance(document, dict) else {}
    return {**known, path[0]: _with(known.get(path[0]), path[1:], value)}


def _without(document: object, path: Sequence[str]) -> object:
    if not isinstance(document, dict):
        return document
    if len(path) == 1:
        return {name: value for name, value in document.items() if name != path[0]}
    return {**document, path[0]: _without(document.get(path[0]), path[1:])}


def _checked(text: str, wanted: object) -> str:
    """The changed text, once it is known to say what it should and nothing else."""
    if parse(text).value != wanted:
        raise ConfigError("it is written in a form not known here", hint="change it by hand")
    return text


def _descend(text: str, path: Sequence[str]) -> tuple[Node, Sequence[str]]:
    """The deepest object there is on the way, and the names that lead on from there."""
    node = parse(text)
    for index, name in enumerate(path):
        if not isinstance(node.value, dict):
            at = ".".join(path[:index]) or "the whole"
            raise ConfigError(f"{at} is not an object", hint="mend it by hand first")
        found = node.member(name)
        if found is None:
            return node, path[index:]
        node = found.node
    return node, ()


def _parent(text: str, path: Sequence[str]) -> Node:
    return _descend(text, path[:-1])[0]


def _appended(text: str, node: Node, name: str, value: object) -> str:
    """One more member at the end of an object, in the style of those before it."""
    close = node.end - 1
    key = json.dumps(name)
    if node.members and "\n" not in text[node.start : node.end]:
        rendered = f"{key}: {json.dumps(value, ensure_ascii=False)}"
        last = node.members[-1].node.end
        return f"{text[:last]}, {rendered}{text[last:]}"
    newline = _newline(text)
    outer = _indent_at(text, node.start)
    inner = _inner_indent(text, node, outer)
    rendered = f"{inner}{key}: {_rendered(value, inner, text)}"
    head = text[:close].rstrip()
    comma = ""
    if node.members:
        last = node.members[-1].node.end
        if _comma_after(text, last) is None:
            head = f"{head[:last]},{head[last:]}"
        else:
            comma = ","
    return f"{head}{newline}{rendered}{comma}{newline}{outer}{text[close:]}"


def _rendered(value: object, indent: str, text: str) -> str:
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return f"{_newline(text)}{indent}".join(lines)


def _comma_after(text: str, position: int) -> int | None:
    found = _Reader(text).skip(position)
    return found if text[found : found + 1] == "," else None


def _indent_at(text: str, position: int) -> str:
    """The white space at the beginning of the line in which ``position`` is."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _inner_indent(text: str, node: Node, outer: str) -> str:
    """Where the members of an object begin that stand in lines of their own."""
    for member in node.members:
        before = text[text.rfind("\n", 0, member.start) + 1 : member.start]
        if not before.strip() and "\n" in text[: member.start]:
            return before
    return outer + _unit(text)


def _unit(text: str) -> str:
    """One step of indentation as this file has it; two spaces when it has none."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


class _Reader:
    """Recursive descent over one text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def skip(self, position: int) -> int:
        """Past white space and comments."""
        found = _SPACE.match(self._text, position)
        return found.end() if found else position

    def value(self, position: int, *, depth: int) -> Node:
        if depth > DEPTH_MAX:
            raise self.broken(position, f"at most {DEPTH_MAX} levels")
        match self._text[position : position + 1]:
            case "{":
                return self._object(position, depth)
            case "[":
                return self._array(position, depth)
            case '"' | "'":
                value, end = self._string(position)
                return Node(position, end, value)
            case _:
                return self._atom(position)

    def _object(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        position = self.skip(start + 1)
        while not self._is(position, "}"):
            name_at = position
            name, position = self._name(position)
            position = self._past(self.skip(position), ":")
            node = self.value(self.skip(position), depth=depth + 1)
            members.append(Member(name, name_at, node))
            position = self._next(node.end, "}")
        value = {each.name: each.node.value for each in members}
        return Node(start, position + 1, value, tuple(members))

    def _array(self, start: int, depth: int) -> Node:
        values: list[object] = []
        position = self.skip(start + 1)
        while not self._is(position, "]"):
            node = self.value(position, depth=depth + 1)
            values.append(node.value)
            position = self._next(node.end, "]")
        return Node(start, position + 1, values)

    def _next(self, position: int, closing: str) -> int:
        """Where the next element or the closing bracket stands."""
        position = self.skip(position)
        if self._is(position, closing):
            return position
        return self.skip(self._past(position, ","))

    def _name(self, position: int) -> tuple[str, int]:
        if self._text[position : position + 1] in {'"', "'"}:
            return self._string(position)
        found = _NAME.match(self._text, position)
        if found is None:
            raise self.broken(position, "a name")
        return found[0], found.end()

    def _string(self, position: int) -> tuple[str, int]:
        found = _STRING.match(self._text, position)
        if found is None:
            raise self.broken(position, "the end of a string")
        return _ESCAPE.sub(_unescaped, found[0][1:-1]), found.end()

    def _atom(self, position: int) -> Node:
        found = _ATOM.match(self._text, position)
        if found is None:
            raise self.broken(position, "a value")
        word = found[0]
        if word in _WORDS:
            return Node(position, found.end(), _WORDS[word])
        try:
            value: object = int(word, 0) if re.fullmatch(r"[+-]?0[xX]\w+", word) else float(word)
        except ValueError:
            raise self.broken(position, "a value") from None
        return Node(position, found.end(), value)

    def _is(self, position: int, character: str) -> bool:
        return self._text[position : position + 1] == character

    def _past(self, position: int, character: str) -> int:
        if not self._is(position, character):
            raise self.broken(position, f'"{character}"')
        return position + 1

    def broken(self, position: int, wanted: str) -> ConfigError:
        before = self._text[:position]
        line, column = before.count("\n") + 1, position - before.rfind("\n")
        found = self._text[position : position + 10].split("\n")[0] or "nothing"
        return ConfigError(f"line {line}, column {column}: {wanted} is expected, not {found!r}")


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if len(code) > 2 or code[0] == "x":
        return chr(int(code[1:], 16)) if code[0] in "ux" else ""
    return _ESCAPES.get(code, code)
