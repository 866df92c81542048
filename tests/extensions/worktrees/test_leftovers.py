"""What a worker left in no commit is on its branch when the attempt is over."""

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.extensions.worktrees.worktree_harness import ME, Harness
from tests.repository import a_repository, branches, commit, git

from subagents.domain.run.workspace import summary
from subagents.engine.kernel.threads import DaemonThreads
from subagents.extensions.worktrees.git_worktrees import GitWorktrees


@pytest.mark.requirement("worktree:home:committed")
def test_what_was_changed_made_and_deleted_is_one_commit_that_can_be_merged(
    harness: Harness, repository: Path
) -> None:
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    tree, root = harness.made(repository)
    (root / "sub" / "a.txt").write_text("changed\n")
    (root / "ü \n.txt").write_text("new\n")
    (root / "tests" / "test_a.py").unlink()
    (root / "out").mkdir()
    (root / "out" / "built").write_text("ignored\n")

    found = harness.changes(tree)
    assert (found.files, found.commits, found.ignored, found.uncommitted) == (3, 1, 1, None)
    assert harness.changes(tree) == found
    told = git(repository, "log", "-1", "--format=%an %ae %s", tree.branch)
    label, _, _ = root.name.rpartition("-")
    assert label
    assert told == f"subagents subagents@localhost {label}: attempt 1 of {ME}"
    assert git(root, "status", "--porcelain") == ""
    git(repository, "merge", "--quiet", tree.branch)
    assert (repository / "sub" / "a.txt").read_text() == "changed\n"
    assert (repository / "ü \n.txt").exists()
    assert not (repository / "tests" / "test_a.py").exists()
    assert not (repository / "out").exists()


@pytest.mark.requirement("worktree:home:committed")
def test_what_was_changed_in_the_second_of_the_checkout_is_seen_though_its_size_is_the_same(
    harness: Harness, repository: Path
) -> None:
    git(repository, "config", "core.trustctime", "false")
    tree, root = harness.made(repository)
    file = root / "sub" / "a.txt"
    at = file.stat().st_mtime_ns - 100 * 10**9
    os.utime(file, ns=(at, at))
    git(root, "update-index", "--refresh")
    file.write_text("changed\n")
    for each in (file, *repository.glob(".git/worktrees/*/index")):
        os.utime(each, ns=(at, at))
    assert [each.path for each in harness.changes(tree).changed] == ["sub/a.txt"]
    assert git(repository, "show", f"{tree.branch}:sub/a.txt") == "changed"


@pytest.mark.requirement("worktree:home:nothing")
def test_nothing_is_committed_when_nothing_is_left(harness: Harness, repository: Path) -> None:
    tree, root = harness.made(repository)
    assert harness.changes(tree).is_clean
    (root / "new.txt").write_text("new\n")
    own = commit(root, "by the worker")
    assert harness.changes(tree).commits == 1
    assert git(repository, "rev-parse", tree.branch) == own


@pytest.mark.requirement("worktree:home:other-branch")
@pytest.mark.parametrize("how", [("-b", "feature"), ("--detach",)])
def test_work_on_another_branch_or_on_none_comes_onto_the_branch_of_the_run(
    harness: Harness, repository: Path, how: tuple[str, ...]
) -> None:
    tree, root = harness.made(repository)
    git(root, "checkout", "--quiet", *how)
    (root / "b.txt").write_text("b\n")
    own = commit(root, "by the worker")
    harness.changes(tree)
    assert git(repository, "rev-parse", tree.branch) == own
    (root / "c.txt").write_text("c\n")
    harness.changes(tree)
    assert git(repository, "rev-parse", f"{tree.branch}~1") == own
    assert git(root, "symbolic-ref", "--short", "HEAD") == tree.branch
    if "feature" in how:
        assert git(repository, "rev-parse", "feature") == own


def in_a_merge(root: Path, repository: Path) -> None:
    (repository / "sub" / "a.txt").write_text("theirs\n")
    commit(repository, "theirs")
    (root / "sub" / "a.txt").write_text("ours\n")
    commit(root, "ours")
    git(root, "merge", "--no-commit", "--strategy=ours", "--quiet", "main")


def elsewhere(root: Path, repository: Path) -> None:
    del repository
    (root / "b.txt").write_text("b\n")
    commit(root, "by the worker")
    git(root, "checkout", "--quiet", "--detach", "HEAD~1")


def taken(root: Path, repository: Path) -> None:
    branch = git(root, "symbolic-ref", "--short", "HEAD")
    git(root, "checkout", "--quiet", "--detach")
    git(repository, "checkout", "--quiet", branch)


def without_head(root: Path, repository: Path) -> None:
    del repository
    git(root, "checkout", "--quiet", "--orphan", "fresh")


@pytest.mark.requirement("worktree:home:told")
@pytest.mark.parametrize(
    ("state", "why"),
    [
        (in_a_merge, "a merge is not finished in it"),
        (elsewhere, "does not follow branch subagents/fix-it"),
        (taken, "git branch"),
        (without_head, "git rev-parse"),
    ],
)
def test_what_cannot_be_committed_is_told_and_stays_as_it_is(
    harness: Harness, repository: Path, state: Callable[[Path, Path], None], why: str
) -> None:
    tree, root = harness.made(repository)
    state(root, repository)
    (root / "left.txt").write_text("left\n")
    before = git(repository, "for-each-ref")
    found = harness.changes(tree)
    assert why in (found.uncommitted or found.error or "")
    assert found.error or f"not committed: {found.uncommitted}" in summary(found)
    assert (root / "left.txt").read_text() == "left\n"
    assert git(repository, "for-each-ref") == before
    assert not list(repository.glob(".git/worktrees/*/subagents-index*"))
    assert not harness.remove(tree)


@pytest.mark.requirement("worktree:home:no-commands")
def test_a_repository_below_that_a_worker_committed_is_not_entered(
    harness: Harness, repository: Path
) -> None:
    tree, root = harness.made(repository)
    below = a_repository(root / "below")
    git(root, "add", "below")
    escaped = harness.root / "escaped"
    git(below, "config", "filter.x.clean", f"touch {escaped}; cat")
    (below / ".git" / "info" / "attributes").write_text("* filter=x\n")
    (below / "sub" / "a.txt").write_text("changed\n")
    (root / "b.txt").write_text("b\n")
    assert harness.changes(tree).uncommitted is None
    assert not escaped.exists()
    assert git(repository, "ls-tree", "--name-only", tree.branch).split()[-3:] == [
        *("below", "sub", "tests"),
    ]


@pytest.mark.requirement("worktree:home:one-at-a-time")
def test_a_look_that_nobody_waits_for_any_more_ends_before_the_next_step(
    harness: Harness, repository: Path
) -> None:
    tree, _ = harness.made(repository)
    may_end, steps = threading.Event(), list[str]()

    async def play() -> None:
        threads = DaemonThreads("git")
        trees = GitWorktrees(harness.home, threads, os.environ)

        def slow() -> None:
            assert may_end.wait(60)
            steps.append("look")

        abandoned = asyncio.ensure_future(trees._locked((tree.path,), slow))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        abandoned.cancel()
        both = (tree.repository, tree.path)
        following = asyncio.ensure_future(trees._locked(both, lambda: steps.append("next")))
        await asyncio.wait({abandoned})
        may_end.set()
        await following
        threads.close()

    asyncio.run(play())
    assert steps == ["look", "next"]
    assert branches(repository) == ["main", tree.branch]
