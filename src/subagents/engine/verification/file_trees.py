"""Finds the files that the patterns of a contract match; blocking, bounded in number and time."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from subagents.domain.rules.path_patterns import PathPattern
from subagents.domain.run.workspace import CACHES
from subagents.engine.verification.contract_files import Abandoned, never

TREE_FILES_MAX: Final = 1000
"""Of one pattern; the fingerprint of each is kept with the run."""
_PASSED_OVER: Final = CACHES | {".git"}


class TooManyFiles(Exception):
    """A pattern matches more than ``TREE_FILES_MAX`` files."""


def matching_files(
    pattern: PathPattern, workspace: Path, *, abandoned: Callable[[], bool] = never
) -> list[str]:
    """The files below the workspace that a pattern matches, sorted.

    Symbolic links to directories are not followed; ``.git`` and the caches that tools make by
    themselves are passed over, unless the pattern names them.

    Raises:
        TooManyFiles: There are more than that.
        Abandoned: ``abandoned`` said so.
    """
    found: list[str] = []
    for path in _files(pattern, workspace, abandoned):
        if pattern.matches(path):
            found.append(path)
            if len(found) > TREE_FILES_MAX:
                raise TooManyFiles
    return sorted(found)


def _files(pattern: PathPattern, workspace: Path, abandoned: Callable[[], bool]) -> Iterator[str]:
    base = workspace / pattern.base
    if pattern.base and not base.is_dir():
        if os.path.lexists(base):
            yield pattern.base
        return
    pending = [pattern.base]
    while pending:
        if abandoned():
            raise Abandoned
        directory = pending.pop()
        try:
            entries = list(os.scandir(workspace / directory))
        except OSError:
            continue  # gone, or not ours to read: nothing in it can be counted
        for entry in entries:
            path = f"{directory}/{entry.name}" if directory else entry.name
            if not entry.is_dir(follow_symlinks=False):
                yield path
            elif entry.name not in _PASSED_OVER or entry.name in pattern.names:
                pending.append(path)
