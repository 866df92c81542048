"""A repository, and worktrees of it."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from tests.repository import a_repository

from subagents.config.settings import Settings
from subagents.domain.run.values import RunId
from subagents.domain.run.workspace import (
    Changes,
    Worktree,
)
from subagents.engine.kernel.threads import DaemonThreads
from subagents.extensions.worktrees.git_worktrees import GitWorktrees, Look, Record
from subagents.extensions.worktrees.worktree_merge import Merge
from subagents.extensions.worktrees.worktree_settings import RepositorySettings
from subagents.ports import Planned

T = TypeVar("T")


ME = RunId("r-abcdefghjk")


class Harness:
    """Worktrees below a temporary directory; every call is a loop of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "worktrees"
        self.tables: dict[str, RepositorySettings] = {}

    def made(self, repository: Path, *, run_id: RunId = ME) -> tuple[Worktree, Path]:
        """A worktree and its directory."""
        tree = self.plan(repository, run_id=run_id).tree
        self.prepare(tree)
        return tree, Path(tree.path)

    def do(self, work: Callable[[GitWorktrees], Awaitable[T]]) -> T:
        async def play() -> T:
            threads = DaemonThreads("git")
            try:
                now = Settings(tables={"worktrees": self.tables})
                return await work(GitWorktrees(self.home, threads, os.environ, lambda: now))
            finally:
                threads.close()

        return asyncio.run(play())

    def plan(self, cwd: Path, *, run_id: RunId = ME, label: str = "fix it") -> Planned:
        return self.do(lambda trees: trees.plan(str(cwd), run_id=run_id, label=label))

    def prepare(
        self, tree: Worktree, *, run_id: RunId = ME, attempt: int = 1, afresh: bool = False
    ) -> None:
        self.do(lambda trees: trees.prepare(run_id, tree, attempt=attempt, afresh=afresh))

    def changes(self, tree: Worktree) -> Changes:
        found = self.do(lambda trees: trees.changes(ME, tree))
        assert found is not None
        return found

    def record(self, tree: Worktree) -> Record:
        found = self.do(lambda trees: trees.record(tree))
        assert found is not None
        return found

    def bases(self) -> set[str]:
        return {each.tree.repository for each in self.do(lambda trees: trees.records())}

    def look(self, tree: Worktree) -> Look:
        record, bases = self.record(tree), self.bases()
        return self.do(lambda trees: trees.look(record, bases))

    def merge(self, tree: Worktree) -> Merge:
        record = self.record(tree)
        return self.do(lambda trees: trees.merge(record))[0]

    def prune(self, tree: Worktree) -> str | None:
        record, bases = self.record(tree), self.bases()
        return self.do(lambda trees: trees.remove_merged(record, bases))

    def remove(self, tree: Worktree) -> bool:
        return self.do(lambda trees: trees.remove_clean(ME, tree))


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return a_repository(tmp_path / "repository")
