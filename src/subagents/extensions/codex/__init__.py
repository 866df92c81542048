"""Workers that are Codex."""

from subagents.extension import Extension

extension = Extension(
    name="codex",
    runtimes="subagents.extensions.codex.codex:runtimes",
)
