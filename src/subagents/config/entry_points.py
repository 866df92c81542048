"""Names that other installed packages add, by entry points; nothing of theirs is imported here.

See docs/howto/own-runtime.md.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from importlib import metadata
from typing import Final

from subagents.config.settings import RUNTIMES

SHADOWED: Final = frozenset(RUNTIMES)


def entry_points(group: str) -> Mapping[str, tuple[metadata.EntryPoint, ...]]:
    """Name → everything that was installed under it (more than one = it is not clear which).

    Looked for again after something was installed or removed: it reads the lists of all packages,
    and a file of configuration can name a thousand plugins.
    """
    return _entry_points(group, _places())


def _places() -> tuple[tuple[str, int], ...]:
    """Where packages are, and when one came or went there."""
    found = []
    for place in sys.path:
        with suppress(OSError):
            found.append((place, os.stat(place or ".").st_mtime_ns))  # noqa: PTH116  often
    return tuple(found)


@lru_cache(maxsize=8)
def _entry_points(
    group: str,
    _places: tuple[tuple[str, int], ...],  # for the key of the cache
) -> Mapping[str, tuple[metadata.EntryPoint, ...]]:
    found: dict[str, list[metadata.EntryPoint]] = {}
    for point in metadata.entry_points(group=group):
        found.setdefault(point.name, []).append(point)
    # The same distribution seen twice (an editable install next to its wheel) is one.
    return {
        name: tuple({(each.value, each.dist and each.dist.name): each for each in points}.values())
        for name, points in sorted(found.items())
    }


def plugin_names(group: str) -> tuple[str, ...]:
    """The names of that group that are not ours, sorted."""
    return tuple(name for name in entry_points(group) if name not in SHADOWED)
