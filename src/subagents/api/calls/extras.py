"""Modules of ours that need a package which is not in the base install."""

from importlib import import_module
from types import ModuleType

from subagents.errors import Unavailable
from subagents.installation import extra_command


def loaded(module: str, *, extra: str) -> ModuleType:
    """Import a module of ours, whose packages the extra of that name brings.

    Raises:
        Unavailable: A package is not installed; the hint says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        # A module of ours that is missing is a mistake of ours, not a missing extra.
        if (error.name or "").partition(".")[0] == "subagents":
            raise
        raise Unavailable(
            f"this needs the package {error.name}, which is not installed",
            hint=f"{extra_command(extra)}, then: subagents down, subagents up",
        ) from error
