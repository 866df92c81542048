"""Codex: as a worker, and what its own sandbox allows it as a caller."""

from subagents.extension import Extension

extension = Extension(
    name="codex",
    runtimes="subagents.extensions.codex.codex:runtimes",
    mcp="subagents.extensions.codex.codex_sandbox:methods",
)
