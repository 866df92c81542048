"""Numbered, forward-only migrations; each in one transaction with its number."""

import sqlite3
from pathlib import Path

from subagents.errors import CorruptState
from subagents.store.sqlite.named_sql import migrations


def version_of(connection: sqlite3.Connection) -> int:
    """The number of the newest migration applied; 0 for a new file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, path: Path) -> int:
    """Apply what is missing and return the version reached; a copy is kept before a change.

    Raises:
        CorruptState: The file was written by a newer version; nothing was changed.
    """
    current, steps = version_of(connection), migrations("sqlite")
    newest = steps[-1][0]
    if current > newest:
        raise CorruptState(
            f"{path} has schema {current}, this version knows {newest}",
            hint="install the newer subagents again, or restore a backup from before the upgrade",
        )
    if 0 < current < newest:
        _copy(connection, path.with_name(f"{path.name}.schema-{current}.bak"))
    for number, _, script in steps:
        if number > current:
            connection.executescript(f"BEGIN;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
    return newest


def _copy(connection: sqlite3.Connection, target: Path) -> None:
    with sqlite3.connect(target) as copy:
        connection.backup(copy)
    copy.close()
