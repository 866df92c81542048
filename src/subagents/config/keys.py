"""The keys of `subagents.toml` as a tree, read off the structs of `settings.py`.

One tree, three uses: each layer is checked against it (so that a message can name the file or
variable a wrong value came from, which a check of the merged result could not), the JSON Schema
is written from it, and so is the table in docs/configuration.md.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import inspect

from subagents.config.entry_points import plugin_names
from subagents.config.settings import (
    DEFAULT_LANE,
    HEADER_PATTERN,
    HOST_PATTERN,
    NAME_PATTERN,
    NODE_PATTERN,
    STORE_PATTERN,
    TAG_PATTERN,
    URL_PATTERN,
    VARIABLE_PATTERN,
    WEBHOOK_PATTERN,
    Agent,
    DaemonSettings,
    LaneSettings,
    Retention,
    SecretSource,
    SpendingCap,
    SubagentDefaults,
    VerificationSettings,
    nearest,
)
from subagents.domain.run.secret_reference import NAME_PATTERN as SECRET_PATTERN
from subagents.extension import SettingsTable, settings_tables
from subagents.text import cut

SHOWN_CHARS_MAX: Final = 60
AGENT_DEPTH: Final = 2
"""`agents.<id>`: where an agent's own keys begin."""
JSON_INTEGER_MAX: Final = 2**63 - 1
BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
PATTERN_WORDS: Final = {
    TAG_PATTERN: "a tag of at most 200 characters",
    SECRET_PATTERN: "a name of at most 64 letters, digits, _, . and -, that begins with a letter "
    "or digit",
    NAME_PATTERN: "a name of at most 64 lower-case letters, digits, _ and -, "
    "starting with a letter or digit",
    STORE_PATTERN: "an address that begins with postgresql://",
    NODE_PATTERN: "a name of at most 64 letters, digits, ., _ and -, starting with a letter or "
    "digit",
    VARIABLE_PATTERN: "the name of an environment variable (letters, digits and _)",
    HEADER_PATTERN: "the name of an HTTP header (letters, digits, _ and -)",
    HOST_PATTERN: "an address or the name of a host",
    URL_PATTERN: "an http or https URL without user name, query and fragment",
    WEBHOOK_PATTERN: "an http or https URL without user name and fragment",
}
SECRET_PATTERNS: Final = frozenset({STORE_PATTERN, WEBHOOK_PATTERN, URL_PATTERN})
"""Patterns of addresses, which are often refused because there is a password in them."""
UNITS: Final = ("seconds", "minutes", "days", "ms", "chars", "mb", "percent", "usd")


class Key(msgspec.Struct, frozen=True):
    """One key with a value."""

    type: inspect.Type
    description: str = ""
    default: object = None
    choices: tuple[str, ...] = ()
    plugins: str = ""
    """The entry-point group whose names may stand there besides the choices."""
    words: str = ""
    """What may stand there, where the type does not say it."""
    is_secret: bool = False
    """Its value is never shown in a message."""
    is_hidden: bool = False
    """Nor is it in `config`."""

    @property
    def allowed(self) -> str:
        """What may stand there, in words: `an integer from 0 to 32`."""
        more = ", or the name of a plugin" if self.plugins else ""
        return (self.words or _allowed(self.type, self.choices)) + more


class Table(msgspec.Struct, frozen=True):
    """A table of known keys, or of free names that all mean the same kind of thing."""

    keys: dict[str, "Node"] = {}
    each: "Node | None" = None
    name_pattern: str = ""
    """What such a name must fit."""
    placeholder: str = "<name>"
    reserved: dict[str, str] = {}
    """Names that are refused, each with the reason."""


Node: TypeAlias = Key | Table


class KeyProblem(msgspec.Struct, frozen=True):
    """One thing wrong in one layer; the text names the dotted key."""

    key: str
    text: str
    hint: str | None = None


