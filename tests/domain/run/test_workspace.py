"""A worktree's name is safe in paths and branches, and what was changed in it reads in one line."""

import pytest

from subagents.domain.run.workspace import (
    NAMED_MAX,
    ChangeKind,
    Changes,
    FileChange,
    Worktree,
    out_of_scope,
    prefix_of,
    summary,
)


@pytest.mark.requirement("worktree:changes-shown")
def test_changes_are_told_with_what_was_deleted_by_name() -> None:
    gone = FileChange(path="tests/a\nb.py", kind=ChangeKind.DELETED)
    found = Changes(files=2, insertions=4, deletions=9, deleted=1, commits=1, changed=(gone,))

    assert summary(found) == "2 files changed, +4 -9, 1 commit; deleted: tests/a b.py"
    assert summary(Changes()) == "no changes"
    assert summary(Changes(error="no git")) == "changes unknown: no git"


@pytest.mark.requirement("worktree:out-of-scope")
def test_files_that_the_contract_does_not_name_are_out_of_scope() -> None:
    changed = tuple(FileChange(path=p, kind=ChangeKind.ADDED) for p in ("sub/out.txt", "other"))
    found = Changes(files=2, changed=changed)

    assert out_of_scope(found, ["./out.txt"], "sub/") == ("other",)
    assert out_of_scope(found, [], "sub/") == ()


@pytest.mark.requirement("worktree:changes-shown")
def test_of_many_deleted_files_some_are_named_and_all_are_counted() -> None:
    gone = tuple(FileChange(path=f"f{n}", kind=ChangeKind.DELETED) for n in range(9))

    text = summary(Changes(files=90, deleted=90, changed=gone))

    assert f"f{NAMED_MAX - 1}" in text
    assert f"f{NAMED_MAX}" not in text
    assert str(90 - NAMED_MAX) in text


@pytest.mark.requirement("worktree:changes-shown")
def test_a_worktree_that_could_not_be_looked_at_is_not_called_clean() -> None:
    assert Changes().is_clean
    assert not Changes(error="git is gone").is_clean
    assert not any(each.is_clean for each in (Changes(files=1), Changes(commits=1)))
    assert not Changes(ignored=1).is_clean


@pytest.mark.requirement("worktree:out-of-scope")
@pytest.mark.parametrize(("cwd", "prefix"), [("/t/job", ""), ("/t/job/a/b", "a/b/")])
def test_the_prefix_is_the_part_of_the_directory_below_the_worktree(cwd: str, prefix: str) -> None:
    tree = Worktree(repository="/repo", path="/t/job", branch="b", origin="/repo")

    assert prefix_of(tree, cwd) == prefix
