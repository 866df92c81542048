"""What the fields of our structs are where whoever wrote one did not know them."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import msgspec


def true_where_unsaid(package: ModuleType, base: type[msgspec.Struct]) -> set[str]:
    """``Struct.field`` for each that is true by default, of all modules of a package."""
    names = [f"{package.__name__}.{each.name}" for each in iter_modules(package.__path__)]
    for each in names:
        import_module(each)
    return {
        f"{kind.__name__}.{field.name}"
        for kind in _below(base)
        if kind.__module__ in names
        for field in msgspec.structs.fields(kind)
        if field.default is True
    }


def _below(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
