"""Secrets of workers in the system's keyring."""

from subagents.extension import Command, Extension

COMMANDS = "subagents.extensions.secrets.secret_commands"

extension = Extension(
    name="secrets",
    commands={
        "Set up": (
            Command("secret set", f"{COMMANDS}:set_", "Store a secret in the keyring"),
            Command("secret check", f"{COMMANDS}:check", "Check that a secret is there"),
            Command("secret delete", f"{COMMANDS}:delete", "Delete one of the keyring's"),
        )
    },
    parents={"secret": "Keep secrets for workers: `--env NAME=secret:NAME`"},
)
