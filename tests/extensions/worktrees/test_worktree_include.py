"""Files that git ignores come into a worktree when ``.worktreeinclude`` names them."""

from pathlib import Path

import pytest
from tests.extensions.worktrees.worktree_harness import Harness
from tests.repository import commit, git

from subagents.extensions.worktrees import worktree_include


def with_ignored(repository: Path) -> None:
    (repository / ".gitignore").write_text("out/\n.env*\nconf/local/\n")
    (repository / ".worktreeinclude").write_text("# what a run needs\n.env*\n!.env.prod\nconf/\n")
    commit(repository, "names")
    for name in (".env", ".env.prod", "sub/.env", "conf/local/a.ini", "conf/b", "out/built"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(f"{name}\n")
    (repository / ".env").chmod(0o600)
    (repository / "conf" / "local" / "link").symlink_to("a.ini")


@pytest.mark.requirement("worktree:include:copied")
def test_what_it_names_and_git_ignores_is_copied_and_nothing_else(
    harness: Harness, repository: Path
) -> None:
    with_ignored(repository)
    tree, root = harness.made(repository)
    assert (root / ".env").read_text() == ".env\n"
    assert (root / ".env").stat().st_mode & 0o777 == 0o600
    assert (root / "sub" / ".env").exists()
    assert (root / "conf" / "local" / "a.ini").read_text() == "conf/local/a.ini\n"
    assert (root / "conf" / "local" / "link").is_symlink()
    assert not (root / ".env.prod").exists()
    assert not (root / "conf" / "b").exists(), "git does not ignore it"
    assert not (root / "out").exists()
    assert harness.changes(tree).is_clean
    assert harness.remove(tree)
    assert not root.exists()


@pytest.mark.requirement("worktree:include:copied")
def test_what_goes_between_the_look_and_the_copy_is_left_out(
    harness: Harness, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_ignored(repository)
    those = worktree_include._those_ignored
    monkeypatch.setattr(worktree_include, "_those_ignored", lambda *of: ["gone", *those(*of)])
    _, root = harness.made(repository)
    assert (root / ".env").exists()


@pytest.mark.requirement("worktree:include:changed")
@pytest.mark.parametrize("name", [".env", "conf/local/a.ini", "conf/local/new"])
def test_a_copy_that_the_worker_changed_is_its_work(
    harness: Harness, repository: Path, name: str
) -> None:
    with_ignored(repository)
    tree, root = harness.made(repository)
    (root / name).write_text("by the worker\n")
    assert harness.changes(tree).ignored
    assert "that git ignores" in (harness.prune(tree) or "")
    assert (root / name).read_text() == "by the worker\n"


@pytest.mark.requirement("worktree:include:inside")
def test_no_copy_is_made_through_a_link_of_the_commit(harness: Harness, repository: Path) -> None:
    outside = harness.root / "outside"
    outside.mkdir()
    (repository / ".gitignore").write_text(".env\n")
    (repository / ".worktreeinclude").write_text(".env\n")
    (repository / "conf").symlink_to(outside)
    commit(repository, "a link")
    (repository / "conf").unlink()
    (repository / "conf").mkdir()
    (repository / "conf" / ".env").write_text("x\n")
    _, root = harness.made(repository)
    assert (root / "conf").is_symlink()
    assert list(outside.iterdir()) == []
    assert git(repository, "worktree", "list", "--porcelain").count("worktree ") == 2
