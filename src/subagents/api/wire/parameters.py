"""Query parameters of the HTTP calls, declared once: handlers know them by name, the OpenAPI
document by what may stand there.

A parameter *is* its name, so that ``query_of(request, PARAMETERS)`` takes a tuple of them; the
``Query`` that it gives reads each by its schema, whose bounds therefore stand only here.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

JsonSchema = Mapping[str, Any]
FLAG_WORDS: Final = ("0", "1", "true", "false")


class Parameter(str):
    """The name of a parameter, with its schema and meaning."""

    __slots__ = ("schema", "text")

    schema: JsonSchema
    text: str

    def __new__(cls, name: str, schema: JsonSchema, text: str) -> Self:
        made = super().__new__(cls, name)
        made.schema, made.text = schema, text
        return made


def word(name: str, text: str) -> Parameter:
    """Any text."""
    return Parameter(name, {"type": "string"}, text)


def number(
    name: str, text: str, *, low: int = 0, high: int, default: int | None = None
) -> Parameter:
    """A whole number from ``low`` to ``high``."""
    schema: dict[str, object] = {"type": "integer", "minimum": low, "maximum": high}
    return Parameter(name, schema if default is None else {**schema, "default": default}, text)


def flag(name: str, text: str) -> Parameter:
    """Yes or no; absent is no."""
    return Parameter(name, {"type": "string", "enum": list(FLAG_WORDS), "default": "0"}, text)


def choice(
    name: str, text: str, allowed: Iterable[str], *, default: str | None = None
) -> Parameter:
    """One of these words."""
    schema: dict[str, object] = {"type": "string", "enum": [str(each) for each in allowed]}
    return Parameter(name, schema if default is None else {**schema, "default": default}, text)


def choices(name: str, text: str, allowed: Iterable[str]) -> Parameter:
    """Some of these words, with commas between them."""
    items = {"type": "string", "enum": [str(each) for each in allowed]}
    return Parameter(name, {"type": "array", "items": items, "minItems": 1}, text)
