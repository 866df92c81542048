"""A run's branch, merged into what its repository has checked out.

Tried in memory first: with conflicts nothing is touched. A checkout with changes is left alone.
"""

from pathlib import Path

from subagents.domain.run.values import Value
from subagents.errors import Conflict
from subagents.extensions.worktrees.git import CHECKOUT_S, NO_SUBMODULES, Git, GitFailed, fields
from subagents.extensions.worktrees.leftovers import follows, unfinished
from subagents.extensions.worktrees.worktree_changes import printable
from subagents.text import counted


class Merge(Value, frozen=True):
    """What came of it."""

    into: str
    """The branch that was checked out."""
    commit: str | None
    """That branch's newest afterwards; None = there are conflicts, and nothing was changed."""
    conflicts: tuple[str, ...] = ()
    """The files that both sides changed."""
    is_new: bool = True
    """The branch did not have it already."""


def merged(git: Git, root: str, branch: str) -> Merge:
    """Merge ``branch``.

    Args:
        git: In the checkout.
        root: Its directory.
        branch: Of the run.

    Raises:
        Conflict: The checkout is not ready for it; nothing was changed.
        GitFailed: git could not do it; nothing was changed.
    """
    into = git.line("symbolic-ref", "--short", "--quiet", "HEAD")
    if into is None:
        raise Conflict(f"{root} has no branch checked out", hint="git switch BRANCH there")
    git_dir = Path(git("rev-parse", "--absolute-git-dir").removesuffix("\n"))
    if under_way := unfinished(git_dir):
        raise Conflict(f"a {under_way} is not finished in {root}")
    asked = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=no", NO_SUBMODULES)
    if changed := fields(git(*asked)):
        text = f"{root} has {counted(len(changed), 'uncommitted change')}"
        raise Conflict(text, hint="commit or stash them there, then merge again")
    if any(key.startswith("filter.") for key in git.commands()):
        # Its files would be written as they are in the commit.
        text = f"{root} has filters of its own, which the daemon does not run"
        raise Conflict(text, hint=f"git merge {branch}")
    head = git("rev-parse", "--verify", "HEAD^{commit}").strip()
    tip = git.line("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
    if tip is None:
        raise Conflict(f"there is no branch {branch} in {root} any more")
    if follows(git, head, tip):
        return Merge(into=into, commit=head, is_new=False)
    new = tip
    if not follows(git, tip, head):
        how = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages")
        try:
            found = fields(git(*how, head, tip, timeout_s=CHECKOUT_S))[0].strip()
        except GitFailed as error:
            if error.status != 1:
                raise
            files = tuple(map(printable, fields(error.answer)[1:]))
            return Merge(into=into, commit=None, conflicts=files)
        said = ("-p", head, "-p", tip, "-m", f"Merge branch '{branch}'")
        new = git("commit-tree", found, *said).strip()
    try:
        # git itself looks again, and overwrites no file that it does not know, or that it ignores.
        git("merge", "--ff-only", "--quiet", "--no-overwrite-ignore", new, timeout_s=CHECKOUT_S)
    except GitFailed as error:
        raise Conflict(error.message) from error
    return Merge(into=into, commit=new)
