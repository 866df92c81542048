"""TOML, YAML, JSON and JSON5 that others wrote, as plain values: bounded in work and in depth.

The parsers of these languages promise neither. A few hundred bytes of YAML can stand for billions
of values, and one line of TOML can keep a processor for a minute. What these functions return is at
most ``DEPTH_MAX`` deep, so that whatever looks at it may recurse; a refusal names the line and no
value, which may be a password.
"""

import re
import tomllib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

if TYPE_CHECKING:
    from ruamel.yaml import YAML

T = TypeVar("T")

BYTE_ORDER_MARK: Final = "\ufeff"
"""A mark that is no part of a document when it begins with it."""
DEPTH_MAX: Final = 100
"""Tables and lists within each other."""
KEY_PARTS_MAX: Final = 32
"""Names with dots between them: ``tomllib`` takes time with the square of their number."""
DOTTED_NAMES_MAX: Final = 100_000
"""The most that all such keys together may have: each makes several tables for each name."""
DIGITS_MAX: Final = 4_300
"""Python reads no longer integer."""
INTEGER_BITS_MAX: Final = 4_096
"""The longest whole number; longer ones, which hexadecimal numbers can be, could not be shown."""
YAML_CHARS_MAX: Final = 1024 * 1024
YAML_VALUES_MAX: Final = 30_000
"""The most values as written, and with those that aliases repeat and merges copy. The parser takes
about 50 microseconds for each."""
JSON5_CHARS_MAX: Final = 64 * 1024
"""Its parser takes about twenty microseconds for each."""
_TOML_POSITION: Final = re.compile(r" \(at line (\d+), column (\d+)\)$")
_KEY_PART: Final = re.compile(
    r"""[ \t]{0,100}(?:[A-Za-z0-9_-]+|"[^"\\\n]{0,100}"|'[^'\n]{0,100}')[ \t]{0,100}"""
)
_QUOTED: Final = re.compile(r"""'(?!<)[^']{2,}'|"[^"]{2,}"|(?<=alias )\S+""")
"""What YAML's parser shows of a document, other than its words for what it met."""