@cache
def tree() -> Table:
    """The whole file."""
    agents = Table(
        keys={"defaults": Table(keys={"subagents": _table(SubagentDefaults)})},
        each=_table(Agent),
        name_pattern=NAME_PATTERN,
        placeholder="<id>",
    )
    lanes = Table(
        each=_table(LaneSettings),
        name_pattern=NAME_PATTERN,
        reserved={
            DEFAULT_LANE: "the slots of the default lane are "
            "agents.defaults.subagents.max_concurrent"
        },
    )
    cap = _table(SpendingCap)
    daily = Table(keys={**cap.keys, "agents": _caps("<id>"), "tags": _caps("<name>")})
    return Table(
        keys={
            "agents": agents,
            "lanes": lanes,
            "verification": _table(VerificationSettings),
            "retention": _table(Retention),
            "daemon": _table(DaemonSettings),
            "budgets": Table(keys={"daily": daily, "tags": _caps("<name>")}),
            "secrets": Table(each=_table(SecretSource), name_pattern=SECRET_PATTERN),
            **{name: _added(*given) for name, given in settings_tables().items()},
        }
    )


def _added(table: SettingsTable, kind: Any) -> Node:
    if kind is None:
        return Key(type=inspect.DictType(key_type=inspect.StrType(), value_type=inspect.AnyType()))
    found = _table(kind)
    return Table(each=found, name_pattern=NAME_PATTERN) if table.is_named else found


def _caps(placeholder: str) -> Table:
    return Table(each=_table(SpendingCap), name_pattern=TAG_PATTERN, placeholder=placeholder)


def leaves(node: Node | None = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Key]]:
    """Every key with its dotted name, free names as `<id>`, in the order of the file."""
    match node:
        case None:
            yield from leaves(tree(), path)
        case Key():
            yield ".".join(path), node
        case Table():
            for name, child in node.keys.items():
                yield from leaves(child, (*path, name))
            if node.each is not None:
                yield from leaves(node.each, (*path, node.placeholder))


def is_hidden(path: tuple[str, ...]) -> bool:
    """Whether the value at that place of a valid file is not to be shown."""
    node: Node | None = tree()
    for name in path:
        if not isinstance(node, Table):
            return False
        node = node.keys.get(name, node.each)
    return isinstance(node, Key) and node.is_hidden


def unit(key: str) -> str:
    """The unit a key names at its end, empty when it has none."""
    last = key.rsplit("_", 1)[-1]
    return last if last in UNITS else ""


def dotted(path: tuple[str, ...]) -> str:
    """The path as TOML would spell it; control characters are escaped."""
    return ".".join(part if BARE_KEY.fullmatch(part) else json.dumps(part) for part in path)


def check(
    value: object, node: Node | None = None, path: tuple[str, ...] = ()
) -> Iterator[KeyProblem]:
    """Yield every problem of a partial document; none = each key is known and each value fits."""
    match node:
        case None:
            yield from check(value, tree(), path)
        case Key():
            yield from _check_value(value, node.type, node, dotted(path))
        case Table():
            if not isinstance(value, Mapping):
                shown = _kind_of(value) if isinstance(value, str) else _shown(value)
                yield KeyProblem(dotted(path), f"{dotted(path)} must be a table, not {shown}")
                return
            for name, child in value.items():
                yield from _check_entry(str(name), child, node, path)


def _check_entry(
    name: str, value: object, table: Table, path: tuple[str, ...]
) -> Iterator[KeyProblem]:
    here = (*path, name)
    if name in table.keys:
        yield from check(value, table.keys[name], here)
    elif name in table.reserved:
        yield KeyProblem(dotted(here), f"{dotted(here)} cannot be set: {table.reserved[name]}")
    elif table.each is None:
        yield _unknown(here, table)
    elif not re.fullmatch(table.name_pattern, name):
        yield KeyProblem(
            dotted(here),
            f"{dotted(here)}: the {table.placeholder} must be {_words_of(table.name_pattern)}",
        )
    else:
        yield from check(value, table.each, here)


@cache
def _everywhere() -> dict[str, str]:
    """The last part of each key → the whole."""
    return {key.rsplit(".", 1)[-1]: key for key, _ in leaves()}


