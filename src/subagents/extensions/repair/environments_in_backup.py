"""The variables that callers brought for workers, in a table of a backup beside the database's own.

Without them no schedule and no waiting run that has some can start. They are files of the state
directory (``store.environment_files``); a file that several runs share is in a backup once.
"""

import sqlite3
from collections import defaultdict
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from subagents.durable_files import private, sync
from subagents.extensions.repair.salvage import own_statements


def put_in(backup: Path, directory: Path) -> None:
    """Put the files of that directory into a backup.

    Raises:
        OSError: One cannot be read.
        sqlite3.Error: They cannot be written.
    """
    names: defaultdict[int, list[str]] = defaultdict(list)
    contents: dict[int, bytes] = {}
    for each in sorted(directory.iterdir()) if directory.is_dir() else ():
        if not each.name.startswith("."):  # of a call under way
            with suppress(FileNotFoundError):  # it went with its run, just now
                number = each.stat().st_ino
                contents[number] = contents.get(number) or each.read_bytes()
                names[number].append(each.name)
    sql = own_statements()
    with closing(sqlite3.connect(backup)) as database, database:
        database.execute(sql["create_environments"])
        for number, found in names.items():
            row = msgspec.json.encode(found).decode(), contents[number]
            database.execute(sql["put_environment"], row)


def take_out(copy: Path, directory: Path) -> None:
    """Write those of a backup's copy to that directory, but for what is there, and drop the table.

    Raises:
        OSError: One cannot be written, or has a name that leads elsewhere.
        sqlite3.Error: They cannot be read.
    """
    sql = own_statements()
    with closing(sqlite3.connect(copy)) as database, database:
        if not database.execute(sql["has_environments"]).fetchall():
            return  # of an earlier version
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for text, content in database.execute(sql["all_environments"]).fetchall():
            first, *others = msgspec.json.decode(text, type=list[str])
            if any("/" in each or each.startswith(".") for each in (first, *others)):
                raise OSError(f"the backup has variables of {text}, which is no run")
            if not (directory / first).exists():
                with open(directory / first, "wb", opener=private) as file:
                    file.write(content)
            for each in others:
                if not (directory / each).exists():
                    (directory / each).hardlink_to(directory / first)
        sync(directory)
        database.execute(sql["drop_environments"])
