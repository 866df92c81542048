"""Numbered, forward-only migrations; each in one transaction with its number."""

import sqlite3
from functools import cache
from importlib.resources import files
from pathlib import Path

from subagents.errors import CorruptState


@cache
def migrations() -> tuple[tuple[int, str, str], ...]:
    """``(number, name, script)`` of every file in ``migrations/``, in order."""
    found = []
    for entry in files(__package__).joinpath("migrations").iterdir():
        number, _, name = entry.name.removesuffix(".sql").partition("_")
        found.append((int(number), name, entry.read_text("utf-8")))
    return tuple(sorted(found))


def version_of(connection: sqlite3.Connection) -> int:
    """The number of the newest migration applied; 0 for a new file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, path: Path) -> int:
    """Apply what is missing and return the version reached; a copy is kept before a change.

    Raises:
        CorruptState: The file was written by a newer version; nothing was changed.
    """
    current, steps = version_of(connection), migrations()
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
