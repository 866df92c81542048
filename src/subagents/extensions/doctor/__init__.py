"""What is wrong with an installation, and what a report of a bug needs."""

from subagents.extension import Command, Extension, everyday

extension = Extension(
    name="doctor",
    commands={
        "Keep it running": (
            everyday(
                "doctor",
                "subagents.extensions.doctor.doctor:doctor",
                "Check the installation and suggest fixes",
            ),
        ),
        "Set up": (
            Command(
                "version",
                "subagents.extensions.doctor.version_command:version",
                "Show the versions of all parts",
            ),
        ),
    },
    renamed={"support-bundle": "doctor --bundle"},
)
