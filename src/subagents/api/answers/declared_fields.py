"""Which fields an answer may have, where the one at hand shows none: it is null, or an empty list.

The structs of the wire are known by what an answer has, since commands print answers as the daemon
wrote them. It takes the import of all of them, so it is asked only where the answer does not tell.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules

import msgspec
from msgspec import inspect

from subagents.api import wire


def fields_of(document: Mapping[str, object], path: Sequence[str]) -> Collection[str] | None:
    """The names that may stand below a path.

    Args:
        document: The whole answer.
        path: Names of fields from its top; through a list it leads into each of its objects.

    Returns:
        None where nothing is known: it is no answer of the daemon, or anything may stand there.
    """
    found: dict[str, None] = {}
    is_known = False
    for each in _structs(document):
        # Several structs may fit a document with few fields: all that one of them allows may stand.
        below = _below(inspect.type_info(each), path)
        if below is not None:
            is_known = True
            found.update(dict.fromkeys(below))
    return tuple(found) if is_known else None


def _structs(document: Mapping[str, object]) -> Iterator[type[msgspec.Struct]]:
    """Those that may have written it: it has nothing but what they have, and all they must."""
    names = set(document)
    for module in iter_modules(wire.__path__):
        for kind in vars(import_module(f"{wire.__name__}.{module.name}")).values():
            if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
                continue
            theirs = {each.encode_name: each.required for each in msgspec.structs.fields(kind)}
            if names <= set(theirs) and all(
                name in names for name, is_required in theirs.items() if is_required
            ):
                yield kind


def _below(kind: inspect.Type, path: Sequence[str]) -> list[str] | None:
    if isinstance(kind, inspect.Metadata):
        return _below(kind.type, path)
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return _below(kind.item_type, path)
    if isinstance(kind, inspect.UnionType):
        given = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
        found = [_below(each, path) for each in given]
        if not found or None in found:
            return None
        return [name for names in found for name in names or ()]
    if not isinstance(kind, inspect.StructType):
        return None
    if not path:
        return [field.encode_name for field in kind.fields]
    inside = next((field for field in kind.fields if field.encode_name == path[0]), None)
    return None if inside is None else _below(inside.type, path[1:])
