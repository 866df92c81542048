"""Git worktrees: where runs work apart, and how their work comes home."""

from subagents.extension import Extension

extension = Extension(
    name="worktrees",
    worktrees="subagents.extensions.worktrees.git_worktrees:GitWorktrees",
)
