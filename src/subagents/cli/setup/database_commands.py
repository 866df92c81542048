"""``db check`` and ``db backup``; both also while the daemon runs."""

import os
import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from subagents.cli import output
from subagents.cli.connection import caller_cwd, paths
from subagents.cli.flags import Json
from subagents.errors import EXIT_FAILED, EXIT_OK, StoreUnavailable, SubagentsError, UsageError


def check(*, json: Json = False) -> int:
    """Check the whole database for damage. Safe while the daemon is running.

    For example:

        subagents db check

        subagents db check --json
    """
    problems = database_problems()
    home = paths()
    if json:
        output.document(
            {"database": str(home.database), "ok": not problems, "problems": list(problems)}
        )
    elif problems:
        for problem in problems:
            output.line(problem)
        output.note("  hint: restore a copy made by `subagents db backup`")
    else:
        output.line(f"ok: {home.database}")
    return EXIT_FAILED if problems else EXIT_OK


def database_problems() -> list[str]:
    """What the database finds in itself.

    Raises:
        StoreUnavailable: There is none, or it cannot be read.
    """
    from subagents.store.sqlite.sqlite_store import SqliteStore  # noqa: PLC0415

    store = SqliteStore(paths().database)
    store.open_readonly()
    try:
        return list(store.check())
    finally:
        store.close()


def backup(
    file: Annotated[
        Path | None, Parameter(help="A new file. Default: one with the time, here.", metavar="FILE")
    ] = None,
    /,
    *,
    json: Json = False,
) -> int:
    """Back up the database to a new file. Safe while the daemon is running.

    For example:

        subagents db backup

        subagents db backup /backup/subagents.db --json
    """
    import sqlite3  # noqa: PLC0415

    from subagents.store.sqlite.sqlite_store import SqliteStore  # noqa: PLC0415

    target = file or Path(caller_cwd()) / time.strftime("subagents-%Y%m%d-%H%M%S.db")
    if target.exists():
        raise UsageError(f"{target} exists; a backup needs a new file", details={"field": "FILE"})
    store = SqliteStore(paths().database)
    store.open_readonly()
    try:
        # Created first, closed to others: it holds the same tasks and results.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        store.backup(str(target))
    except OSError as error:
        raise StoreUnavailable(f"cannot write {target}: {error.strerror}") from error
    except (sqlite3.Error, SubagentsError) as error:
        target.unlink(missing_ok=True)
        raise StoreUnavailable(f"the backup to {target} failed: {error}") from error
    finally:
        store.close()
    size = target.stat().st_size
    if json:
        output.document({"file": str(target), "bytes": size})
    else:
        output.line(f"{target} ({size} bytes)")
    return EXIT_OK
