"""The JSON Schema of plan files, for editors, made from the declaration of ``RunSpec``."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import inspect

from subagents.api.wire.requests import FLAGS, LISTS, PlanLimit
from subagents.config.schema import DRAFT
from subagents.domain.run.parameter import Parameter, parameters
from subagents.domain.run.spec import BATCH_RUNS_MAX, PLAN_NAME_CHARS_MAX, RunSpec

Schema = dict[str, object]
NAME: Final = "^[A-Za-z_][A-Za-z0-9_-]*$"
REFERENCE: Final[Schema] = {"type": "string", "pattern": r"\$\{\{.*\}\}"}
DURATION: Final[Schema] = {"type": "string", "pattern": r"^\s*([0-9][0-9.mshdMSHD]*|[pP].+)\s*$"}
"""As ``text.parse_duration`` reads it, a little wider."""
"""A variable or a matrix, whose value comes later."""
_SCALAR: Final[Schema] = {"type": ["string", "integer", "boolean"]}
_CELL: Final[Schema] = {
    "type": "object",
    "patternProperties": {NAME: _SCALAR},
    "additionalProperties": False,
    "minProperties": 1,
}
MATRIX: Final[Schema] = {
    "description": "A run for each combination of these lists, or for each of a list of tables: "
    "${{ matrix.NAME }} in its texts is the value",
    "anyOf": [
        {
            "type": "object",
            "properties": {
                "exclude": {
                    "description": "Combinations to leave out",
                    "type": "array",
                    "items": _CELL,
                }
            },
            "patternProperties": {
                "^(?!exclude$)[A-Za-z_][A-Za-z0-9_-]*$": {
                    "type": "array",
                    "items": _SCALAR,
                    "minItems": 1,
                }
            },
            "additionalProperties": False,
            "minProperties": 1,
        },
        {"type": "array", "items": _CELL, "minItems": 1, "maxItems": BATCH_RUNS_MAX},
    ],
}
ENV: Final[Schema] = {
    "description": "Variables for the worker of this run alone",
    "type": "object",
    "additionalProperties": {"type": "string"},
}


def plan_schema() -> Schema:
    """The schema of a plan, in JSON values; unknown keys are errors in it, too.

    An editor offers the names of flags, and of what has none in snake_case; the parameters' own
    names are valid as well, in snake_case and camelCase.
    """
    declared = parameters(RunSpec)
    budget = next(each for each in declared if each.name == "budget")
    shared = [each for each in budget.inner if each.attribute in PlanLimit.__struct_fields__]
    run = _object(declared, {own: flag for flag, own in FLAGS.items()})
    run["properties"] = {**_properties(run), "matrix": MATRIX, "env": ENV}
    # A gate needs no task.
    run["allOf"] = [{"anyOf": [{"required": ["task"]}, {"required": ["gate"]}]}]
    runs: Schema = {
        "description": "Each run: its task and any other spawn parameter",
        "type": "array",
        "items": run,
        "minItems": 1,
        "maxItems": BATCH_RUNS_MAX,
    }
    plan: Schema = {
        "type": "object",
        "properties": {
            "$schema": {"type": "string"},
            "name": {
                "description": "What the plan is found by. Default: as its file is called",
                "type": "string",
                "minLength": 1,
                "maxLength": PLAN_NAME_CHARS_MAX,
            },
            "vars": {
                "description": "Variables with their defaults: ${{ vars.NAME }}; "
                "`--var NAME=VALUE` is stronger",
                **_CELL,
                "minProperties": 0,
            },
            "budget": {**_object(shared), "description": "What all runs may use together"},
            "jobs": {
                "description": "At most so many of its runs work at once. Default: as many as "
                "their lanes have slots",
                "anyOf": [{"type": "integer", "minimum": 1, "maximum": BATCH_RUNS_MAX}, REFERENCE],
            },
            "runs": runs,
        },
        "required": ["runs"],
        "additionalProperties": False,
    }
    return {"$schema": DRAFT, "title": "subagents plan", "anyOf": [plan, runs]}


def _properties(schema: Mapping[str, object]) -> Schema:
    found = schema["properties"]
    return dict(found) if isinstance(found, dict) else {}


def _object(declared: Sequence[Parameter], flags: Mapping[str, str] | None = None) -> Schema:
    properties: Schema = {}
    also: Schema = {}
    required: list[Schema] = []
    for each in declared:
        name, schema = each.name.rpartition(".")[2], _parameter(each)
        shown = (flags or {}).get(each.attribute, each.attribute)
        properties[shown] = schema
        for other in dict.fromkeys((each.attribute, name)):
            if other != shown:
                also[f"^{other}$"] = schema
        if each.is_required:
            names = dict.fromkeys((each.attribute, name))
            required.append({"anyOf": [{"required": [one]} for one in names]})
    return {
        "type": "object",
        "properties": properties,
        **({"patternProperties": also} if also else {}),
        **({"allOf": required} if required else {}),
        "additionalProperties": False,
    }


def _parameter(parameter: Parameter) -> Schema:
    description = parameter.description
    if parameter.unit:
        description = f"{description} ({parameter.unit})"
    about: Schema = {"description": description} if description else {}
    if parameter.default not in (None, ()):
        about["default"] = parameter.default
    one = _one(parameter)
    if not parameter.is_list:
        return {**about, **one}
    many: Schema = {"type": "array", "items": one}
    if parameter.items_max is not None:
        many["maxItems"] = parameter.items_max
    # One text stands for a list of one.
    return {**about, "anyOf": [one, many]} if parameter.name in LISTS else {**about, **many}


def _one(parameter: Parameter) -> Schema:
    """Its value, or each of its list."""
    if parameter.name == "forEach":
        return {"anyOf": [{"type": "string"}, _object(parameter.inner)]}
    if parameter.inner:
        return _object(parameter.inner)
    if parameter.like is not None:
        return {"type": "object"}
    if parameter.choices:
        return {"anyOf": [{"enum": list(parameter.choices)}, REFERENCE]}
    # Of texts none: what a reference stands for may be shorter than it is.
    bounds = {"minimum": parameter.low, "maximum": parameter.high}
    given = {key: value for key, value in bounds.items() if value is not None}
    texts = [REFERENCE, DURATION] if parameter.is_duration else [REFERENCE]
    match parameter.type:
        case inspect.BoolType():
            return {"anyOf": [{"type": "boolean"}, REFERENCE]}
        case inspect.IntType():
            return {"anyOf": [{"type": "integer", **given}, *texts]}
        case inspect.FloatType():
            return {"anyOf": [{"type": "number", **given}, *texts]}
        case inspect.DictType():
            return {"type": ["object", "boolean"]}
        case _:
            return {"type": "string"}
