"""Worktrees of real git repositories: made, looked at, set aside, removed, after any crash."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.extensions.worktrees.worktree_harness import ME, Harness
from tests.repository import a_repository, branches, commit, git

from subagents.domain.run.values import RunId
from subagents.domain.run.workspace import (
    Changes,
    Worktree,
)
from subagents.engine.kernel.threads import DaemonThreads
from subagents.errors import RuntimeUnavailable, SubagentsError, UsageError
from subagents.extensions.worktrees.git_worktrees import GitWorktrees
from subagents.ports import Diff


@pytest.mark.requirement("worktree:made:same-subdirectory", "worktree:plan:changes-nothing")
def test_a_worktree_is_planned_without_a_change_and_made_on_a_branch_of_its_own(
    harness: Harness, repository: Path
) -> None:
    planned = harness.plan(repository / "sub")
    assert planned.tree.branch == "subagents/fix-it-abcdefghjk"
    assert Path(planned.cwd) == Path(planned.tree.path) / "sub"
    assert (harness.home.exists(), branches(repository)) == (False, ["main"])

    harness.prepare(planned.tree)
    assert (Path(planned.cwd) / "a.txt").read_text() == "one\ntwo\n"
    assert git(Path(planned.cwd), "branch", "--show-current") == planned.tree.branch
    assert git(repository, "status", "--porcelain") == ""
    assert harness.changes(planned.tree) == Changes(base=git(repository, "rev-parse", "HEAD"))


@pytest.mark.requirement("worktree:made:any-branches")
@pytest.mark.parametrize(
    ("before", "branch"),
    [
        ("branch subagents", "subagents-fix-it-abcdefghjk"),
        ("branch subagents; pack-refs --all", "subagents-fix-it-abcdefghjk"),
        ("checkout -q -b subagents", "subagents-fix-it-abcdefghjk"),
        ("symbolic-ref refs/heads/subagents refs/heads/main", "subagents-fix-it-abcdefghjk"),
        ("worktree add -q -b subagents ../beside", "subagents-fix-it-abcdefghjk"),
        ("branch subagents/other", "subagents/fix-it-abcdefghjk"),
        ("branch subagents-other", "subagents/fix-it-abcdefghjk"),
        ("branch Subagents", "subagents/fix-it-abcdefghjk"),
        ("tag subagents", "subagents/fix-it-abcdefghjk"),
        ("update-ref refs/remotes/origin/subagents HEAD", "subagents/fix-it-abcdefghjk"),
        ("branch subagents/x; branch -D subagents/x", "subagents/fix-it-abcdefghjk"),
    ],
)
def test_a_worktree_gets_a_branch_beside_any_that_the_repository_has(
    harness: Harness, repository: Path, before: str, branch: str
) -> None:
    for each in before.split("; "):
        git(repository, *each.split())
    had = branches(repository)

    tree = harness.plan(repository).tree
    assert tree.branch == branch
    harness.prepare(tree)
    (Path(tree.path) / "new.txt").write_text("work\n")
    harness.prepare(tree, attempt=2, afresh=True)
    assert harness.changes(tree).kept_branches == (f"{branch}-attempt-1",)
    assert sorted(branches(repository)) == sorted([*had, branch, f"{branch}-attempt-1"])


@pytest.mark.requirement("worktree:made:twice")
def test_making_a_worktree_again_changes_nothing_in_it(harness: Harness, repository: Path) -> None:
    tree = harness.plan(repository).tree
    harness.prepare(tree)
    (Path(tree.path) / "new.txt").write_text("work\n")
    harness.prepare(tree)
    assert (Path(tree.path) / "new.txt").read_text() == "work\n"


@pytest.mark.requirement("worktree:made:other-home")
def test_a_worktree_that_another_node_planned_is_made_where_that_said_and_retried(
    harness: Harness, repository: Path, tmp_path: Path
) -> None:
    tree = harness.plan(repository).tree
    other = Harness(tmp_path / "other")
    other.prepare(tree)
    (Path(tree.path) / "sub" / "a.txt").write_text("half\n")
    other.prepare(tree, attempt=2, afresh=True)
    found = other.changes(tree)
    assert (found.files, len(found.kept_branches)) == (0, 1)
    diff = other.do(lambda trees: trees.diff(tree, None, bytes_max=1000))
    assert diff.text == ""
    assert other.remove(tree)
    assert not Path(tree.path).exists()


@pytest.mark.requirement("worktree:made:half")
def test_a_worktree_that_a_crash_left_half_made_is_made_anew_from_the_same_commit(
    harness: Harness, repository: Path
) -> None:
    tree = harness.plan(repository).tree
    base = git(repository, "rev-parse", "HEAD")
    harness.prepare(tree)
    record = Path(f"{tree.path}.json")
    record.write_text(record.read_text().replace('"isMade": true', '"isMade": false'))
    (Path(tree.path) / "sub" / "a.txt").unlink()
    (Path(tree.path) / ".git").unlink()
    (repository / "later.txt").write_text("later\n")
    commit(repository, "later")

    harness.prepare(tree)
    assert git(Path(tree.path), "rev-parse", "HEAD") == base
    assert harness.changes(tree).is_clean


@pytest.mark.requirement("worktree:made:removed-by-hand")
def test_a_worktree_that_somebody_removed_comes_back_with_its_commits(
    harness: Harness, repository: Path
) -> None:
    tree = harness.plan(repository).tree
    harness.prepare(tree)
    (Path(tree.path) / "new.txt").write_text("work\n")
    commit(Path(tree.path), "work")
    git(repository, "worktree", "remove", tree.path)
    assert harness.changes(tree).error == "the worktree is gone"
    harness.prepare(tree)
    assert (Path(tree.path) / "new.txt").exists()


@pytest.mark.requirement("worktree:made:removed-by-hand")
@pytest.mark.parametrize("afresh", [False, True])
def test_the_files_of_a_worker_that_removed_its_git_stay(
    harness: Harness, repository: Path, *, afresh: bool
) -> None:
    tree, root = harness.made(repository)
    (root / "new.txt").write_text("work\n")
    (root / ".git").unlink()
    with suppress(RuntimeUnavailable):
        harness.prepare(tree, attempt=2, afresh=afresh)
    assert (root / "new.txt").read_text() == "work\n"


@pytest.mark.requirement("worktree:made:twice")
def test_worktrees_that_cannot_be_read_or_have_other_bytes_are_in_no_ones_way(
    harness: Harness, repository: Path
) -> None:
    tree, root = harness.made(repository)
    others = repository / ".git" / "worktrees"
    for number in range(20):  # in whatever order they are read
        (others / f"unreadable{number}" / "gitdir").mkdir(parents=True)
        (others / f"odd{number}").mkdir()
        (others / f"odd{number}" / "gitdir").write_bytes(b"/caf\xe9/.git\n")
    (root / "new.txt").write_text("work\n")
    assert harness.changes(tree).files == 1


@pytest.mark.requirement("worktree:removed:clean")
def test_a_clean_worktree_is_removed_with_its_branch_and_once_is_enough(
    harness: Harness, repository: Path
) -> None:
    tree = harness.plan(repository).tree
    assert harness.remove(tree), "one that was never made"
    harness.prepare(tree)
    assert harness.remove(tree)
    assert harness.remove(tree)
    assert (branches(repository), list(harness.home.iterdir())) == (["main"], [])
    assert git(repository, "worktree", "list").count("\n") == 0


@pytest.mark.requirement("worktree:kept:commits", "worktree:kept:changes")
@pytest.mark.parametrize("is_committed", [True, False])
def test_a_worktree_with_work_in_it_is_kept(
    harness: Harness, repository: Path, *, is_committed: bool
) -> None:
    tree = harness.plan(repository).tree
    harness.prepare(tree)
    (Path(tree.path) / "new.txt").write_text("work\n")
    if is_committed:
        commit(Path(tree.path), "work")
    assert not harness.remove(tree)
    assert (Path(tree.path) / "new.txt").exists()
    kept = harness.do(lambda trees: trees.kept())
    assert [(each.run_id, each.tree) for each in kept] == [(ME, tree)]


@pytest.mark.requirement("worktree:retry:same-base", "worktree:retry:work-kept")
def test_a_retry_begins_from_the_same_commit_and_the_work_before_is_on_a_branch(
    harness: Harness, repository: Path
) -> None:
    tree = harness.plan(repository).tree
    base = git(repository, "rev-parse", "HEAD")
    harness.prepare(tree)
    root = Path(tree.path)
    git(root, "checkout", "--quiet", "-b", "elsewhere")
    (root / "committed.txt").write_text("c\n")
    commit(root, "work")
    (root / "tests" / "test_a.py").unlink()
    (root / "loose.txt").write_text("l\n")
    (root / "sub" / "a.txt").write_text("half")
    (Path(git(root, "rev-parse", "--absolute-git-dir")) / "index.lock").touch()
    for _ in range(2):
        harness.prepare(tree, attempt=2, afresh=True)

    assert (git(root, "rev-parse", "HEAD"), git(root, "status", "--porcelain")) == (base, "")
    assert git(root, "branch", "--show-current") == tree.branch
    found = harness.changes(tree)
    assert (found.files, found.kept_branches) == (0, (f"{tree.branch}-attempt-1",))
    names = git(root, "ls-tree", "-r", "--name-only", f"{tree.branch}-attempt-1").split()
    assert names == [".gitignore", "committed.txt", "loose.txt", "sub/a.txt"]
    assert git(root, "show", f"{tree.branch}-attempt-1:sub/a.txt") == "half"


@pytest.mark.requirement("worktree:retry:crash")
def test_a_crash_while_work_is_set_aside_does_not_replace_what_was_kept(
    harness: Harness, repository: Path
) -> None:
    tree = harness.plan(repository).tree
    harness.prepare(tree)
    root, record = Path(tree.path), Path(f"{tree.path}.json")
    (root / "loose.txt").write_text("all of it\n")
    before = record.read_text()
    harness.prepare(tree, attempt=2, afresh=True)
    # As if it had died in the middle of the reset: not noted, and some of the work is gone.
    record.write_text(before)
    (root / "half.txt").write_text("half of it\n")
    harness.prepare(tree, attempt=2, afresh=True)

    kept = git(root, "ls-tree", "-r", "--name-only", f"{tree.branch}-attempt-1").split()
    assert ("loose.txt" in kept, "half.txt" in kept) == (True, False)
    assert not (root / "half.txt").exists()


@pytest.mark.requirement("worktree:retry:same-base", "worktree:retry:work-kept")
def test_a_retry_of_a_run_that_goes_on_in_anothers_worktree_begins_with_that_ones_work(
    harness: Harness, repository: Path
) -> None:
    tree, root = harness.made(repository)
    (root / "failed.txt").write_text("first\n")
    harness.prepare(tree, attempt=2, afresh=True)
    (root / "login.txt").write_text("fixed\n")
    harness.changes(tree)
    for attempt in (1, 2):
        harness.prepare(tree, run_id=RunId("r-zzzzzzzzzz"), attempt=attempt, afresh=attempt == 2)
        assert git(root, "ls-files").split()[1] == "login.txt"
        (root / "half.txt").write_text("half\n")

    kept = harness.changes(tree).kept_branches
    assert [git(root, "ls-tree", "--name-only", each).split()[1] for each in kept] == [
        *("failed.txt", "half.txt")
    ]


@pytest.mark.requirement("worktree:retry:goes-on")
def test_an_attempt_that_goes_on_finds_the_work_as_it_was(
    harness: Harness, repository: Path
) -> None:
    tree = harness.plan(repository).tree
    harness.prepare(tree)
    (Path(tree.path) / "loose.txt").write_text("l\n")
    harness.prepare(tree, attempt=2, afresh=False)
    assert (Path(tree.path) / "loose.txt").exists()
    assert branches(repository) == ["main", tree.branch]


@pytest.mark.requirement("worktree:several-at-once")
def test_several_worktrees_of_one_repository_are_made_at_once(
    harness: Harness, repository: Path
) -> None:
    async def many(trees: GitWorktrees) -> list[Worktree]:
        ids = [RunId(f"r-{number:08}xx") for number in range(6)]
        plans = [await trees.plan(str(repository), run_id=each, label="x") for each in ids]
        made = [
            trees.prepare(run_id, plan.tree, attempt=1, afresh=False)
            for run_id, plan in zip(ids, plans, strict=True)
        ]
        await asyncio.gather(*made)
        return [plan.tree for plan in plans]

    found = harness.do(many)
    assert len({tree.path for tree in found}) == 6
    assert all((Path(tree.path) / "sub" / "a.txt").exists() for tree in found)


@pytest.mark.requirement("worktree:diff")
def test_the_diff_has_what_was_committed_changed_and_made_and_leaves_the_worktree_as_it_was(
    harness: Harness, repository: Path
) -> None:
    tree = harness.plan(repository).tree
    harness.prepare(tree)
    root = Path(tree.path)
    (root / "sub" / "a.txt").write_text("changed\n")
    (root / "new [1].txt").write_text("new\n")
    before = git(root, "status", "--porcelain")
    Path(f"{tree.path}.diff-index.lock").touch()  # of a git that took too long, and was killed

    async def diff(trees: GitWorktrees) -> tuple[Diff, Diff, Diff]:
        return (
            await trees.diff(tree, None, bytes_max=10_000),
            await trees.diff(tree, "new [1].txt", bytes_max=10_000),
            await trees.diff(tree, None, bytes_max=10),
        )

    whole, one, cut = harness.do(diff)

    assert "+changed" in whole.text
    assert "+new" in whole.text
    assert not whole.is_cut
    assert ("+new" in one.text, "+changed" in one.text) == (True, False)
    assert (cut.text, cut.is_cut, cut.bytes_total) == (whole.text[:10], True, whole.bytes_total)
    assert git(root, "status", "--porcelain") == before


def _bare(root: Path) -> Path:
    root.mkdir()
    git(root, "init", "--quiet", "--bare")
    return root


def _empty(root: Path) -> Path:
    root.mkdir()
    git(root, "init", "--quiet")
    return root


def _with_submodules(root: Path) -> Path:
    a_repository(root)
    (root / ".gitmodules").write_text('[submodule "x"]\n\tpath = x\n\turl = ../x\n')
    commit(root, "submodule")
    return root


def _untracked(root: Path) -> Path:
    a_repository(root)
    (root / "out").mkdir()
    return root / "out"


def _inside(root: Path) -> Path:
    return a_repository(root) / ".git"


def _plain(root: Path) -> Path:
    root.mkdir()
    return root


@pytest.mark.requirement("worktree:refused")
@pytest.mark.parametrize(
    ("make", "what"),
    [
        (_plain, "is in no git repository"),
        (_bare, "is a bare repository"),
        (_inside, "lies inside the .git directory"),
        (_empty, "has no commit yet"),
        (_with_submodules, "has submodules"),
        (_untracked, "out/ is not in the last commit"),
    ],
)
def test_a_directory_of_which_no_worktree_can_be_made_is_refused_with_the_way_out(
    harness: Harness, tmp_path: Path, make: Callable[[Path], Path], what: str
) -> None:
    directory = make(tmp_path / "there")
    with pytest.raises(UsageError, match=what) as refused:
        harness.plan(directory)
    assert refused.value.details == {"field": "isolation"}
    assert "leave isolation out" in (refused.value.hint or "")


@pytest.mark.requirement("worktree:uncommitted:said")
def test_uncommitted_changes_that_the_worktree_will_not_hold_are_said(
    harness: Harness, repository: Path
) -> None:
    assert harness.plan(repository).warnings == ()
    (repository / "dirty.txt").write_text("x")
    (repository / "sub" / "a.txt").write_text("x")
    (warning,) = harness.plan(repository).warnings
    assert warning.startswith("2 uncommitted changes are not in the worktree")


@pytest.mark.requirement("worktree:of-a-worktree")
def test_a_worktree_can_be_made_of_a_worktree(harness: Harness, repository: Path) -> None:
    outer = harness.plan(repository / "sub")
    harness.prepare(outer.tree)
    (Path(outer.cwd) / "b.txt").write_text("outer\n")
    commit(Path(outer.tree.path), "outer work")
    inner = harness.plan(Path(outer.cwd), run_id=RunId("r-inner0000"), label="inner")
    harness.prepare(inner.tree)
    assert (Path(inner.cwd) / "b.txt").read_text() == "outer\n"


@pytest.mark.requirement("worktree:in-the-way")
def test_nothing_that_lies_in_the_way_is_overwritten(harness: Harness, repository: Path) -> None:
    tree = harness.plan(repository).tree
    Path(tree.path).mkdir(parents=True)
    (Path(tree.path) / "precious").touch()
    with pytest.raises(UsageError, match="in the way"):
        harness.prepare(tree)
    assert (Path(tree.path) / "precious").exists()


@pytest.mark.requirement("worktree:repository-gone")
def test_a_repository_that_is_gone_is_an_error_and_its_worktree_stays(
    harness: Harness, repository: Path
) -> None:
    tree = harness.plan(repository).tree
    repository.rename(repository.with_name("moved"))
    with pytest.raises(SubagentsError) as failed:
        harness.prepare(tree)
    assert not isinstance(failed.value, RuntimeUnavailable)
    assert "is gone" in failed.value.message


@pytest.mark.requirement("git:missing")
def test_a_machine_without_git_refuses_the_worktree_and_says_so(tmp_path: Path) -> None:
    async def play() -> None:
        threads = DaemonThreads("git")
        trees = GitWorktrees(tmp_path / "trees", threads, {"PATH": str(tmp_path)})
        try:
            await trees.plan(str(tmp_path), run_id=ME, label="x")
        finally:
            threads.close()

    with pytest.raises(UsageError, match="there is no git") as refused:
        asyncio.run(play())
    assert (refused.value.hint or "").startswith("install git")
