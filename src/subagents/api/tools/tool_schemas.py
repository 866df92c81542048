"""The requesters' tools as flat JSON Schema: what a model is shown of them.

Short, since every word is paid for in each session that has the tools. No ``anyOf``, ``oneOf``,
``allOf``, ``$ref`` and no lists of types: some providers refuse them. Bounds are not repeated here;
the decoder refuses with a message that says what is allowed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

import msgspec
from msgspec import inspect, json

from subagents.api.tools.tool import Schema
from subagents.domain.run.parameter import Parameter, parameters
from subagents.domain.run.spec import RunSpec

NAMED_WELL: Final = frozenset(
    {
        *("mode", "retryCount", "retryBackoff", "tags"),
        *("verification.requireCompletionReport", "verification.onFailure"),
        *("verification.verificationTimeoutMs", "verification.artifacts[].minBytes"),
        *("verification.artifacts[].json", "verification.artifacts[].sha256"),
        *("verification.artifacts[].junit", "verification.artifacts[].minTests"),
        *("verification.artifacts[].newerThan", "verification.artifacts[].maxFiles"),
        *("verification.artifacts[].fresh", "verification.artifacts[].minItems"),
        *("verification.mustChange", "verification.mustNotChange"),
        *("budget.maxTokens", "budget.maxCostUsd", "budget.maxRuns", "budget.maxSeconds"),
    }
)
"""Spawn parameters whose name and type tell a model enough: their words would only cost it."""
ALSO: Final = {
    "task": "required unless batch is given",
    "agentId": "see agents_list",
    "cwd": "absolute",
}
"""What only the caller of ``sessions_spawn`` must know of a parameter."""
BATCH: Final = {
    "type": "array",
    "description": "Many runs, all or nothing: each an object of these parameters; the "
    "ones beside batch hold for all. dependsOn may name labels of the batch",
    "items": {"type": "object"},
}
QUOTE: Final = '"'
_KINDS: Final = {
    inspect.BoolType: "boolean",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.VarTupleType: "array",
    inspect.StructType: "object",
    inspect.DictType: "object",
}


def schema(struct: type[msgspec.Struct]) -> Schema:
    """What a model is shown of a tool whose arguments are decoded into ``struct``."""
    return _object(parameters(struct), _words)


def _object(declared: Sequence[Parameter], words: Callable[[Parameter], str]) -> Schema:
    properties = {each.name.rpartition(".")[2]: _property(each, words) for each in declared}
    required = [name for name, each in zip(properties, declared, strict=True) if each.is_required]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _property(parameter: Parameter, words: Callable[[Parameter], str]) -> Schema:
    description = words(parameter)
    one = {
        "type": _KINDS.get(type(parameter.type), "string"),
        **({"description": description} if description else {}),
    }
    items: Schema = {"type": "string"}
    if parameter.inner:
        items = _object(parameter.inner, words)
    elif parameter.choices:
        items = {"type": "string", "enum": list(parameter.choices)}
    elif not parameter.is_list:
        return one
    return {**one, "items": items} if parameter.is_list else {**items, **one}


def _words(parameter: Parameter) -> str:
    """The meaning, with the unit and the default where they do not go without saying."""
    parts = [parameter.description] if parameter.description else []
    if parameter.unit == "milliseconds" and not parameter.name.endswith("Ms"):
        parts.append("ms")
    if parameter.default:  # not: nothing, no or zero
        parts.append(f"default {json.encode(parameter.default).decode().strip(QUOTE)}")
    return "; ".join(parts)


def _spawn_words(parameter: Parameter) -> str:
    if parameter.name in NAMED_WELL:
        return ""
    also = ALSO.get(parameter.name)
    return f"{_words(parameter)}; {also}" if also else _words(parameter)


_ONE: Final = _object(parameters(RunSpec), _spawn_words)
_PARAMETERS: Final = cast("Mapping[str, Schema]", _ONE["properties"])
SPAWN: Final[Schema] = {
    "type": "object",
    "properties": {**_PARAMETERS, "batch": BATCH},
    "additionalProperties": False,
}
"""``task`` is not required: with ``batch`` each entry has its own."""
