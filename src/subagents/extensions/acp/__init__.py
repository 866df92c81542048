"""Workers that speak the Agent Client Protocol."""

from subagents.extension import Extension

extension = Extension(
    name="acp",
    runtimes="subagents.extensions.acp.acp:runtimes",
)
