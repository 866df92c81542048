"""Whether a file is a database of ours, decided before anything of it is changed."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

from subagents.errors import CorruptState
from subagents.store.sqlite.migrate import migrations
from subagents.store.sqlite.statements import statements
from subagents.text import counted

APPLICATION_ID: Final = 0x73756261
"""``suba``, in the file's header. 0 = a database of 0.1.0, which is known by its tables."""

TABLES: Final = frozenset({"node", "run", "journal", "inbox"})


def require_ours(path: Path, belongings: Iterable[Path] = ()) -> None:
    """Refuse a file that is not ours, or that is empty where runs left files.

    Args:
        path: The database.
        belongings: Directories with an entry for each run.

    Raises:
        CorruptState: What was found, and the ways out; nothing was changed.
        sqlite3.Error: It cannot be read, or is damaged.
    """
    version, application, tables = _read(path)
    if (version, application, tables) == (0, 0, frozenset()):
        what = "is empty" if path.exists() else "is not there"
        for directory, number in ((each, _entries(each)) for each in belongings):
            if number:
                raise CorruptState(
                    f"{path} {what}, but {directory} has files of {counted(number, 'run')}",
                    hint=ways_out(path),
                )
    elif application not in {0, APPLICATION_ID} or not tables >= TABLES:
        raise CorruptState(
            f"{path} is a database of another program (application id {application:#x}, "
            f"version {version}, tables: {', '.join(sorted(tables)[:5]) or 'none'})",
            hint=ways_out(path),
        )
    else:
        _require_known(path, version)


def schema_of(path: Path) -> int | None:
    """The number of the newest migration applied; None = no database can be read there."""
    try:
        return _read(path)[0] or None
    except sqlite3.Error:
        return None


def require_not_newer(path: Path) -> None:
    """Refuse a database of a newer version, and nothing else.

    Raises:
        CorruptState: It is one; nothing was changed.
    """
    try:
        version, application, tables = _read(path)
    except sqlite3.Error:
        return
    if application == APPLICATION_ID or tables >= TABLES:
        _require_known(path, version)


def _require_known(path: Path, version: int) -> None:
    newest = migrations()[-1][0]
    if version > newest:
        raise CorruptState(
            f"{path} has schema {version}, this version knows {newest}",
            hint="install the newer subagents again, or restore a backup from before the upgrade",
        )


def ways_out(path: Path) -> str:
    """What can be done where the database cannot be used."""
    return (
        f"nothing was changed; restore a copy made by `subagents db backup` to {path}, rebuild it "
        "with `subagents db repair`, or start empty with `subagents db repair --empty`, which "
        "moves what is there aside"
    )


def _read(path: Path) -> tuple[int, int, frozenset[str]]:
    """Schema, application id and tables; zeros and none for a file without a byte.

    Not opened then: SQLite deletes the log next to an empty file, of which something may be left.
    """
    if not path.is_file() or not path.stat().st_size:
        return 0, 0, frozenset()
    with closing(sqlite3.connect(read_only(path), uri=True)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        tables = connection.execute(statements()["select_tables"])
        return version, application, frozenset(name for (name,) in tables)


def read_only(path: Path) -> str:
    """The URI with which SQLite opens the file and changes nothing of it."""
    return f"{path.absolute().as_uri()}?mode=ro"


def _entries(directory: Path) -> int:
    try:
        return sum(1 for _ in directory.iterdir())
    except OSError:
        return 0
