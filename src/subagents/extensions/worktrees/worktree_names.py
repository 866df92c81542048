"""What the worktree and the branch of a run are called."""

from typing import Final

from subagents.domain.run.values import RunId

BRANCHES: Final = "subagents"
"""Our branches lie in a folder of this name, unless the repository has a branch of this name."""
LABEL_CHARS_MAX: Final = 40
ID_CHARS: Final = 10


def branch_of(run_id: RunId, label: str, *, has_folder: bool = True) -> str:
    """``subagents/<label>-<short id>``: unique, and readable in ``git branch``.

    Without a folder, where a branch is called ``subagents`` and git can keep none, it is
    ``subagents-<label>-<short id>``.
    """
    return f"{BRANCHES}{'/' if has_folder else '-'}{worktree_name(run_id, label)}"


def worktree_name(run_id: RunId, label: str) -> str:
    """The last part of the worktree's path and branch."""
    short = run_id.removeprefix("r-")[:ID_CHARS]
    return "-".join(filter(None, (words(label)[:LABEL_CHARS_MAX].strip("-"), short)))


def words(label: str) -> str:
    """The letters and digits of a label in small ASCII, with one ``-`` for whatever is between."""
    # ASCII alone: a path and a branch name that every tool, shell and file system takes.
    letters = (c if c.isascii() and c.isalnum() else "-" for c in label.lower())
    return "-".join(filter(None, "".join(letters).split("-")))
