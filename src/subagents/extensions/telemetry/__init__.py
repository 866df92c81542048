"""Spans for OpenTelemetry, and metrics for Prometheus."""

from subagents.extension import Extension

extension = Extension(
    name="telemetry",
    routes=("subagents.extensions.telemetry.metrics",),
    followers="subagents.extensions.telemetry.span_export:followers",
    worker_env="subagents.extensions.telemetry.span_export:worker_env",
)
