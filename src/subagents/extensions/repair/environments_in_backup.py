"""The variables that callers brought for workers, in a table of a backup beside the database's own.

Without them no schedule and no waiting run that has some can start. They are files of the state
directory (``store.environment_files``); a file that several runs share is in a backup once.
"""

import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from subagents.durable_files import private, sync

TABLE: Final = "kept_environment"
_CREATE: Final = f"CREATE TABLE {TABLE} (names TEXT NOT NULL, content BLOB NOT NULL)"


def put_in(backup: Path, directory: Path) -> None:
    """Put the files of that directory into a backup.

    Raises:
        OSError: One cannot be read.
        sqlite3.Error: They cannot be written.
    """
    names: defaultdict[int, list[str]] = defaultdict(list)
    for each in sorted(directory.iterdir()) if directory.is_dir() else ():
        if not each.name.startswith("."):  # of a call under way
            names[each.stat().st_ino].append(each.name)
    rows = [(msgspec.json.encode(found).decode(), found) for found in names.values()]
    with closing(sqlite3.connect(backup)) as database, database:
        database.execute(_CREATE)
        database.executemany(
            f"INSERT INTO {TABLE} VALUES (?, ?)",  # noqa: S608 - a constant
            ((text, (directory / found[0]).read_bytes()) for text, found in rows),
        )


def take_out(copy: Path, directory: Path) -> None:
    """Write those of a backup's copy to that directory, but for what is there, and drop the table.

    Raises:
        OSError: One cannot be written.
        sqlite3.Error: They cannot be read.
    """
    with closing(sqlite3.connect(copy)) as database, database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (TABLE,)).fetchall():
            return  # of an earlier version
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for text, content in database.execute(f"SELECT names, content FROM {TABLE}"):  # noqa: S608
            first, *others = msgspec.json.decode(text, type=list[str])
            if any("/" in each or each.startswith(".") for each in (first, *others)):
                raise OSError(f"{TABLE} names {text}")
            if not (directory / first).exists():
                with open(directory / first, "wb", opener=private) as file:
                    file.write(content)
            for each in others:
                if not (directory / each).exists():
                    (directory / each).hardlink_to(directory / first)
        sync(directory)
        database.execute(f"DROP TABLE {TABLE}")
