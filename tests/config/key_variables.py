"""A value for any key of ``subagents.toml``, given by the key's environment variable."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import inspect

from subagents.config.keys import Key, leaves
from subagents.config.layers import load
from subagents.config.paths import Paths

KEYS: Final = MappingProxyType(dict(leaves()))
NAMES: Final = {"<id>": "some", "<name>": "some", "<VARIABLE>": "Some_Var", "<header>": "x-api-key"}


def variable(key: str) -> str:
    """The environment variable that sets a dotted key: `lanes.heavy.slots` → SUBAGENTS_LANES__…"""
    *tables, last = key.split(".")
    spelled = "__".join(part.upper().replace("-", "_") for part in tables)
    # Variables for workers keep their case: `agents.x.env.Path` is not `PATH`.
    end = last if tables[-1:] == ["env"] else last.upper()
    return f"SUBAGENTS_{spelled}__{end}"


def fitting(node: Key) -> str:
    """A value that a key of this type may have, where the type says enough."""
    is_list = isinstance(node.type, inspect.VarTupleType)
    value = {"true or false": "true", "a list of tables": "[{ a = 1 }]"}.get(
        node.allowed, "x" if is_list else "100"
    )
    item = node.type.item_type if isinstance(node.type, inspect.VarTupleType) else node.type
    if node.choices:
        value = node.choices[-1]
    if isinstance(item, inspect.IntType | inspect.FloatType):
        value = str(item.le)
    if is_list and not isinstance(item, inspect.DictType):
        is_text = isinstance(item, inspect.StrType | inspect.EnumType)
        value = f"['{value}']" if is_text else f"[{value}]"
    return value


def is_set_by_its_variable(
    key: str, home: Path, values: Mapping[str, str], beside: Mapping[str, str]
) -> bool:
    """Whether the variable of a key is the one origin of its value.

    Args:
        key: As ``leaves`` names it.
        home: For the daemon's files.
        values: Of keys with a form of their own.
        beside: Variables without which some keys would be refused.
    """
    name = f"{key}.program" if key.endswith(".runtime_options") else key
    for placeholder, given in NAMES.items():
        name = name.replace(placeholder, given)
    environ = {
        "SUBAGENTS_HOME": str(home),
        **beside,
        variable(name): values.get(key, fitting(KEYS[key])),
        "SUBAGENTS_AGENTS__SOME__RUNTIME": "scripted",
    }
    config = load(None, environ, paths=Paths.resolve(environ))
    return {leaf.origin for leaf in config.leaves() if leaf.key == name} == {variable(name)}
