"""A2A: other agents' calls, and pushes of their tasks' states."""

from subagents.extension import Extension, SettingsTable

extension = Extension(
    name="a2a",
    settings=(
        SettingsTable(
            "a2a",
            "subagents.extensions.a2a.a2a_settings:A2aSettings",
        ),
    ),
    routes=("subagents.extensions.a2a.a2a_endpoint",),
    followers="subagents.extensions.a2a.run_pushes:followers",
)
