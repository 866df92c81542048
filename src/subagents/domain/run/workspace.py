"""Where a run works when it has its own workspace, and what it left there.

A worktree is planned at the spawn (its path and branch are in the receipt), made before the first
attempt, and looked at when an attempt ends: before the end is journaled, so that its announcement
already names what was changed.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from subagents.domain.run.values import Value
from subagents.text import counted, listed, one_line

FILES_MAX: Final = 200
"""Changed files kept by name; the numbers count all."""
CACHES: Final = frozenset(
    {
        *("node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox", ".mypy_cache", "target"),
        *(".pytest_cache", ".ruff_cache", ".hypothesis", ".cache", ".gradle", ".next", ".turbo"),
        *(".DS_Store", ".idea", ".vscode", ".eggs", ".parcel-cache", ".pnpm-store"),
    }
)
"""Directories that tools make by themselves: no work that could be lost."""
NAMED_MAX: Final = 5
"""Files named in one line."""
DIFFSTAT_CHARS_MAX: Final = 500
WORDS_CHARS_MAX: Final = 4_000
LEFT_MAX: Final = 50


class Worktree(Value, frozen=True):
    """A git worktree and branch that belong to one run."""

    repository: str
    """Root of the checkout it comes from, absolute."""
    path: str
    """Root of the worktree; the run works in it, or in the same directory below it as asked for."""
    branch: str
    origin: str
    """The working directory that was asked for."""
    node: str | None = None
    """Name of the node on which it is; None = of its owner, as of every run without a place."""
    setup: str = ""
    """What a shell runs before each worker in it; it knows by itself when nothing is left to do."""


class PlacedTree(Value, frozen=True):
    """A worktree at the run's place, which is known only when a node has taken its attempt."""

    worktree: Worktree
    cwd: str
    """The directory in the worktree where the run works, without links."""


class BranchLeft(Value, frozen=True):
    """What a run left in its worktree, for the runs that wait for it."""

    branch: str
    path: str
    """Root of the worktree, absolute."""
    base: str
    """The commit it began from; empty = git could not say."""
    diffstat: str
    """See ``summary``; on one line."""


class ChangeKind(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


class FileChange(Value, frozen=True):
    """One file, compared with the commit that the run began from."""

    path: str
    """The path from the root of the repository."""
    kind: ChangeKind
    insertions: int | None = None
    """Lines; None for a binary file, or a large one that git does not know yet."""
    deletions: int | None = None


class Changes(Value, frozen=True):
    """What a run changed in its worktree, committed or not."""

    base: str = ""
    """The commit it was compared with; empty = not known."""
    files: int = 0
    insertions: int = 0
    deletions: int = 0
    deleted: int = 0
    """How many of ``files`` are gone."""
    commits: int = 0
    ignored: int = 0
    """Files and directories that git ignores, without the caches of known tools."""
    changed: tuple[FileChange, ...] = ()
    """The changed files, at most ``FILES_MAX``, the deleted ones first."""
    kept_branches: tuple[str, ...] = ()
    """Where the work of attempts before this one is kept."""
    error: str | None = None
    """Why it could not be looked at; then nothing else is known."""
    uncommitted: str | None = None
    """Why what its worker did not commit is in no commit, but in the worktree alone."""

    @property
    def is_clean(self) -> bool:
        """Nothing was changed or committed, as far as it is known."""
        return not (self.files or self.commits or self.ignored or self.error)


class Remains(Value, frozen=True):
    """What an attempt left besides its result."""

    words: str | None = None
    """The end of its output, when it gave no result."""
    files: tuple[str, ...] = ()
    """Files of its contract that exist, when it ended badly."""
    changes: Changes | None = None
    """Only of a run with a worktree."""


def branch_left(tree: Worktree | None, changes: Changes | None) -> BranchLeft | None:
    """What is handed on; None = there is no worktree, or nothing in it: it is removed."""
    if tree is None or changes is None or changes.is_clean:
        return None
    stat = one_line(summary(changes), chars_max=DIFFSTAT_CHARS_MAX)
    return BranchLeft(branch=tree.branch, path=tree.path, base=changes.base, diffstat=stat)


def summary(changes: Changes) -> str:
    """``3 files changed, +40 -2, 1 commit; deleted: tests/test_a.py``."""
    if changes.error is not None:
        return f"changes unknown: {changes.error}"
    if changes.is_clean:
        return "no changes"
    parts = []
    if changes.files:
        lines = f"+{changes.insertions} -{changes.deletions}"
        parts.append(f"{counted(changes.files, 'file')} changed, {lines}")
    if changes.commits:
        parts.append(counted(changes.commits, "commit"))
    if changes.ignored:
        parts.append(f"{changes.ignored} ignored by git")
    gone = [each.path for each in changes.changed if each.kind is ChangeKind.DELETED]
    text = ", ".join(parts)
    if gone:
        text += f"; deleted: {listed(gone, NAMED_MAX, changes.deleted)}"
    return text if changes.uncommitted is None else f"{text}; not committed: {changes.uncommitted}"


def out_of_scope(changes: Changes, artifacts: Sequence[str], prefix: str) -> tuple[str, ...]:
    """Changed files, of those that are known by name, that no path of the contract names.

    ``prefix`` is the working directory below the repository's root: ``""`` or ``"sub/dir/"``.
    """
    if not artifacts:
        return ()  # such a contract says nothing of what is in scope
    named = {f"{prefix}{path.removeprefix('./')}" for path in artifacts}
    return tuple(each.path for each in changes.changed if each.path not in named)


def prefix_of(tree: Worktree, cwd: str) -> str:
    """The part of the working directory below the worktree's root, with a slash at its end."""
    below = cwd.removeprefix(tree.path).strip("/")
    return f"{below}/" if below else ""
