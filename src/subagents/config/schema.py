"""The JSON Schema of `subagents.toml`, for editors."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import inspect

from subagents.config.keys import Node, Table, tree
from subagents.config.settings import NAME_PATTERN

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, object]:
    """The schema, in JSON values; unknown keys are errors in it as in the loader."""
    return {"$schema": DRAFT, **_schema(tree(), "subagents.toml")}


def _schema(node: Node, title: str) -> dict[str, object]:
    if isinstance(node, Table):
        return _table_schema(node, title)
    described = {"title": title, "description": node.description}
    schema = {**described, **_type(node.type, node.choices)}
    if node.plugins:
        # Their names are known where they are installed, which need not be where the file is read.
        schema["anyOf"] = [{"enum": schema.pop("enum")}, {"pattern": NAME_PATTERN}]
    if node.default is not None:
        default = node.default
        schema["default"] = list(default) if isinstance(default, tuple) else default
    return schema


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
            lengths = {"minLength": kind.min_length, "maxLength": kind.max_length}
            return {"type": "string", **_given({**lengths, "pattern": kind.pattern})}
        case _:
            return {"type": "string"}


def _given(bounds: Mapping[str, object]) -> dict[str, object]:
    return {name: bound for name, bound in bounds.items() if bound is not None}
