"""Finds the files that the patterns of a contract match; blocking, bounded in number and time."""

from collections.abc import Callable, Iterator
from typing import Final

from subagents.domain.rules.path_patterns import PathPattern
from subagents.domain.run.workspace import CACHES
from subagents.engine.verification.contract_files import Abandoned, never
from subagents.engine.verification.work_root import WorkRoot

TREE_FILES_MAX: Final = 1000
"""Files that one pattern may match; the fingerprint of each is kept with the run."""
_PASSED_OVER: Final = CACHES | {".git"}


class TooManyFiles(Exception):
    """A pattern matches more files than it may."""


def matching_files(
    pattern: PathPattern,
    root: WorkRoot,
    *,
    abandoned: Callable[[], bool] = never,
    files_max: int = TREE_FILES_MAX,
) -> list[str]:
    """The files below the workspace that a pattern matches, sorted.

    Symbolic links to directories are not followed; ``.git`` and the caches that tools make by
    themselves are passed over, unless the pattern names them.

    Raises:
        TooManyFiles: There are more than that.
        FileFault: All that it could match lies outside.
        Abandoned: ``abandoned`` said so.
    """
    found: list[str] = []
    for path in _files(pattern, root, abandoned):
        if pattern.matches(path):
            found.append(path)
            if len(found) > files_max:
                raise TooManyFiles
    return sorted(found)


def _files(pattern: PathPattern, root: WorkRoot, abandoned: Callable[[], bool]) -> Iterator[str]:
    pending = [pattern.base]
    while pending:
        if abandoned():
            raise Abandoned
        directory = pending.pop()
        try:
            entries = root.entries(directory)
        except OSError:
            # Gone, or not ours to read: nothing in it can be counted, but that something is there.
            if directory and directory == pattern.base and root.mark(directory) is not None:
                yield directory
            continue
        for entry in entries:
            path = f"{directory}/{entry.name}" if directory else entry.name
            if not entry.is_directory:
                yield path
            elif entry.name not in _PASSED_OVER or entry.name in pattern.names:
                pending.append(path)
