"""What the fields of a struct mean, read from the literals below them.

A field is described once, where it stands; what writes a schema asks here. Needs the source of the
module; without it there are no descriptions.
"""

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

import msgspec


def field_docs(kind: type[msgspec.Struct]) -> Mapping[str, str]:
    """The description of each field by its name on the wire; those of its bases, too."""
    texts: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith("subagents."):
            texts |= _in_module(each.__module__).get(each.__name__, {})
    names = {field.name: field.encode_name for field in msgspec.structs.fields(kind)}
    return {names[name]: text for name, text in texts.items() if name in names}


@cache
def _in_module(name: str) -> Mapping[str, Mapping[str, str]]:
    """Of every class of a module: its fields and the texts below them."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[name]))
    except OSError:
        return {}
    return {
        node.name: dict(_described(node)) for node in tree.body if isinstance(node, ast.ClassDef)
    }


def _described(node: ast.ClassDef) -> list[tuple[str, str]]:
    found = []
    for field, text in pairwise(node.body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            found.append((field.target.id, " ".join(text.value.value.split())))
    return found
