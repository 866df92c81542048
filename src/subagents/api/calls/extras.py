"""Modules of ours that need a package which is not in the base install."""

from importlib import import_module
from types import ModuleType

from subagents.errors import Unavailable


def loaded(module: str, *, extra: str) -> ModuleType:
    """Import a module of ours with what it needs.

    Args:
        module: Its full name.
        extra: Of ours, that brings the packages.

    Raises:
        Unavailable: A package is not installed; the hint says how it is.
    """
    try:
        return import_module(module)
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "subagents":
            raise
        raise Unavailable(
            f"this needs the package {error.name}, which is not installed",
            hint=f"pip install 'subagents[{extra}]', then: subagents down, subagents up",
        ) from error
