"""Numbered, forward-only migrations; each in one transaction with its number."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

from subagents.errors import CorruptState
from subagents.store.named_statements import numbered_scripts
from subagents.store.sqlite.migrated_state import (
    PendingOf,
    in_values,
    outcome_of,
    project_of,
    tags_of,
)


@cache
def migrations() -> tuple[tuple[int, str, str], ...]:
    """``(number, name, script)`` of every file in ``migrations/``, in order."""
    return numbered_scripts(__package__)


def version_of(connection: sqlite3.Connection) -> int:
    """The number of the newest migration applied; 0 for a new file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, path: Path, *, to: int | None = None) -> None:
    """Apply what is missing, up to ``to`` (None = the newest); a copy is kept before a change.

    Raises:
        CorruptState: It holds a run that a step does not know; nothing was changed by that step.
        sqlite3.Error: The disk is full, or the file cannot be written.
    """
    current, steps = version_of(connection), migrations()
    newest = steps[-1][0] if to is None else to
    kept = path.with_name(f"{path.name}.schema-{current}.bak")
    if 0 < current < newest:
        _copy(connection, kept)
    odd: list[str] = []
    connection.create_function("in_values", 2, _reporting(odd, in_values))
    for read in (project_of, tags_of, outcome_of):
        connection.create_function(read.__name__, 1, read)
    connection.create_aggregate("pending_of", 5, PendingOf)  # type: ignore[arg-type] # typeshed knows sums only
    for number, _, script in steps:
        if current < number <= newest:
            try:
                # In the script, since `executescript` commits a transaction that is open before it.
                connection.executescript(
                    f"BEGIN;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;"
                )
            except sqlite3.Error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if odd:
                    raise _not_known(path, number, odd[0], kept) from None
                raise


def _reporting(odd: list[str], change: Callable[[bytes], bytes]) -> Callable[[str, bytes], bytes]:
    """``change`` as SQL calls it; SQLite keeps nothing of an exception but that there was one."""

    def changed(run_id: str, value: bytes) -> bytes:
        try:
            return change(value)
        except (ValueError, TypeError) as error:
            odd.append(f"run {run_id}: {error}")
            raise

    return changed


def _not_known(path: Path, number: int, odd: str, kept: Path) -> CorruptState:
    return CorruptState(
        f"{path} cannot be brought to schema {number}: {odd}",
        hint=(
            f"nothing was changed, and {kept} is a copy: continue with the version from "
            f"before, or move {path} away to start empty"
        ),
    )


def _copy(connection: sqlite3.Connection, target: Path) -> None:
    target.touch(mode=0o600)  # as private as the database itself
    target.chmod(0o600)
    with closing(sqlite3.connect(target)) as copy:
        connection.backup(copy)
