"""What is merged goes; whatever else is in a worktree, or only there, stays."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.extensions.worktrees.worktree_harness import Harness
from tests.repository import AS_SOMEBODY, a_repository, branches, commit, git

from subagents.domain.run.values import RunId


@pytest.mark.requirement("worktree:prune:merged")
def test_a_worktree_goes_with_its_branch_when_another_branch_has_its_work(
    harness: Harness, repository: Path
) -> None:
    tree, root = harness.made(repository)
    (root / "new.txt").write_text("new\n")
    harness.changes(tree)
    assert harness.prune(tree) == f"{tree.branch} is merged into no branch"
    harness.merge(tree)
    look = harness.look(tree)
    assert look.standing is not None
    assert (look.standing.merged_into, look.kept_because) == ("main", None)
    assert harness.prune(tree) is None
    assert (root.exists(), branches(repository)) == (False, ["main"])
    assert harness.do(lambda trees: trees.records()) == ()


def locked(root: Path, _: Path) -> None:
    git(root, "worktree", "lock", str(root))


def uncommitted(root: Path, _: Path) -> None:
    (root / "later.txt").write_text("later\n")


def ignored(root: Path, _: Path) -> None:
    (root / "out").mkdir()
    (root / "out" / "built").write_text("built\n")


def hidden(root: Path, _: Path) -> None:
    git(root, "update-index", "--skip-worktree", "sub/a.txt")
    (root / "sub" / "a.txt").write_text("hidden\n")


def reverted(root: Path, _: Path) -> None:
    (root / "sub" / "a.txt").write_text("x\n")
    commit(root, "x")
    git(root, "revert", "--no-commit", "HEAD")
    git(root, "reset", "--quiet", "--hard")
    (Path(git(root, "rev-parse", "--absolute-git-dir")) / "REVERT_HEAD").write_text("x")


def repository_in_it(root: Path, _: Path) -> None:
    a_repository(root / "below")
    git(root, "add", "below")
    git(root, "commit", "--quiet", "-m", "below")


def commits_elsewhere(root: Path, _: Path) -> None:
    git(root, "checkout", "--quiet", "--detach")
    (root / "b.txt").write_text("b\n")
    commit(root, "on no branch")


def checked_out(root: Path, repository: Path) -> None:
    branch = git(root, "symbolic-ref", "--short", "HEAD")
    git(root, "checkout", "--quiet", "--detach")
    git(repository, "checkout", "--quiet", branch)


def a_base(root: Path, repository: Path) -> None:
    del repository
    harness = Harness(root.parents[1])
    harness.made(root, run_id=RunId("r-zzzzzzzzzz"))


def pushed(root: Path, repository: Path) -> None:
    (root / "b.txt").write_text("b\n")
    last = commit(root, "only pushed for review")
    name = git(root, "symbolic-ref", "--short", "HEAD")
    git(repository, "update-ref", f"refs/remotes/origin/{name}", last)


@pytest.mark.requirement("worktree:prune:kept")
@pytest.mark.parametrize(
    ("state", "why"),
    [
        (locked, "it is locked"),
        (uncommitted, "1 file in no commit: later.txt"),
        (ignored, "1 file that git ignores: out/"),
        (hidden, "not to look at sub/a.txt"),
        (reverted, "a revert is not finished"),
        (repository_in_it, "a repository in it: below"),
        (commits_elsewhere, "merged into no branch"),
        (checked_out, "is checked out in"),
        (a_base, "another run was made of it"),
        (pushed, "merged into no branch"),
    ],
)
def test_a_worktree_stays_and_it_is_said_why(
    harness: Harness, repository: Path, state: Callable[[Path, Path], None], why: str
) -> None:
    tree, root = harness.made(repository)
    state(root, repository)
    refs = git(repository, "for-each-ref")
    assert why in (harness.prune(tree) or "")
    assert root.is_dir()
    assert git(repository, "for-each-ref") == refs


@pytest.mark.requirement("worktree:prune:gone")
def test_the_branch_of_a_worktree_that_somebody_removed_stays_until_it_is_merged(
    harness: Harness, repository: Path
) -> None:
    tree, root = harness.made(repository)
    (root / "new.txt").write_text("new\n")
    harness.changes(tree)
    git(repository, "worktree", "remove", str(root))
    assert harness.prune(tree) == f"{tree.branch} is merged into no branch"
    git(repository, "merge", "--quiet", tree.branch)
    assert harness.prune(tree) is None
    assert branches(repository) == ["main"]


@pytest.mark.requirement("worktree:prune:came-meanwhile")
def test_a_worktree_stays_when_a_run_began_in_it_since_it_was_listed(
    harness: Harness, repository: Path
) -> None:
    tree, root = harness.made(repository)
    listed = harness.record(tree)
    harness.prepare(tree, attempt=2)
    why = harness.do(lambda trees: trees.remove_merged(listed, ()))
    assert why == "a run began in it just now"
    assert root.is_dir()


def tried(directory: Path, *arguments: str) -> None:
    """Git, whether or not it can do that now."""
    argv = ["git", *AS_SOMEBODY, *arguments]
    subprocess.run(argv, cwd=directory, check=False, capture_output=True, timeout=60)


class Place:
    """A worktree and its repository, and what may be done to them."""

    def __init__(self, root: Path) -> None:
        self.harness = Harness(root)
        self.repository = a_repository(root / "repository")
        self.tree, self.root = self.harness.made(self.repository)
        self.count = 0

    def write(self, name: str, where: Path | None = None) -> None:
        self.count += 1
        file = (where or self.root) / name
        if file.parent.parent.is_dir():
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"{self.count}\n" * 3)

    def commit(self, where: Path) -> None:
        tried(where, "add", "--all")
        tried(where, "commit", "--quiet", "-m", "more")

    def theirs(self) -> None:
        self.write("sub/a.txt", self.repository)
        self.commit(self.repository)

    def home(self) -> None:
        self.harness.changes(self.tree)

    def head(self) -> list[str]:
        """The commit that is checked out, if there is one."""
        argv = ["git", "rev-parse", "--quiet", "--verify", "HEAD^{commit}"]
        done = subprocess.run(argv, cwd=self.root, check=False, capture_output=True, timeout=60)
        return done.stdout.decode().split()

    def files(self) -> list[Path]:
        return [
            each
            for each in self.root.rglob("*")
            if each.is_file() and each.relative_to(self.root).parts[0] != ".git"
        ]

    def kept_objects(self) -> set[str]:
        """All that branches and a kept worktree have."""
        refs = [*git(self.repository, "for-each-ref", "--format=%(refname)").splitlines()]
        refs += self.head() if self.root.is_dir() else []
        rows = git(self.repository, "rev-list", "--objects", *refs).splitlines()
        return {row.split()[0] for row in rows}


ACTS: Final[dict[str, Callable[[Place], object]]] = {
    "change": lambda at: at.write("sub/a.txt"),
    "make": lambda at: at.write("sub/new.txt"),
    "ignore": lambda at: at.write("out/built"),
    "delete": lambda at: (at.root / "tests" / "test_a.py").unlink(missing_ok=True),
    "stage": lambda at: tried(at.root, "add", "--all"),
    "commit": lambda at: at.commit(at.root),
    "undo": lambda at: tried(at.root, "reset", "--quiet", "--soft", "HEAD~1"),
    "detach": lambda at: tried(at.root, "checkout", "--quiet", "--detach"),
    "branch": lambda at: tried(at.root, "checkout", "--quiet", "-b", "feature"),
    "hide": lambda at: tried(at.root, "update-index", "--assume-unchanged", "sub/a.txt"),
    "stash": lambda at: tried(at.root, "stash", "--quiet", "--include-untracked"),
    "pull": lambda at: tried(at.root, "merge", "--quiet", "main"),
    "lock": lambda at: tried(at.root, "worktree", "lock", str(at.root)),
    "orphan": lambda at: tried(at.root, "checkout", "--quiet", "--orphan", "fresh"),
    "home": lambda at: at.home(),
    "theirs": lambda at: at.theirs(),
    "merge": lambda at: tried(at.repository, "merge", "--quiet", at.tree.branch),
    "squash": lambda at: tried(at.repository, "merge", "--quiet", "--squash", at.tree.branch),
    "rewind": lambda at: tried(at.repository, "reset", "--quiet", "--hard", "HEAD~1"),
    "drop": lambda at: tried(at.repository, "branch", "-D", at.tree.branch),
}


@pytest.mark.requirement("worktree:prune:nothing-lost")
@settings(max_examples=60, deadline=None)
@given(acts=st.lists(st.sampled_from(sorted(ACTS)), max_size=8))
def test_whatever_was_done_nothing_that_no_branch_has_is_deleted(acts: list[str]) -> None:
    with TemporaryDirectory() as name:
        at = Place(Path(name))
        for each in acts:
            ACTS[each](at)
        heads = ("for-each-ref", "--format=%(objectname)", "refs/heads")
        ends = {*git(at.repository, *heads).split(), *at.head()}
        work = {git(at.root, "hash-object", str(each)) for each in at.files()}

        why = at.harness.prune(at.tree)

        kept = at.kept_objects()
        assert ends <= kept
        if why is None:
            assert work <= kept
        else:
            assert at.root.is_dir()
            assert {git(at.root, "hash-object", str(each)) for each in at.files()} == work
