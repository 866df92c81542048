"""Commits, and how builds and tests ended, by what workers' tools print."""

from subagents.extension import Extension

extension = Extension(
    name="detectors",
    detectors="subagents.extensions.detectors.tool_findings:findings_of",
)
