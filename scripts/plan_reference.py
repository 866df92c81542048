"""Every key of a plan file, from its JSON Schema: docs/reference/plan-file.md.

python -m scripts.plan_reference [--check] [FILE]
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from scripts.marked_pages import cell, drawn_anew, update

from subagents.extensions.plans.plan_schema import plan_schema

PAGE: Final = "docs/reference/plan-file.md"
BEGIN: Final = "<!-- keys: written by `make docs` from the schema of plans -->"
END: Final = "<!-- end of keys -->"
PLAN: Final = ("runs",)
"""What has a table of its own."""

Schema = Mapping[str, Any]


def tables(title: str, properties: Schema) -> Iterator[str]:
    """A table of these keys, and one for each table in them."""
    yield f"## {title}"
    lines = ["| key | type | default | |", "|---|---|---|---|"]
    inner: dict[str, Schema] = {}
    for name, schema in properties.items():
        if name.startswith("$"):
            continue
        below = schema.get("properties") or schema.get("items", {}).get("properties")
        if below and name not in PLAN:
            inner[name] = below
        default = f"`{_literal(schema['default'])}`" if "default" in schema else ""
        about = cell(schema.get("description", ""))
        lines.append(f"| `{name}` | {cell(kind(schema))} | {default} | {about} |")
    yield "\n".join(lines)
    for name, below in inner.items():
        yield from tables(f"In `{name}`", below)


def kind(schema: Schema) -> str:
    """The type in words; that a variable may stand for it goes without saying."""
    forms = [each for each in schema.get("anyOf", (schema,)) if "pattern" not in each]
    durations = "mshdMSHD" in str(schema.get("anyOf", ""))
    words = dict.fromkeys(_form(each) for each in forms)
    return " or ".join([*words, *(["a duration such as `5m`"] if durations else [])])


def _form(schema: Schema) -> str:
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    found: Any = schema.get("type", "any value")
    if found == "array":
        return f"list of {_plural(schema.get('items', {}))}"
    if found == "object":
        return "table"
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = f" from {_number(low)}" if low is not None else ""
    bounds += f" to {_number(high)}" if high is not None else ""
    names = {"string": "text", "boolean": "true or false"}
    each = found if isinstance(found, list) else [found]
    return " or ".join(names.get(name, str(name)) for name in each) + bounds


def _number(value: float) -> str:
    text = f"{value:,.6f}"
    return text.rstrip("0").rstrip(".")


def _plural(schema: Schema) -> str:
    return {"string": "texts", "object": "tables"}.get(str(schema.get("type")), "values")


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def drawn(page: str) -> str:
    """``page`` with the keys of today."""
    forms: Any = plan_schema()["anyOf"]
    schema = next(each for each in forms if each.get("type") == "object")
    run = schema["properties"]["runs"]["items"]["properties"]
    parts = [*tables("The plan", schema["properties"]), *tables("Each run", run)]
    return drawn_anew(page, BEGIN, END, *parts)


if __name__ == "__main__":
    sys.exit(update(sys.argv[1:], PAGE, drawn))
