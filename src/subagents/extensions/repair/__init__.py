"""The database: checks, backups, and what can be saved of a damaged one."""

from subagents.extension import Command, Extension

extension = Extension(
    name="repair",
    commands={
        "Keep it running": (
            Command(
                "db check",
                "subagents.extensions.repair.database_commands:check",
                "Check the database",
            ),
            Command(
                "db backup",
                "subagents.extensions.repair.database_commands:backup",
                "Back up the database",
            ),
            Command(
                "db restore",
                "subagents.extensions.repair.database_commands:restore",
                "Go back to a backup",
            ),
            Command(
                "db repair",
                "subagents.extensions.repair.database_commands:repair",
                "Rebuild a damaged database",
            ),
        )
    },
    renamed={"backup": "db backup", "restore": "db restore"},
    parents={"db": "Check, back up and restore the database"},
)
