"""What a worker left in no commit, made into one.

Files that git ignores are left alone, and no repository below the worktree is entered: git would
obey what its worker wrote there.
"""

from pathlib import Path
from typing import Final

from subagents.extensions.worktrees.git import CHECKOUT_S, Git, GitFailed, fields

UNFINISHED: Final = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
}
"""Where git keeps what it needs to end one, and what that is called."""
GITLINK: Final = "160000"
"""The mode of a repository below, of which git knows a commit."""


def commit_of(git: Git, apart: Git, text: str) -> str:
    """A commit that has all files as they are: HEAD, or one that follows it and is on no branch.

    Args:
        git: In the worktree.
        apart: The same, with an index for this alone: a copy of its own, or none yet.
        text: The message of a new one.

    Raises:
        GitFailed: A file cannot be read, there is no HEAD, or the like.
    """
    head = git("rev-parse", "--verify", "HEAD^{commit}").strip()
    if not apart("ls-files", "-z"):
        apart("read-tree", head)
    links = (row for row in fields(apart("ls-files", "--stage", "-z")) if row.startswith(GITLINK))
    left_out = [f":(exclude,top,literal){row.partition(chr(9))[2]}" for row in links]
    apart("add", "--all", "--ignore-errors", "--", ":/", *left_out, timeout_s=CHECKOUT_S)
    work = apart("write-tree").strip()
    if work == apart("rev-parse", f"{head}^{{tree}}").strip():
        return head
    return apart("commit-tree", work, "-p", head, "-m", text).strip()


def bring_home(git: Git, apart: Git, index: Path, branch: str, text: str) -> None:
    """Put what is in no commit, or on no branch, onto ``branch``, and check that out.

    Args:
        git: In the worktree.
        apart: See ``commit_of``.
        index: Its file, in the same directory as the worktree's own.
        branch: The worktree's, whatever its worker has checked out.
        text: The message of the commit.

    Raises:
        GitFailed: It cannot be; the files stay as they are.
    """
    ref = f"refs/heads/{branch}"
    head = git("rev-parse", "--verify", "HEAD^{commit}").strip()
    work = commit_of(git, apart, text)
    tip = git.line("rev-parse", "--verify", "--quiet", ref)
    if tip is not None and work == head and follows(git, tip, head):
        return  # the branch has it all
    if under_way := unfinished(index.parent):
        raise GitFailed(f"a {under_way} is not finished in it")
    if tip is not None and not follows(git, work, tip):
        raise GitFailed(f"{head[:12]} is checked out, which does not follow branch {branch}")
    # Before the branch: were it to end in between, the same would be done again.
    index.replace(index.with_name("index"))
    if git.line("symbolic-ref", "--quiet", "HEAD") == ref:
        git("update-ref", ref, work, head)
    else:
        # git refuses when another worktree has it checked out.
        git("branch", "--quiet", "--force", "--no-track", branch, work)
        git("symbolic-ref", "HEAD", ref)


def follows(git: Git, commit: str, earlier: str) -> bool:
    """Whether ``earlier`` is a commit that ``commit`` has in its past, or is it."""
    return git.line("merge-base", "--is-ancestor", earlier, commit) is not None


def unfinished(git_dir: Path) -> str | None:
    """What git has begun in a worktree and not ended."""
    return next((what for name, what in UNFINISHED.items() if (git_dir / name).exists()), None)