class BadDocument(ValueError):
    """It cannot be read; nothing that it says is in the message but names of keys."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        """
        Args:
            reason: One line.
            line: From 1; None = it is not known.
            column: From 1, with ``line`` alone.
        """
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column

    def at(self, name: str) -> str:
        """``plan.toml:2:5: Invalid value``."""
        numbers = (self.line, self.column)
        place = "".join(f":{number}" for number in numbers if number is not None)
        return f"{name}{place}: {self.reason}"


def toml(text: str) -> dict[str, object]:
    """
    Raises:
        BadDocument: It is no TOML, or too deep.
    """
    # Before its parser, which would take minutes for such a key.
    _require_short_keys(text)
    try:
        return _plain(tomllib.loads(text.removeprefix(BYTE_ORDER_MARK)))
    except tomllib.TOMLDecodeError as error:
        at = _TOML_POSITION.search(str(error))
        reason = str(error).removesuffix(" (at end of document)")
        if at is None:
            raise BadDocument(reason, text.count("\n") + 1) from error
        raise BadDocument(reason[: at.start()], int(at[1]), int(at[2])) from error
    except BadDocument:
        raise
    except ValueError as error:  # Python's own refusal of an integer of thousands of digits
        lines = enumerate(text.split("\n"), 1)
        long = (number for number, line in lines if len(line) > DIGITS_MAX)
        raise BadDocument(f"a number of over {DIGITS_MAX:,} digits", next(long, None)) from error
    except RecursionError as error:
        raise BadDocument("nested too deeply") from error


def json(text: str) -> object:
    """
    Raises:
        BadDocument: It is no JSON, or too deep.
    """
    try:
        return _plain(msgspec.json.decode(text.removeprefix(BYTE_ORDER_MARK)))
    except msgspec.DecodeError as error:
        raise BadDocument(str(error)) from error
    except RecursionError as error:
        raise BadDocument("nested too deeply") from error


def json5(text: str) -> object:
    """JSON with comments, trailing commas and unquoted names.

    Raises:
        BadDocument: It is no JSON5, too long, or too deep.
        ImportError: It is no plain JSON, and the package ``json5`` is not installed.
    """
    try:
        return json(text)
    except BadDocument:
        import json5 as json5_package  # noqa: PLC0415  an extra
    if len(text) > JSON5_CHARS_MAX:
        raise BadDocument(f"more than {JSON5_CHARS_MAX:,} characters of JSON5")
    try:
        return _plain(
            json5_package.loads(text.removeprefix(BYTE_ORDER_MARK), allow_duplicate_keys=True)
        )
    except RecursionError as error:
        raise BadDocument("nested too deeply") from error
    except BadDocument:
        raise
    except ValueError as error:
        found = re.match(r"<string>:(\d+)\b.* at column (\d+)", str(error), re.DOTALL)
        line, column = (int(found[1]), int(found[2])) if found else (None, None)
        raise BadDocument("not JSON5", line, column) from error


def yaml(text: str, *, values_max: int = YAML_VALUES_MAX) -> object:
    """The one document that it is.

    Args:
        text: Of any length.
        values_max: As for ``YAML_VALUES_MAX``.

    Raises:
        BadDocument: It is no YAML, is several documents, or is too much: too deep, more than
            ``values_max`` values, or an alias stands for itself.
    """
    from ruamel.yaml.error import MarkedYAMLError  # noqa: PLC0415  only for those who write YAML

    if len(text) > YAML_CHARS_MAX:
        raise BadDocument(f"more than {YAML_CHARS_MAX:,} characters of YAML")
    _require_shallow_lines(text)
    try:
        return _plain(_bounded_yaml(values_max).load(text))
    except BadDocument:
        raise
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = str(error.problem or error.context or "not YAML")
        if type(error).__name__ == "DuplicateKeyError":
            words = "the same key twice"  # Its own words have both values.
        # Behind the first line is advice about the parser's own settings.
        reason = " ".join(_QUOTED.sub("…", words).split("\n")[0].split())
        if mark is None:
            raise BadDocument(reason) from error
        raise BadDocument(reason, mark.line + 1, mark.column + 1) from error
    except RecursionError as error:
        raise BadDocument("nested too deeply") from error
    except Exception as error:  # its parser trips over odd documents in many ways
        raise BadDocument("a date, number, text or key in it is none of YAML") from error


def _plain(value: T) -> T:
    """The value, now safe to go through and to show.

    Raises:
        BadDocument: It is too deep, or holds a number that is too long.
    """
    # Layer by layer and without recursion, whose end is what is looked for.
    layer: list[object] = [value]
    for _ in range(DEPTH_MAX + 1):
        inner: list[object] = []
        for each in layer:
            if isinstance(each, dict):
                inner.extend(each.values())
            elif isinstance(each, list | tuple | set):
                inner.extend(each)
            elif _is_too_long(each):
                raise BadDocument(f"{_place_of(value)}a number of over a thousand digits")
        if not inner:
            return value
        layer = inner
    raise BadDocument("nested too deeply")


def _is_too_long(value: object) -> bool:
    return isinstance(value, int) and value.bit_length() > INTEGER_BITS_MAX


def _place_of(value: object) -> str:
    """``a.b[3] is `` for the first number that is too long; the document is not too deep so far."""
    parts: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list | tuple | set):
        parts = enumerate(value)
    for key, each in parts:
        name = f"[{key}]" if isinstance(key, int) else f".{str(key)[:100]}"
        if _is_too_long(each):
            return f"{name} is ".removeprefix(".")
        if isinstance(each, dict | list | tuple | set) and (inner := _place_of(each)):
            return f"{name}{inner if inner.startswith('[') else f'.{inner}'}".removeprefix(".")
    return ""


def _require_short_keys(text: str) -> None:
    """
    Raises:
        BadDocument: A line has a key of too many parts, or all of them have.
    """
    names = 0
    for number, line in enumerate(text.split("\n"), 1):
        if "." not in line:
            continue
        position = parts = 0
        while position < len(line):
            found = _KEY_PART.match(line, position)
            position = position + 1 if found is None else found.end()
            if found is None or line[position : position + 1] != ".":
                parts = 0
                continue
            parts, names, position = parts + 1, names + 1, position + 1
            if parts >= KEY_PARTS_MAX:
                raise BadDocument(f"more than {KEY_PARTS_MAX} names with dots between them", number)
        if names > DOTTED_NAMES_MAX:
            raise BadDocument(f"more than {DOTTED_NAMES_MAX:,} dots between names", number)


def _require_shallow_lines(text: str) -> None:
    """For YAML's parser, which compares each bracket of a line with all that are open in it.

    Raises:
        BadDocument: So many are.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.count("[") + line.count("{") <= DEPTH_MAX:
            continue
        level = 0
        for bracket in re.findall(r"[\[\]{}]", line):
            level = level + 1 if bracket in "[{" else max(0, level - 1)
            if level > DEPTH_MAX:
                raise BadDocument("nested too deeply", number)


def _bounded_yaml(values_max: int) -> "YAML":
    from ruamel.yaml import YAML  # noqa: PLC0415  only for those who write YAML
    from ruamel.yaml.composer import Composer  # noqa: PLC0415
    from ruamel.yaml.constructor import SafeConstructor  # noqa: PLC0415

    class BoundedComposer(Composer):
        """Counts while it reads: the rest of a document that is too long is never looked at."""

        def __init__(self, loader: Any = None) -> None:
            super().__init__(loader)
            self.warn_double_anchors = False  # allowed since YAML 1.2, and shown with their lines
            self._nodes = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self._nodes += 1
            _require_few(self._nodes, values_max)
            return super().compose_node(parent, index)

    class BoundedConstructor(SafeConstructor):
        """Refuses before it writes aliases out and merges tables."""

        def construct_document(self, node: Any) -> Any:
            _require_few(_values_in(node, {}), values_max)
            return super().construct_document(node)

    reader = YAML(typ="safe", pure=True)
    reader.max_depth = DEPTH_MAX
    reader.Composer = BoundedComposer
    reader.Constructor = BoundedConstructor
    return reader


def _require_few(values: int, values_max: int) -> None:
    if values > values_max:
        raise BadDocument(f"more than {values_max:,} values, with those of its aliases")


def _values_in(node: Any, known: dict[int, int]) -> int:
    """How many values a node is when aliases are written out; ``known`` by identity.

    Raises:
        BadDocument: It contains itself.
    """
    found = known.get(id(node))
    if found == 0:
        raise BadDocument("an alias stands for itself", node.start_mark.line + 1)
    if found is None:
        known[id(node)] = 0
        inside = node.value if isinstance(node.value, list) else []
        parts = (part for each in inside for part in (each if isinstance(each, tuple) else (each,)))
        found = known[id(node)] = 1 + sum(_values_in(each, known) for each in parts)
    return found
