"""SQLite files for tests, and one as the place where the store suite works."""

import sqlite3
from contextlib import closing
from pathlib import Path

from subagents.extensions.testing.stored_values import a_run, message, spawned
from subagents.store.sqlite.sqlite_store import SqliteStore


def a_store(path: Path) -> SqliteStore:
    return SqliteStore(path, synchronous="OFF")


def schema_of(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
        )
        return [" ".join(sql.split()) for (sql,) in found]


def filled(path: Path, runs: int = 200) -> None:
    with closing(a_store(path)) as store:
        store.open("one")
        batch = spawned(*(a_run(n) for n in range(runs)))
        batch.messages += [message(run) for run in batch.runs.values()]
        store.commit(batch)


class SqlitePlace:
    def __init__(self, directory: Path) -> None:
        self.path = directory / "subagents.db"

    def store(self) -> SqliteStore:
        return a_store(self.path)  # the disk is not what is tested here

    def execute(self, sql: str, *parameters: object) -> int:
        """Behind the store's back; how many rows it was about."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            return connection.execute(sql, parameters).rowcount

    def asked(self, sql: str, *parameters: object) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.path)) as connection:
            connection.text_factory = bytes
            return connection.execute(sql, parameters).fetchall()

    def lose_lock(self) -> None:
        self.path.with_name(f"{self.path.name}.lock").unlink()
