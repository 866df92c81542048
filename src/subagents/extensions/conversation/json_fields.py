"""Fields of a JSON value that another program wrote, read without trust.

Nothing here raises, whatever the value is: a field of the wrong type is taken for absent.
"""

from collections.abc import Mapping

from subagents.runtimes.output.counts import as_count


def value_at(table: object, key: str) -> object:
    """A field of any type; None when it is absent, or ``table`` is no JSON object."""
    return table.get(key) if isinstance(table, dict) else None


def text_at(table: object, key: str) -> str:
    """A text field; "" when it is none."""
    return as_text(value_at(table, key))


def count_at(table: object, key: str) -> int | None:
    """A whole number of at least 0; None when it is none."""
    return as_count(value_at(table, key))


def table_at(table: object, key: str) -> dict[str, object]:
    """A field that is a JSON object; empty when it is none."""
    return as_table(value_at(table, key))


def tables_at(table: object, key: str) -> list[dict[str, object]]:
    """The JSON objects in a list field."""
    return [each for each in list_at(table, key) if isinstance(each, dict)]


def texts_at(table: object, key: str) -> list[str]:
    """The texts in a list field."""
    return [each for each in list_at(table, key) if isinstance(each, str)]


def list_at(table: object, key: str) -> list[object]:
    """A list field; empty when it is none."""
    found = value_at(table, key)
    return found if isinstance(found, list) else []


def as_text(value: object) -> str:
    """``value`` when it is a text, else ""."""
    return value if isinstance(value, str) else ""


def as_table(value: object) -> dict[str, object]:
    """``value`` when it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def merged(table: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """Both tables in one; where both say something, ``over`` is right."""
    result = dict(table)
    for key, value in over.items():
        before = result.get(key)
        both = isinstance(before, dict) and isinstance(value, dict)
        result[key] = merged(before, value) if both else value  # type: ignore[arg-type]
    return result
