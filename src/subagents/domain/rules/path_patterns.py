"""Patterns of paths in contracts: ``out/*.csv``, ``src/**/*.py``, ``tests``. Pure; opens nothing.

Paths are relative, with slashes. ``*``, ``?`` and ``[…]`` stay within one name, ``**`` stands for
any number of directories.
"""

import fnmatch
import re
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from subagents.errors import ContractError

PARTS_MAX: Final = 100
_MAGIC: Final = re.compile(r"[*?[]")


class PathPattern(NamedTuple):
    """A pattern, ready to be used."""

    text: str
    base: str
    """Everything that it can match is this path or lies below it; ``""`` = the workspace."""
    matches: Callable[[str], bool]
    names: frozenset[str]
    """The names spelled out in it, so that a directory that is passed over otherwise is not."""


def pattern_of(text: str, *, field: str, whole_directories: bool = False) -> PathPattern:
    """Read a pattern of the contract's ``field``.

    With ``whole_directories`` a directory that matches stands for everything below it.

    Raises:
        ContractError: It is absolute, or leaves the workspace through ``..``.
    """
    parts = [part for part in text.split("/") if part not in {"", "."}]
    if text.startswith("/") or ".." in parts:
        raise ContractError(
            f"{field} must be a path or pattern below the working directory, relative to it"
        )
    if len(parts) > PARTS_MAX:
        raise ContractError(f"{field} must have at most {PARTS_MAX} names, not {len(parts)}")
    fixed = list(takewhile(lambda part: _MAGIC.search(part) is None, parts))
    # Name by name and not as one expression, in which several `**` could backtrack for ever.
    names = [_any if part == "**" else re.compile(fnmatch.translate(part)).match for part in parts]

    def matches(path: str) -> bool:
        return _fits(names, path.split("/"), whole_directories=whole_directories)

    return PathPattern(text=text, base="/".join(fixed), matches=matches, names=frozenset(fixed))


_Named = Callable[[str], object]


def _any(_name: str) -> object:
    return True


def _fits(names: Sequence[_Named], path: Sequence[str], *, whole_directories: bool) -> bool:
    """Name by name, from the front; ``reached`` holds how many of ``names`` can be used up."""
    reached = _skipping(names, {0})
    for name in path:
        if whole_directories and len(names) in reached:
            return True  # a directory above it fits
        onward = set()
        for at in reached:
            if at < len(names) and names[at](name):
                onward.add(at if names[at] is _any else at + 1)
        reached = _skipping(names, onward)
    return len(names) in reached


def _skipping(names: Sequence[_Named], reached: set[int]) -> set[int]:
    """``**`` may stand for no directory at all."""
    found = set(reached)
    for at in range(len(names)):
        if at in found and names[at] is _any:
            found.add(at + 1)
    return found
