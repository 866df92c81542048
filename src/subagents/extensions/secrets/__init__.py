"""Secrets of workers in the system's keyring."""

from subagents.extension import Command, Extension

extension = Extension(
    name="secrets",
    commands={
        "Set up": (
            Command(
                "secret",
                "subagents.extensions.secrets.secret_commands:secret",
                "Store, check or delete a secret for workers",
            ),
        )
    },
    renamed={
        "secret set": "secret",
        "secret check": "secret --check",
        "secret delete": "secret --delete",
    },
)
