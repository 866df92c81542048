"""Where runs work apart is an extension's."""

from pathlib import Path

import pytest
from tests.runtimes.attempt_harness import off_loop

from subagents import extension
from subagents.extensions.worktrees.git_worktrees import GitWorktrees


@pytest.mark.requirement("extensions:worktrees")
def test_the_worktrees_of_a_daemon_are_those_of_the_extension(tmp_path: Path) -> None:
    made = list(extension.made("worktrees", tmp_path, off_loop, {}))
    assert [(name, type(each)) for name, each in made] == [("worktrees", GitWorktrees)]
