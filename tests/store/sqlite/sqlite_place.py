"""One SQLite file as the place where the store suite works."""

from pathlib import Path

from subagents.ports import Store
from subagents.store.sqlite.sqlite_store import SqliteStore


class SqlitePlace:
    def __init__(self, directory: Path) -> None:
        self.path = directory / "subagents.db"

    def store(self) -> Store:
        return SqliteStore(self.path, synchronous="OFF")  # the disk is not what is tested here

    def lose_lock(self) -> None:
        self.path.with_name(f"{self.path.name}.lock").unlink()
