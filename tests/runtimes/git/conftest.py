"""Fixtures of the worktrees' tests."""

from tests.runtimes.git.worktree_bench import bench, repository

__all__ = ["bench", "repository"]
