"""The JSON Schema of `subagents.toml`, for editors, and its reference table, for the docs.

python -m subagents.config.schema --check docs/configuration.md    exit 1 when out of date
python -m subagents.config.schema --write docs/configuration.md    bring it up to date
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import inspect

from subagents.config.keys import (
    Key,
    Node,
    Table,
    leaves,
    tree,
    unit,
)
from subagents.config.settings import NAME_PATTERN

BEGIN: Final = "<!-- keys: written by `make docs` from src/subagents/config/settings.py -->"
END: Final = "<!-- end of keys -->"
DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, object]:
    """The schema, in JSON values; unknown keys are errors in it as in the loader."""
    return {"$schema": DRAFT, **_schema(tree(), "subagents.toml")}


def reference_table() -> str:
    """Every key as a Markdown table: what is allowed, unit, default, variable, meaning."""
    rows = ["| key | allowed | unit | default | meaning |", "|---|---|---|---|---|"]
    for name, key in leaves():
        cells = (f"`{name}`", key.allowed, unit(name) or "–", _default(key), key.description)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def variable(key: str) -> str:
    """The environment variable that sets a dotted key: `lanes.heavy.slots` → SUBAGENTS_LANES__…"""
    *tables, last = key.split(".")
    spelled = "__".join(part.upper().replace("-", "_") for part in tables)
    # Variables for workers keep their case: `agents.x.env.Path` is not `PATH`.
    end = last if tables[-1:] == ["env"] else last.upper()
    return f"SUBAGENTS_{spelled}__{end}"


def with_reference_table(text: str) -> str:
    """`text` with the table between its two markers replaced by the current one.

    Raises:
        ValueError: A marker is missing.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{reference_table()}\n\n{END}{after}"


def main(arguments: list[str]) -> int:
    """`--check FILE` or `--write FILE`; returns the exit code."""
    match arguments:
        case ["--check", file]:
            page = Path(file).read_text(encoding="utf-8")
            if with_reference_table(page) == page:
                return 0
            sys.stderr.write(f"{file} is out of date: run `make docs`\n")
            return 1
        case ["--write", file]:
            page = Path(file).read_text(encoding="utf-8")
            Path(file).write_text(with_reference_table(page), encoding="utf-8")
            return 0
        case _:
            sys.stderr.write("usage: python -m subagents.config.schema --check|--write FILE\n")
            return 2


def _default(key: Key) -> str:
    match key.default:
        case None:
            return "unset"
        case bool():
            return f"`{str(key.default).lower()}`"
        case ():
            return "`[]`"
        case int() | float():
            return f"`{key.default}`"
        case tuple():
            return f"`{list(key.default)}`"
        case _:
            return f'`"{key.default}"`'


def _schema(node: Node, title: str) -> dict[str, object]:
    if isinstance(node, Key):
        schema = {
            "title": title,
            "description": node.description,
            **_type(node.type, node.choices),
        }
        if node.plugins:
            known = {"enum": schema.pop("enum")}
            schema["anyOf"] = [known, {"pattern": NAME_PATTERN}]
        if node.default is not None:
            default = node.default
            schema["default"] = list(default) if isinstance(default, tuple) else default
        return schema
    return _table_schema(node, title)


def _table_schema(table: Table, title: str) -> dict[str, object]:
    properties: dict[str, object] = dict.fromkeys(table.reserved, False)
    properties |= {name: _schema(child, name) for name, child in table.keys.items()}
    schema: dict[str, object] = {
        "title": title,
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    if table.each is not None:
        each = _schema(table.each, table.placeholder)
        # `agents.defaults` matches the pattern of agent ids, too, but is not an agent.
        taken = "".join(f"(?!{name}$)" for name in properties)
        schema["patternProperties"] = {f"^{taken}{table.name_pattern.removeprefix('^')}": each}
    return schema


def _type(kind: inspect.Type, choices: Sequence[str] = ()) -> dict[str, object]:
    match kind:
        case inspect.VarTupleType():
            sizes = {"minItems": kind.min_length, "maxItems": kind.max_length}
            return {"type": "array", "items": _type(kind.item_type, choices), **_given(sizes)}
        case _ if choices:
            return {"type": "string", "enum": list(choices)}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType(ge=low, le=high):
            return {"type": "integer", "minimum": low, "maximum": high}
        case inspect.FloatType(ge=low, le=high):
            return {"type": "number", "minimum": low, "maximum": high}
        case inspect.DictType():
            return {"type": "object"}
        case inspect.StrType():
            return {
                "type": "string",
                **_given(
                    {
                        "minLength": kind.min_length,
                        "maxLength": kind.max_length,
                        "pattern": kind.pattern,
                    }
                ),
            }
        case _:
            return {"type": "string"}


def _given(bounds: Mapping[str, object]) -> dict[str, object]:
    return {name: bound for name, bound in bounds.items() if bound is not None}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
