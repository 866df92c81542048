"""A worktree's name is safe in paths and branches."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.domain.run.values import RunId
from subagents.extensions.worktrees.worktree_names import branch_of, worktree_name

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
