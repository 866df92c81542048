"""What is wrong with an installation, and what a report of a bug needs."""

from subagents.extension import Command, Extension

extension = Extension(
    name="doctor",
    commands={
        "Set up": (
            Command(
                "doctor",
                "subagents.extensions.doctor.doctor:doctor",
                "Check the installation and suggest fixes",
            ),
            Command(
                "support-bundle",
                "subagents.extensions.doctor.support_bundle:bundle",
                "Pack what a bug report needs",
            ),
        )
    },
)
