"""Spans for OpenTelemetry, and metrics for Prometheus."""

from subagents.extension import Extension, SettingsTable

extension = Extension(
    name="telemetry",
    settings=(
        SettingsTable(
            "telemetry",
            "subagents.extensions.telemetry.telemetry_settings:Telemetry",
        ),
    ),
    routes=("subagents.extensions.telemetry.metrics",),
    followers="subagents.extensions.telemetry.span_export:followers",
    worker_env="subagents.extensions.telemetry.span_export:worker_env",
)
