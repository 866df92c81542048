"""The daemon as a service of systemd."""

from subagents.extension import Command, Extension

extension = Extension(
    name="service",
    commands={
        "Keep it running": (
            Command(
                "service install",
                "subagents.extensions.service.service_commands:install",
                "Install a systemd service",
            ),
            Command(
                "service uninstall",
                "subagents.extensions.service.service_commands:uninstall",
                "Remove the service",
            ),
        )
    },
    parents={"service": "Run the daemon as a systemd user service"},
)
