"""A small fleet that works without a model."""

from subagents.extension import Command, Extension

extension = Extension(
    name="demo",
    routes=("subagents.extensions.demo.demo_routes",),
    commands={
        "Set up": (
            Command(
                "demo",
                "subagents.extensions.demo.demo:demo",
                "See a small fleet at work; needs no API key",
            ),
        )
    },
)
