"""Fixtures of the worktrees' tests."""

from tests.runtimes.git.worktree_harness import harness, repository

__all__ = ["harness", "repository"]
