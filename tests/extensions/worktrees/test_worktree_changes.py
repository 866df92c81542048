"""What was changed in a worktree."""

import os
from pathlib import Path
from typing import cast

import pytest
from tests.extensions.worktrees.worktree_harness import Harness
from tests.repository import commit

from subagents.domain.run.workspace import (
    ChangeKind,
    Worktree,
    summary,
)
from subagents.extensions.worktrees.git import Git, GitFailed
from subagents.extensions.worktrees.worktree_changes import changes_of


@pytest.mark.requirement("worktree:changes:deleted", "field:out-of-scope-edits")
def test_changes_name_deleted_files_first_whether_committed_or_not(
    harness: Harness, repository: Path
) -> None:
    tree = harness.plan(repository).tree
    harness.prepare(tree)
    root = Path(tree.path)
    (root / "sub" / "a.txt").write_text("one\nthree\nfour\n")
    (root / "tests" / "test_a.py").unlink()
    commit(root, "work")
    (root / "new file.txt").write_text("x\ny")
    (root / "picture.bin").write_bytes(b"\0\1")
    os.mkfifo(root / "pipe")
    found = harness.changes(tree)

    assert [(each.path, each.kind) for each in found.changed] == [
        ("tests/test_a.py", ChangeKind.DELETED),
        ("sub/a.txt", ChangeKind.MODIFIED),
        ("new file.txt", ChangeKind.ADDED),
        ("picture.bin", ChangeKind.ADDED),
    ]
    assert (found.files, found.insertions, found.deletions) == (4, 4, 2)
    assert (found.deleted, found.commits, found.is_clean) == (1, 2, False)
    assert summary(found) == "4 files changed, +4 -2, 2 commits; deleted: tests/test_a.py"


@pytest.mark.requirement("worktree:changes:names")
def test_a_file_with_any_name_is_counted_and_can_be_sent_as_text(
    harness: Harness, repository: Path
) -> None:
    tree = harness.plan(repository).tree
    harness.prepare(tree)
    (Path(tree.path) / "two\nlines").write_text("x\n")
    (Path(tree.path) / os.fsdecode(b"bad\xff")).write_text("x\n")
    found = harness.changes(tree)
    assert [each.path for each in found.changed] == ["bad�", "two\nlines"]
    assert "\n" not in summary(found)


@pytest.mark.requirement("worktree:changes:ignored")
def test_files_that_git_ignores_keep_a_worktree_but_caches_of_tools_do_not(
    harness: Harness, repository: Path
) -> None:
    tree = harness.plan(repository).tree
    harness.prepare(tree)
    cache = Path(tree.path) / "sub" / "__pycache__"
    cache.mkdir()
    (cache / "a.pyc").write_bytes(b"x")
    assert harness.changes(tree).is_clean
    (Path(tree.path) / "out").mkdir()
    (Path(tree.path) / "out" / "report.json").write_text("{}")
    assert harness.changes(tree).ignored == 1
    assert not harness.remove(tree)


@pytest.mark.requirement("worktree:changes:unreadable")
@pytest.mark.parametrize("said", ["1\0", "a\tb\tc\0", "x" * 50])
def test_an_answer_of_git_that_cannot_be_read_is_said_and_breaks_nothing(said: str) -> None:
    def git(*_arguments: str, timeout_s: float) -> str:
        del timeout_s
        return said

    tree = Worktree(repository="/r", path="/nowhere", branch="b", origin="/r")
    with pytest.raises(GitFailed, match="cannot be read"):
        changes_of(cast(Git, git), "base", tree)
