"""Modules that moved, under the names that programs of others import them by; until 0.4.0."""

import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

FORMER: Final = {
    "subagents.testing": "subagents.extensions.testing",
    "subagents.runtimes.conversation": "subagents.extensions.conversation",
}
"""Packages that our pages told others to import."""


def spec_of(name: str) -> ModuleSpec | None:
    """How to import the module that was once called so; None = none was."""
    return ModuleSpec(name, Alias()) if _present(name) else None  # type: ignore[arg-type]  # a loader by its methods


class Alias:
    """Loads a module under a former name, without a second copy of it."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself, under both names."""
        name = _present(spec.name)
        assert name is not None  # noqa: S101  just found
        warnings.warn(
            f"{spec.name} is now {name}; the former name goes with subagents 0.4.0",
            DeprecationWarning,
            stacklevel=2,
        )
        module = import_module(name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It was executed under its own name, and keeps that."""
        module.__spec__ = self._spec


def _present(name: str) -> str | None:
    for former, present in FORMER.items():
        if name == former or name.startswith(f"{former}."):
            return present + name.removeprefix(former)
    return None
