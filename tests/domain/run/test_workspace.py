"""A worktree's name is safe in paths and branches, and what was changed in it reads in one line."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.domain.run.values import RunId
from subagents.domain.run.workspace import (
    ChangeKind,
    Changes,
    FileChange,
    branch_of,
    out_of_scope,
    summary,
    worktree_name,
)

RUN = RunId("r-0123456789")


@pytest.mark.requirement("worktree:name")
@given(st.text(max_size=200))
def test_any_label_makes_a_name_that_a_path_and_a_branch_can_hold(label: str) -> None:
    name = worktree_name(RUN, label)

    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert len(name) < 80
    assert branch_of(RUN, label) == f"subagents/{name}"


@pytest.mark.requirement("worktree:name")
def test_runs_of_one_label_have_names_of_their_own() -> None:
    assert worktree_name(RUN, "fix it") != worktree_name(RunId("r-9876543210"), "fix it")


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
