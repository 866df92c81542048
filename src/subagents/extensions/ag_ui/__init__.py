"""AG-UI: a run's events for interfaces that speak it."""

from subagents.extension import Extension

extension = Extension(
    name="ag_ui",
    routes=("subagents.extensions.ag_ui.ag_ui_endpoint",),
)
