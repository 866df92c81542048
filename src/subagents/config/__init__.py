"""Configuration: what `subagents.toml` says, where state lives, and how both are found.

`load` (or, for many calls, `ConfigCache`) gives a `Config`; `Paths.resolve` the directories.
The names are imported when they are first used: the command line needs the paths at every start
and the rest seldom.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from subagents.config.layers import (
        Config,
        ConfigCache,
        Leaf,
        load,
    )
    from subagents.config.paths import Paths
    from subagents.config.settings import Agent, Settings

__all__ = ["Agent", "Config", "ConfigCache", "Leaf", "Paths", "Settings", "load"]

_HOME: Final = {
    "Agent": "settings",
    "Config": "layers",
    "ConfigCache": "layers",
    "Leaf": "layers",
    "Paths": "paths",
    "Settings": "settings",
    "load": "layers",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
