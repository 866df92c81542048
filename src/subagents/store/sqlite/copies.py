"""Copies of a database: what is in one that is about to take a database's place.

What a copy holds is done where it is opened: its schedules start their work, and its runs that have
not begun begin. So whoever restores one is warned, and what goes on elsewhere, too, is paused.
"""

import json
import sqlite3
from collections.abc import Collection
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Final

from subagents.domain.run.run import OVER
from subagents.domain.schedules import schedule as schedules
from subagents.ports import Settled
from subagents.store import rows
from subagents.store.sqlite.identity import read_only
from subagents.store.sqlite.migrate import migrate, version_of
from subagents.store.sqlite.statements import statements
from subagents.text import one_line

SCHEDULES_SINCE: Final = 8
"""The schema in which schedules came."""
NAME_CHARS_MAX: Final = 60


def foreign_code(connection: sqlite3.Connection) -> list[str]:
    """Triggers that no version of ours made: SQLite would run them with our next change."""
    ours = _triggers_of(version_of(connection))
    return [
        f"the trigger {one_line(name, NAME_CHARS_MAX)} is not ours: it changes what we write"
        for name, sql in _triggers(connection).items()
        if ours.get(name) != sql
    ]


@cache
def _triggers_of(version: int) -> dict[str, str]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, Path(":memory:"), to=version)
        return _triggers(connection)


def _triggers(connection: sqlite3.Connection) -> dict[str, str]:
    found = connection.execute(statements()["select_triggers"])
    return {str(name): " ".join(str(sql).split()) for name, sql in found}


def schedule_ids(database: Path) -> frozenset[str]:
    """The ids of the schedules in it; none where it cannot be read."""
    try:
        with closing(sqlite3.connect(read_only(database), uri=True)) as connection:
            if version_of(connection) < SCHEDULES_SINCE:
                return frozenset()
            found = connection.execute(statements()["all_schedules"])
            return frozenset(str(schedule_id) for schedule_id, *_ in found)
    except sqlite3.Error:
        return frozenset()


def settle(copy: Path, own: Collection[str], at_ms: int) -> Settled:
    """Pause the schedules that are not this home's own, and count what would go on.

    Args:
        copy: The file, checked and not in use.
        own: Ids of the schedules that were here before.
        at_ms: The present time.

    Raises:
        sqlite3.Error: It cannot be written.
    """
    paused = []
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        over = json.dumps(sorted(OVER))
        (open_runs,) = connection.execute(statements()["count_open_runs"], (over,)).fetchone()
        if version_of(connection) >= SCHEDULES_SINCE:
            for row in connection.execute(statements()["all_schedules"]).fetchall():
                found = rows.schedule_from(row)
                if found.id not in own and found.paused_at_ms is None:
                    put = rows.schedule_put(schedules.paused(found, at_ms))
                    connection.execute(statements()["put_schedule"], put)
                    paused.append(found.name)
        connection.execute("COMMIT")
    return Settled(open_runs=int(open_runs), paused=tuple(paused))
