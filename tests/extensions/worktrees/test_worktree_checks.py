"""``doctor`` counts the worktrees of runs."""

from pathlib import Path

import pytest

from subagents.cli.doctor_check import OK, WARN
from subagents.config.paths import Paths
from subagents.extensions.worktrees.worktree_checks import MANY, checks


@pytest.mark.requirement("doctor:worktrees")
@pytest.mark.parametrize(
    ("count", "found"),
    [
        (0, []),
        (1, [(OK, "1 worktree of runs", None)]),
        (MANY + 1, [(WARN, f"{MANY + 1} worktrees of runs", "subagents worktree prune")]),
    ],
)
def test_they_are_counted_and_of_many_it_is_said_how_to_be_rid_of_them(
    tmp_path: Path, count: int, found: list[tuple[str, str, str | None]]
) -> None:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    paths.worktrees_dir.mkdir(parents=True)
    for number in range(count):
        (paths.worktrees_dir / f"{number}.json").touch()
    told = [
        (each.status, each.detail.partition(" in ")[0], each.fix) for each in checks(paths, None)
    ]
    assert told == found
