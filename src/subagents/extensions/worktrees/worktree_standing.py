"""How a worktree stands: what would be lost with it, and which branch has its work by now.

Blocking, and changes nothing. What cannot be known counts as something to keep.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from subagents.domain.run.values import Value
from subagents.domain.run.workspace import BRANCHES, NAMED_MAX, Worktree
from subagents.extensions.worktrees.git import NO_SUBMODULES, Git, fields
from subagents.extensions.worktrees.leftovers import GITLINK, unfinished
from subagents.extensions.worktrees.worktree_changes import ignored_files, printable
from subagents.text import counted, listed

ENTRIES_MAX: Final = 100_000
"""Files whose sizes are added up."""


class Standing(Value, frozen=True):
    """A worktree and its branch, as they are now."""

    has_commits: bool
    """The branch, or what is checked out, is at another commit than it began from."""
    merged_into: str | None
    """A branch, of no run, that has all those commits."""
    tip: str | None
    """The commit of the run's branch; None = somebody deleted that."""
    kept_because: str | None
    """What would be lost with it, or forbids to remove it; None = it can go."""


def standing_of(
    git: Git, inside: Git | None, tree: Worktree, base: str, copies: Mapping[str, str]
) -> Standing:
    """Look at it.

    Args:
        git: In its repository.
        inside: In the worktree; None = its directory is gone.
        tree: As planned.
        base: The commit it began from.
        copies: See ``ignored_files``.

    Raises:
        GitFailed: git could not say.
    """
    ref = f"refs/heads/{tree.branch}"
    tip = git.line("rev-parse", "--verify", "--quiet", ref)
    ends = [] if tip is None else [tip]
    if inside is not None:
        ends.append(inside("rev-parse", "--verify", "HEAD^{commit}").strip())
    new = [each for each in dict.fromkeys(ends) if each != base]
    into = _home_of(git, new) if new else None
    why = None if inside is None else _left_in(inside, Path(tree.path), copies)
    holder = git.line("for-each-ref", "--format=%(worktreepath)", ref)
    if why is None and holder and os.path.realpath(holder) != os.path.realpath(tree.path):
        why = f"{tree.branch} is checked out in {holder}"
    if why is None and new and into is None:
        why = f"{tree.branch} is merged into no branch"
    return Standing(has_commits=bool(new), merged_into=into, tip=tip, kept_because=why)


def _home_of(git: Git, commits: list[str]) -> str | None:
    found: list[set[str]] = []
    for each in commits:
        asked = ("for-each-ref", "--format=%(refname)", "--contains", each)
        names = git(*asked, "refs/heads", "refs/remotes").splitlines()
        found.append({name for name in names if not _is_a_runs(name)})
    ref = min(set.intersection(*found), default=None)  # those of this machine come first
    return None if ref is None else printable(ref.split("/", 2)[2])


def _is_a_runs(ref: str) -> bool:
    """The branch of a run, or what a remote repository has of one; those are removed some day."""
    _, kind, name = ref.split("/", 2)
    if kind == "remotes":
        name = name.partition("/")[2]
    return name.startswith((f"{BRANCHES}/", f"{BRANCHES}-"))


def _left_in(inside: Git, root: Path, copies: Mapping[str, str]) -> str | None:
    git_dir = Path(inside("rev-parse", "--absolute-git-dir").removesuffix("\n"))
    if (git_dir / "locked").exists():
        return "it is locked (git worktree unlock)"
    if under_way := unfinished(git_dir):
        return f"a {under_way} is not finished in it"
    asked = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", NO_SUBMODULES)
    if changed := fields(inside(*asked)):
        return f"{counted(len(changed), 'file')} in no commit: {_names([r[3:] for r in changed])}"
    # Small letters and S: git was told not to look whether the file was changed.
    rows = fields(inside("ls-files", "-v", "--stage", "-z"))
    if hidden := [row.partition("\t")[2] for row in rows if row[0].islower() or row[0] == "S"]:
        return f"git is told not to look at {_names(hidden)}"
    if below := [row.partition("\t")[2] for row in rows if row[2:].startswith(GITLINK)]:
        return f"there is a repository in it: {_names(below)}"
    if ignored := ignored_files(inside, root, copies):
        return f"{counted(len(ignored), 'file')} that git ignores: {_names(ignored)}"
    return None


def _names(paths: list[str]) -> str:
    return printable(listed(paths, NAMED_MAX))


def bytes_in(root: Path) -> int:
    """The size of its files; of very many only of the first ones."""
    total, left, pending = 0, ENTRIES_MAX, [str(root)]
    while pending and left > 0:
        try:
            with os.scandir(pending.pop()) as entries:
                for each in entries:
                    left -= 1
                    if each.is_dir(follow_symlinks=False):
                        pending.append(each.path)
                    else:
                        total += each.stat(follow_symlinks=False).st_size
        except OSError:
            continue  # it went meanwhile
    return total
