"""Runs as tasks of the Model Context Protocol."""

from subagents.extension import Extension

extension = Extension(name="mcp_tasks", mcp="subagents.extensions.mcp_tasks.run_tasks:methods")
