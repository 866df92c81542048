"""Workers that are Claude Code."""

from subagents.extension import Extension

extension = Extension(
    name="claude",
    runtimes="subagents.extensions.claude.claude_code:runtimes",
)
