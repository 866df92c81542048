"""What ``doctor`` says of worktrees."""

from collections.abc import Iterator
from typing import Final

from subagents.cli.doctor_check import OK, WARN, Check
from subagents.client.client import Document
from subagents.config.paths import Paths
from subagents.text import counted

MANY: Final = 50


def checks(home: Paths, _found: Document | None) -> Iterator[Check]:
    """How many there are; of many, how to be rid of those that are merged."""
    count = sum(1 for _ in home.worktrees_dir.glob("*.json"))
    text = f"{counted(count, 'worktree')} of runs in {home.worktrees_dir}"
    if count > MANY:
        yield Check("worktrees", WARN, text, "subagents worktree prune")
    elif count:
        yield Check("worktrees", OK, text)
