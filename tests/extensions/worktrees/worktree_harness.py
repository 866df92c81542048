"""A repository, and worktrees of it."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from tests.repository import a_repository

from subagents.domain.run.values import RunId
from subagents.domain.run.workspace import (
    Changes,
    Worktree,
)
from subagents.engine.kernel.threads import DaemonThreads
from subagents.extensions.worktrees.git_worktrees import GitWorktrees
from subagents.ports import Planned

T = TypeVar("T")


ME = RunId("r-abcdefghjk")


class Harness:
    """Worktrees below a temporary directory; every call is a loop of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "worktrees"

    def do(self, work: Callable[[GitWorktrees], Awaitable[T]]) -> T:
        async def play() -> T:
            threads = DaemonThreads("git")
            try:
                return await work(GitWorktrees(self.home, threads, os.environ))
            finally:
                threads.close()

        return asyncio.run(play())

    def plan(self, cwd: Path, *, run_id: RunId = ME, label: str = "fix it") -> Planned:
        return self.do(lambda trees: trees.plan(str(cwd), run_id=run_id, label=label))

    def prepare(self, tree: Worktree, *, attempt: int = 1, afresh: bool = False) -> None:
        self.do(lambda trees: trees.prepare(ME, tree, attempt=attempt, afresh=afresh))

    def changes(self, tree: Worktree) -> Changes:
        found = self.do(lambda trees: trees.changes(ME, tree))
        assert found is not None
        return found

    def remove(self, tree: Worktree) -> bool:
        return self.do(lambda trees: trees.remove_clean(ME, tree))


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return a_repository(tmp_path / "repository")
