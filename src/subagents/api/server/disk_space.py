"""How much room the database takes and the disk has."""

import shutil

from subagents.config.paths import Paths


def database_bytes(paths: Paths) -> int:
    """Of the database with its write-ahead log; 0 before it is made."""
    files = (paths.database, paths.database.with_name(f"{paths.database.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def free_bytes(paths: Paths) -> int:
    """Of the disk that holds the state."""
    return shutil.disk_usage(paths.state_dir).free
