"""How a parameter is declared, and how a declaration is read.

A struct's field says everything about its parameter: the annotation gives its type, meaning, unit
and bounds, the assignment its default. Requests are checked against that, and the flags, the tools'
schemas, the OpenAPI document, the Python keywords and docs/spawn-parameters.md are made from it.

Bounds stand in the JSON Schema only and are checked by ``rules.parameter_checks``: as constraints
of the type they would also refuse to read what an earlier version stored within other bounds.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, inspect

NAME_CHARS_MAX: Final = 255
"""The longest name of a model, tool, tag, lane or agent."""
LIST_ITEMS_MAX: Final = 1000
"""The most tools, tags or retry patterns in one list."""
DEPENDENCIES_MAX: Final = 10_000
"""The most runs that one waits for; more than a batch has, since they may be of several."""


TASK: Final = "Task"
CONTRACT: Final = "Contract"
RETRY: Final = "Retry"
DEPENDENCIES: Final = "Dependencies"
LIMITS: Final = "Limits"
PLACEMENT: Final = "Placement"
SESSION: Final = "Session"
SECTIONS: Final = (TASK, CONTRACT, RETRY, DEPENDENCIES, LIMITS, PLACEMENT, SESSION)
"""Where help and documentation list a parameter, in this order."""

Unit: TypeAlias = Literal["seconds", "milliseconds", "USD"]
Form: TypeAlias = Literal["task", "path"]
"""What a text is that is no name: many lines, or a place in the file system."""


class Parameter(msgspec.Struct, frozen=True):
    """One declared parameter."""

    name: str
    """Its name in JSON, with the path from the outermost struct: ``budget.maxTokens``."""
    attribute: str
    """The field of the struct that it stands in: ``max_tokens``."""
    type: inspect.Type
    """Its type, without ``None`` and metadata."""
    default: object
    is_required: bool
    description: str
    section: str
    unit: Unit | None
    form: Form | None
    low: float | None
    """Inclusive, as is ``high``; None = no bound."""
    high: float | None
    chars_max: int | None
    items_max: int | None
    choices: tuple[str, ...] = ()
    """The words of which one is given, or each in its list; empty = any value of the type."""
    inner: tuple["Parameter", ...] = ()
    """The parameters of its struct, or of each struct in its list."""
    like: str | None = None
    """The parameter that lists what its struct declares; then nothing is ``inner`` here."""

    @property
    def is_duration(self) -> bool:
        """A number of seconds or milliseconds; a text such as ``5m`` says the same."""
        return self.unit in {"seconds", "milliseconds"}

    @property
    def is_list(self) -> bool:
        return isinstance(self.type, inspect.VarTupleType)


def about(
    description: str,
    section: str = "",
    *,
    unit: Unit | None = None,
    form: Form | None = None,
    like: str | None = None,
    **schema: float,
) -> Meta:
    """Declare any parameter.

    Args:
        description: One line that reads well in help, tool schemas and documentation alike, without
            what is derived: type, unit, bounds, default, allowed words.
        section: One of ``SECTIONS``; none = that of the parameter around it.
        unit: Of a number.
        form: Of a text that is no name.
        like: Name of the parameter that lists what its struct declares.
        schema: Bounds, in the words of JSON Schema.
    """
    extra = {"section": section, "unit": unit, "form": form, "like": like}
    return Meta(description=description, extra_json_schema=dict(schema), extra=extra)


def number(
    description: str, low: float, high: float, section: str = "", *, unit: Unit | None = None
) -> Meta:
    """Declare a number from ``low`` to ``high``."""
    return about(description, section, unit=unit, minimum=low, maximum=high)


def name(description: str, section: str = "", *, chars_max: int = NAME_CHARS_MAX) -> Meta:
    """Declare one line of at most ``chars_max`` characters, without control characters."""
    return about(description, section, minLength=1, maxLength=chars_max)


def names(description: str, section: str = "", *, items_max: int = LIST_ITEMS_MAX) -> Meta:
    """Declare a list of at most ``items_max`` names."""
    return about(description, section, maxItems=items_max)


def words(allowed: Iterable[str], description: str = "") -> Meta:
    """Declare a text that is one of these words."""
    return Meta(description=description or None, extra={"choices": tuple(allowed)})


@cache
def parameters(kind: type[msgspec.Struct]) -> tuple[Parameter, ...]:
    """The parameters that a struct declares, in its order."""
    return _of_struct(inspect.type_info(kind), prefix="", section="")


def leaves(declared: tuple[Parameter, ...]) -> Iterator[Parameter]:
    """Those without parameters inside, down to the innermost."""
    for each in declared:
        if each.inner:
            yield from leaves(each.inner)
        else:
            yield each


def _of_struct(kind: inspect.Type, *, prefix: str, section: str) -> tuple[Parameter, ...]:
    fields = kind.fields if isinstance(kind, inspect.StructType) else ()
    return tuple(_of_field(each, prefix, section) for each in fields)


def _of_field(field: inspect.Field, prefix: str, section: str) -> Parameter:
    kind, extra, schema = _bare(field.type)
    path = f"{prefix}{field.encode_name}"
    section = extra.get("section") or section
    one, opened = kind, f"{path}."
    if isinstance(kind, inspect.VarTupleType):
        one, of_items, _ = _bare(kind.item_type)
        extra, opened = {**of_items, **extra}, f"{path}[]."
    choices = tuple(one.cls) if isinstance(one, inspect.EnumType) else extra.get("choices", ())
    return Parameter(
        name=path,
        attribute=field.name,
        type=kind,
        default=None if field.default is msgspec.NODEFAULT else field.default,
        is_required=field.required,
        description=str(schema.get("description", "")),
        section=section,
        unit=extra.get("unit"),
        form=extra.get("form"),
        low=schema.get("minimum"),
        high=schema.get("maximum"),
        chars_max=schema.get("maxLength"),
        items_max=schema.get("maxItems"),
        choices=tuple(map(str, choices)),
        inner=() if extra.get("like") else _of_struct(one, prefix=opened, section=section),
        like=extra.get("like"),
    )


def _bare(kind: inspect.Type) -> tuple[inspect.Type, dict[str, Any], dict[str, Any]]:
    """The type without ``None`` and metadata, and what the metadata say."""
    extra: dict[str, Any] = {}
    schema: dict[str, Any] = {}
    if isinstance(kind, inspect.Metadata):
        extra, schema, kind = kind.extra or {}, kind.extra_json_schema or {}, kind.type
    if isinstance(kind, inspect.UnionType):
        given = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
        # A JSON Schema may be true or false, too; what counts is that it is an object.
        kind = next((each for each in given if isinstance(each, inspect.DictType)), given[0])
    return (kind.type if isinstance(kind, inspect.Metadata) else kind), extra, schema
