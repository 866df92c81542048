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
    retired={
        "reload": "subagents down --yes && subagents up; new runs go by the changed files anyway",
        "restart": "subagents down --yes && subagents up; workers go on",
        "start": "subagents up starts the daemon, subagents run TASK some work",
        "upgrade": "install it as you did this version, then: subagents down --yes && subagents up",
    },
    parents={"service": "Run the daemon as a systemd user service"},
)
