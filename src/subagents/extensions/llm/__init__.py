"""Workers that are our own loop around a model."""

from subagents.extension import Extension

extension = Extension(
    name="llm",
    runtimes="subagents.extensions.llm.llm_runtime:runtimes",
)
