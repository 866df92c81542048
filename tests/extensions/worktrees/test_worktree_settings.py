"""`[worktrees.<name>]`: where a worktree begins, what is linked into it, and what sets it up."""

import subprocess
from pathlib import Path

import pytest
from tests.extensions.worktrees.worktree_harness import Harness
from tests.repository import commit, git

from subagents.errors import UsageError
from subagents.extensions.worktrees.worktree_settings import (
    NOTHING,
    RepositorySettings,
    settings_of,
)


def ran(script: str) -> "subprocess.CompletedProcess[str]":
    argv = ["/bin/sh", "-c", script]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.requirement("worktree:setup:nearest")
def test_of_several_tables_the_one_that_names_the_nearest_directory_counts(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "shop")
    tables = {
        "all": RepositorySettings(repository=str(tmp_path), setup="1"),
        "shop": RepositorySettings(repository=str(tmp_path / "link"), setup="2"),
        "other": RepositorySettings(repository=str(tmp_path / "shop" / "below"), setup="3"),
        "home": RepositorySettings(repository="~/nowhere", setup="4"),
    }
    assert settings_of(tables, str(tmp_path / "shop"))[0] == "shop"
    assert settings_of(tables, str(tmp_path / "shopping"))[0] == "all"
    assert settings_of(tables, "/elsewhere") == ("", NOTHING)


@pytest.mark.requirement("worktree:setup:once")
def test_a_setup_runs_at_the_root_until_it_has_succeeded_once(tmp_path: Path) -> None:
    root, done = tmp_path / "it's a tree", tmp_path / "tree.set-up"
    root.mkdir()
    table = RepositorySettings(repository="/", setup="echo ran >>ran; [ -e allowed ]")
    script = table.script(root, done, "shop")

    failed = ran(script)
    assert failed.returncode == 1
    told = "subagents: the worktree's setup failed with exit code 1 (worktrees.shop.setup)\n"
    assert failed.stderr == told
    (root / "allowed").touch()
    assert [ran(script).returncode for _ in range(2)] == [0, 0]
    assert (root / "ran").read_text() == "ran\n" * 2
    assert done.exists()


@pytest.mark.requirement("worktree:setup:bounded")
def test_a_setup_that_takes_too_long_is_ended_and_says_so(tmp_path: Path) -> None:
    table = RepositorySettings(repository="/", setup="sleep 600", setup_seconds=0.05)
    ended = ran(table.script(tmp_path, tmp_path / "done", "shop"))
    assert ended.returncode == 124
    assert "setup took longer than 0.05 s (worktrees.shop.setup)" in ended.stderr


@pytest.mark.requirement("worktree:setup:base")
def test_a_worktree_begins_where_its_repository_says(harness: Harness, repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "branch", "stable")
    (repository / "sub" / "a.txt").write_text("later\n")
    commit(repository, "later")
    harness.tables["x"] = RepositorySettings(repository=str(repository), base="stable")

    tree, root = harness.made(repository)

    assert git(root, "rev-parse", "HEAD") == first
    assert harness.changes(tree).is_clean
    harness.tables["x"] = RepositorySettings(repository=str(repository), base="gone")
    with pytest.raises(UsageError, match="has no commit gone") as caught:
        harness.plan(repository)
    assert "worktrees.x.base" in (caught.value.hint or "")


@pytest.mark.requirement("worktree:setup:linked")
def test_linked_directories_are_full_of_links_which_are_nobodys_work(
    harness: Harness, repository: Path
) -> None:
    (repository / "out" / "lib").mkdir(parents=True)
    (repository / "out" / "lib" / "a.js").write_text("a\n")
    (repository / "out" / "b.js").write_text("b\n")
    harness.tables["x"] = RepositorySettings(repository=str(repository), link=("out", "gone/out"))

    tree, root = harness.made(repository)

    assert sorted(each.name for each in (root / "out").iterdir()) == ["b.js", "lib"]
    assert (root / "out" / "lib" / "a.js").read_text() == "a\n"
    assert not (root / "out").is_symlink()
    assert not (root / "gone").exists()
    assert git(root, "status", "--porcelain") == ""
    assert harness.changes(tree).is_clean
    assert harness.remove(tree)
    assert (repository / "out" / "lib" / "a.js").exists()


@pytest.mark.requirement("worktree:setup:linked")
def test_what_git_does_not_ignore_is_not_linked(harness: Harness, repository: Path) -> None:
    harness.tables["x"] = RepositorySettings(repository=str(repository), link=("sub",))
    with pytest.raises(UsageError, match="git does not ignore") as caught:
        harness.plan(repository)
    assert "worktrees.x.link" in (caught.value.hint or "")


@pytest.mark.requirement("worktree:setup:submodules")
def test_a_repository_with_submodules_needs_a_setup_that_fetches_them(
    harness: Harness, repository: Path
) -> None:
    (repository / ".gitmodules").write_text('[submodule "x"]\n\tpath = x\n\turl = ./x\n')
    commit(repository, "a submodule")
    with pytest.raises(UsageError, match="submodules"):
        harness.plan(repository)
    fetch = "git submodule update --init"
    harness.tables["x"] = RepositorySettings(repository=str(repository), setup=fetch)
    tree = harness.plan(repository).tree
    assert fetch in tree.setup
    assert tree.path in tree.setup


@pytest.mark.requirement("worktree:setup:sparse")
def test_a_worktree_of_a_sparse_checkout_is_sparse(harness: Harness, repository: Path) -> None:
    git(repository, "sparse-checkout", "set", "sub")
    tree, root = harness.made(repository)
    assert (root / "sub" / "a.txt").exists()
    assert not (root / "tests").exists()
    assert harness.changes(tree).is_clean