def _unknown(path: tuple[str, ...], table: Table) -> KeyProblem:
    name = path[-1]
    # A key that was put into the wrong table: look for its name everywhere.
    everywhere = _everywhere()
    sibling = None if name in everywhere else nearest(name, table.keys)
    if sibling is not None:
        guess: str | None = dotted((*path[:-1], sibling))
    else:
        near = nearest(name, everywhere)
        guess = everywhere[near] if near else None
        if guess and path[0] == "agents" and len(path) > AGENT_DEPTH and path[1] != "defaults":
            guess = guess.replace("agents.<id>.", f"agents.{path[1]}.")
    other = "" if len(path) > 1 else ", which no extension adds that is installed and works"
    return KeyProblem(
        dotted(path),
        f"unknown key {dotted(path)}" + (f"; did you mean {guess}?" if guess else other),
        f"known here: {', '.join(table.keys)}",
    )


def _check_value(value: object, kind: inspect.Type, key: Key, path: str) -> Iterator[KeyProblem]:
    if isinstance(kind, inspect.VarTupleType) and isinstance(value, list):
        is_right = True
        for index, item in enumerate(value):
            for problem in _check_value(item, kind.item_type, key, f"{path}[{index}]"):
                is_right = False
                yield problem
        if is_right and not _length_fits(value, kind):
            yield KeyProblem(path, f"{path} must be {key.allowed}, not {len(value)} items")
        return
    unreadable = _unreadable_text(value)
    choices = key.choices
    if key.plugins and value not in choices:
        choices = (*choices, *plugin_names(key.plugins))
    if unreadable:
        yield KeyProblem(path, f"{path} {unreadable}")
    elif not _fits(value, kind, choices):
        # A text in place of a list is a command with all that is in it.
        is_hidden = key.is_secret or isinstance(kind, inspect.VarTupleType)
        shown = _kind_of(value) if is_hidden else _shown(value)
        if isinstance(kind, inspect.DictType) and isinstance(value, dict):
            shown = "a table that holds something else"
        guess = nearest(value, choices) if isinstance(value, str) else None
        other = "; is the package that adds it installed?" if key.plugins else ""
        near = f"; did you mean {_shown(guess)}?" if guess else other
        allowed = (kind is key.type and key.words) or _allowed(kind, choices)
        yield KeyProblem(path, f"{path} must be {allowed}, not {shown}{near}")


def _fits(value: object, kind: inspect.Type, choices: tuple[str, ...]) -> bool:
    match kind:
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool) and _in_range(value, kind)
        case inspect.FloatType():
            return (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and _in_range(value, kind)
            )
        case _ if choices:
            return value in choices
        case inspect.StrType():
            return (
                isinstance(value, str)
                and _length_fits(value, kind)
                and (kind.pattern is None or re.fullmatch(kind.pattern, value) is not None)
            )
        case inspect.DictType():
            return isinstance(value, dict) and _is_json(value)
        case _:
            return False


def _in_range(value: float, kind: inspect.IntType | inspect.FloatType) -> bool:
    # Written so that NaN, which compares false to everything, is outside.
    return (kind.ge is None or value >= kind.ge) and (kind.le is None or value <= kind.le)


def _length_fits(value: str | list[object], kind: inspect.StrType | inspect.VarTupleType) -> bool:
    return len(value) >= (kind.min_length or 0) and (
        kind.max_length is None or len(value) <= kind.max_length
    )


