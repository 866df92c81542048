"""Fixtures of the worktrees' tests."""

from tests.extensions.worktrees.worktree_harness import harness, repository

__all__ = ["harness", "repository"]
