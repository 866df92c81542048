"""A run's branch is merged into the checkout, or nothing is changed and it is said why."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.extensions.worktrees.worktree_harness import Harness
from tests.repository import commit, git

from subagents.errors import Conflict


def worked(harness: Harness, repository: Path) -> tuple[str, Path]:
    """The branch of a run that changed a line and made a file, and committed neither."""
    tree, root = harness.made(repository)
    (root / "sub" / "a.txt").write_text("one\nours\n")
    (root / "new.txt").write_text("new\n")
    return tree.branch, root


@pytest.mark.requirement("worktree:merge:forward")
def test_a_branch_on_top_of_the_checkout_becomes_it_and_once_is_enough(
    harness: Harness, repository: Path
) -> None:
    branch, _ = worked(harness, repository)
    tree = harness.plan(repository).tree
    (repository / "mine.txt").write_text("in no commit, and not in the way\n")
    found = harness.merge(tree)
    assert (found.into, found.commit) == ("main", git(repository, "rev-parse", branch))
    assert (repository / "new.txt").read_text() == "new\n"
    assert not harness.merge(tree).is_new


@pytest.mark.requirement("worktree:merge:both")
def test_two_sides_become_a_merge_commit_of_whoever_the_user_is(
    harness: Harness, repository: Path
) -> None:
    branch, _ = worked(harness, repository)
    git(repository, "config", "user.name", "User")
    git(repository, "config", "user.email", "user@localhost")
    (repository / "other.txt").write_text("other\n")
    commit(repository, "other")
    harness.merge(harness.plan(repository).tree)
    told = git(repository, "log", "-1", "--format=%ae %s %P").split()
    assert told[:4] == ["user@localhost", "Merge", "branch", f"'{branch}'"]
    assert len(told) == 6
    assert (repository / "sub" / "a.txt").read_text() == "one\nours\n"
    assert git(repository, "status", "--porcelain") == ""


@pytest.mark.requirement("worktree:merge:conflicts")
def test_conflicts_are_told_by_file_and_nothing_is_changed(
    harness: Harness, repository: Path
) -> None:
    worked(harness, repository)
    (repository / "sub" / "a.txt").write_text("one\ntheirs\n")
    (repository / "new.txt").write_text("theirs\n")
    head = commit(repository, "theirs")
    found = harness.merge(harness.plan(repository).tree)
    assert (found.commit, found.conflicts) == (None, ("new.txt", "sub/a.txt"))
    assert git(repository, "rev-parse", "HEAD") == head
    assert git(repository, "status", "--porcelain") == ""


def dirty(repository: Path) -> None:
    (repository / "tests" / "test_a.py").write_text("changed\n")


def staged(repository: Path) -> None:
    dirty(repository)
    git(repository, "add", "--all")


def detached(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "--detach")


def merging(repository: Path) -> None:
    (repository / ".git" / "MERGE_HEAD").write_text(git(repository, "rev-parse", "HEAD"))


def in_the_way(repository: Path) -> None:
    (repository / "new.txt").write_text("untracked\n")


def ignored(repository: Path) -> None:
    (repository / ".git" / "info" / "exclude").write_text("new.txt\n")
    in_the_way(repository)


def filtered(repository: Path) -> None:
    git(repository, "config", "filter.x.smudge", "touch escaped; cat")


@pytest.mark.requirement("worktree:merge:untouched")
@pytest.mark.parametrize(
    ("state", "why"),
    [
        (dirty, "1 uncommitted change"),
        (staged, "1 uncommitted change"),
        (detached, "no branch checked out"),
        (merging, "a merge is not finished"),
        (in_the_way, "would be overwritten"),
        (ignored, "would be overwritten"),
        (filtered, "filters of its own"),
    ],
)
def test_a_checkout_that_is_not_ready_is_left_as_it_is(
    harness: Harness, repository: Path, state: Callable[[Path], None], why: str
) -> None:
    _, root = worked(harness, repository)
    commit(root, "work")
    state(repository)
    before = [git(repository, *each) for each in (("status", "--porcelain"), ("rev-parse", "HEAD"))]
    with pytest.raises(Conflict, match=why):
        harness.merge(harness.plan(repository).tree)
    after = [git(repository, *each) for each in (("status", "--porcelain"), ("rev-parse", "HEAD"))]
    assert before == after
    assert not (repository / "escaped").exists()
    way = repository / "new.txt"
    assert not way.exists() or way.read_text() == "untracked\n"