def _unreadable_text(value: object) -> str | None:
    if isinstance(value, str):
        if "\0" in value:
            return "must not contain NUL characters"
        if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
            return "is not valid UTF-8"
    return None


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(_is_json(item) for item in value.values())
    if isinstance(value, list):
        return all(_is_json(item) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return abs(value) <= JSON_INTEGER_MAX
    return isinstance(value, str) and _unreadable_text(value) is None


def _allowed(kind: inspect.Type, choices: tuple[str, ...] = ()) -> str:
    if isinstance(kind, inspect.VarTupleType):
        return _allowed_list(kind, choices)
    if choices:
        return "one of " + ", ".join(_shown(choice) for choice in choices)
    match kind:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType(ge=low, le=high):
            return f"an integer from {low} to {high}"
        case inspect.FloatType(ge=low, le=high):
            return f"a number from {low:g} to {high:.12g}"
        case inspect.StrType(pattern=str(pattern)):
            return _words_of(pattern)
        case inspect.StrType(max_length=int(most)):
            return f"text of at most {most} characters"
        case inspect.StrType(min_length=1):
            return "non-empty text"
        case inspect.DictType():
            return "a table of text, numbers, true or false, lists and tables"
        case _:
            return "text"


def _words_of(pattern: str) -> str:
    return PATTERN_WORDS.get(pattern, f"text that fits {pattern}")


def _allowed_list(kind: inspect.VarTupleType, choices: tuple[str, ...]) -> str:
    most = f" of at most {kind.max_length} items" if kind.max_length else ""
    match kind.item_type:
        case _ if choices:
            return f"a list of any of {', '.join(_shown(choice) for choice in choices)}"
        case inspect.IntType(ge=low, le=high):
            return f"a list{most}, integers from {low} to {high}"
        case inspect.FloatType(ge=low, le=high):
            return f"a list{most}, numbers from {low:g} to {high:.12g}"
        case inspect.DictType():
            items = "tables"
        case _:
            items = "text"
    least = f" with at least {kind.min_length} item" if kind.min_length else ""
    return f"a list of {items}{most}{least}"


def _shown(value: object) -> str:
    """The value as TOML would spell it, on one line, cut when long."""
    match value:
        case bool():
            text = "true" if value else "false"
        case str():
            text = json.dumps(value, ensure_ascii=not value.isprintable())
        case dict():
            return "a table"
        case list():
            return "a list"
        case int() if abs(value) > JSON_INTEGER_MAX:
            # Python refuses to spell integers of more than 4,300 digits.
            return "a number that large" if value > 0 else "a number that small"
        case _:
            text = str(value)
    return cut(text, SHOWN_CHARS_MAX)


def _kind_of(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "this text"
        case _:
            return _shown(value)


def _table(struct: type[msgspec.Struct]) -> Table:
    info = inspect.type_info(struct)
    if not isinstance(info, inspect.StructType):
        raise TypeError(f"{struct.__name__} is not a struct")
    return Table(keys={field.encode_name: _node(field) for field in info.fields})


def _node(field: inspect.Field) -> Node:
    kind, extra, description = _bare(field.type)
    if isinstance(kind, inspect.UnionType):
        # `… | None`: a key without a value is left out of the file.
        (kind,) = (each for each in kind.types if not isinstance(each, inspect.NoneType))
        kind, inner, _ = _bare(kind)
        extra = {**inner, **extra}
    if isinstance(kind, inspect.StructType):
        return _table(kind.cls)
    choices = tuple(extra.get("choices", ()))
    if isinstance(kind, inspect.VarTupleType):
        item, _, _ = _bare(kind.item_type)
        kind = msgspec.structs.replace(kind, item_type=item)
    else:
        item = kind
    if isinstance(item, inspect.EnumType):
        choices = tuple(str(member) for member in item.cls)
    default = None if field.default is msgspec.NODEFAULT else field.default
    is_hidden = bool(extra.get("hidden"))
    if isinstance(kind, inspect.DictType) and isinstance(kind.value_type, inspect.CustomType):
        # dict[str, object]: whatever JSON can say.
        return Key(type=kind, description=description)
    if isinstance(kind, inspect.DictType):
        name, named, _ = _bare(kind.key_type)
        pattern = (name.pattern if isinstance(name, inspect.StrType) else None) or VARIABLE_PATTERN
        value = Key(
            type=kind.value_type, description=description, is_secret=True, is_hidden=is_hidden
        )
        return Table(
            each=value,
            name_pattern=pattern,
            placeholder=str(named.get("placeholder", "<VARIABLE>")),
        )
    own = kind.pattern if isinstance(kind, inspect.StrType) else None
    return Key(
        type=kind,
        description=description,
        default=default,
        choices=choices,
        plugins=str(extra.get("plugins", "")),
        words=str(extra.get("words", "")),
        is_secret=bool(extra.get("secret")) or own in SECRET_PATTERNS,
        is_hidden=is_hidden,
    )


def _bare(kind: inspect.Type) -> tuple[inspect.Type, dict[str, Any], str]:
    """The type, what its annotation says besides, and its description."""
    extra: dict[str, Any] = {}
    description = ""
    while isinstance(kind, inspect.Metadata):
        extra = {**(kind.extra or {}), **extra}
        description = description or str((kind.extra_json_schema or {}).get("description", ""))
        kind = kind.type
    return kind, extra, description
