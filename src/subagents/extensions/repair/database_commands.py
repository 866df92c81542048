"""``db check`` and ``db backup``, both also while the daemon runs, ``restore`` and ``repair``."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from subagents.cli import output
from subagents.cli.connection import caller_cwd, paths
from subagents.cli.flags import Json, Parameter, Yes
from subagents.config.paths import Paths
from subagents.errors import (
    EXIT_FAILED,
    EXIT_OK,
    CorruptState,
    NotFound,
    StoreUnavailable,
    SubagentsError,
    UsageError,
)
from subagents.text import counted, size

if TYPE_CHECKING:
    from subagents.ports import StoreFile


SQLITE: Final = b"SQLite format 3\0"
_PACKED: Final = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}


def check(*, json: Json = False) -> int:
    """Check the whole database for damage. Safe while the daemon is running.

    For example:

        subagents db check

        subagents db check --json
    """
    from subagents.stores import database_of, problems_of  # noqa: PLC0415

    database = database_of(paths())
    problems = problems_of(database)
    if json:
        output.document(
            {"database": database.place, "ok": not problems, "problems": list(problems)}
        )
    elif problems:
        for problem in problems:
            output.line(problem)
        output.note(f"  hint: {database.ways_out}")
    else:
        output.line(f"ok: {database.place}")
    return EXIT_FAILED if problems else EXIT_OK


def _store_file(home: Paths) -> "StoreFile":
    """The database of this home.

    Raises:
        UsageError: It is no file of this machine.
    """
    from subagents.stores import store_file_of  # noqa: PLC0415

    file = store_file_of(home)
    if file is None:
        raise UsageError(
            "daemon.store says that the database of this home is no file of this machine",
            hint="use the programs of that database, such as pg_dump and pg_restore",
        )
    return file


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

    from subagents.extensions.repair.environments_in_backup import put_in  # noqa: PLC0415

    home = paths()
    store = _store_file(home)
    target = file or Path(caller_cwd()) / time.strftime("subagents-%Y%m%d-%H%M%S.db")
    if target.exists():
        raise UsageError(f"{target} exists; a backup needs a new file", details={"field": "FILE"})
    store.open_readonly()
    try:
        # Created first, closed to others: it holds the same tasks and results.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        store.backup(str(target))
        put_in(target, home.environments_dir)
    except OSError as error:
        raise StoreUnavailable(f"cannot write {target}: {error.strerror}") from error
    except (SubagentsError, sqlite3.Error) as error:
        target.unlink(missing_ok=True)
        raise StoreUnavailable(f"the backup to {target} failed: {error}") from error
    finally:
        store.close()
    written = target.stat().st_size
    if json:
        output.document({"file": str(target), "bytes": written})
    else:
        output.line(f"{target} ({written} bytes)")
        beside = [each for each in (home.results_dir, home.transcripts_dir) if each.exists()]
        if beside:
            listed = " and ".join(map(str, beside))
            output.note(f"  not in it: long results and transcripts; copy {listed}, too")
    return EXIT_OK


def restore(
    file: Annotated[
        Path, Parameter(help="A backup made by `subagents db backup`.", metavar="FILE")
    ],
    /,
    *,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Go back to a backup of the database. The current one is kept beside it.

    No daemon may be running. The backup is checked first and then copied; you are asked before
    it takes its place. Runs spawned since the backup are no longer known. Those that were active
    then are picked up where their workers are now, or end as lost; those that waited are started,
    so restore no file of somebody you would not run commands of. Schedules that this home did not
    have are paused.

    For example:

        subagents db restore subagents-20261123-120000.db

        subagents down --yes && subagents db restore /backup/subagents.db --yes
    """
    if not file.is_file():
        raise NotFound(f"there is no file {file}", details={"field": "FILE"})
    import sqlite3  # noqa: PLC0415

    from subagents.extensions.repair.environments_in_backup import take_out  # noqa: PLC0415
    from subagents.stores import store_file_at  # noqa: PLC0415

    home = paths()
    store = _store_file(home)
    home.ensure()
    aside = home.state_dir / time.strftime("aside-%Y%m%d-%H%M%S")
    with (
        store.locked(),
        tempfile.TemporaryDirectory(prefix="restore-", dir=home.state_dir) as directory,
    ):
        new = Path(directory) / home.database.name
        _copy_checked(file, new)
        there = store_file_at(new).settle(store.schedule_ids(), round(time.time() * 1000))
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(file.stat().st_mtime))
        what = f"{file} ({size(file.stat().st_size)}, of {made}) is undamaged"
        if there.open_runs:
            has = "has" if there.open_runs == 1 else "have"
            output.note(
                f"warning: {counted(there.open_runs, 'run')} in {file} {has} not ended: a daemon "
                "starts what waits there, as this user, also where the file is somebody else's"
            )
        old = _files_of(home.database)
        keep = f", and keep the current database in {aside}" if old else ""
        if not output.is_confirmed(f"{what}. Restore it{keep}?", yes=yes):
            return EXIT_FAILED
        try:
            take_out(new, home.environments_dir)
        except (OSError, sqlite3.Error, ValueError) as error:
            why = f"the variables of workers in {file} cannot be taken over: {error}"
            raise StoreUnavailable(why, hint="the database is as it was") from error
        _move(old, aside)
        # It says how far the log of the old one went.
        os.truncate(f"{home.database}.lock", 0)
        new.rename(home.database)
    before = f"the database from before is in {aside}" if old else "there was no database before"
    document: dict[str, object] = {
        "aside": str(aside) if old else None,
        "restored": str(file),
        "openRuns": there.open_runs,
        "pausedSchedules": list(there.paused),
    }
    _say(document, f"{file} is restored; {before}", json=json)
    if there.paused:
        what = f"schedule {there.paused[0]} is paused, since it"
        if len(there.paused) > 1:
            what = f"{len(there.paused)} schedules are paused, since they"
        names = " ".join(f"schedule:{name}" for name in sorted(there.paused))
        output.note(f"{what} may go on where the backup was made: subagents resume {names}")
    return EXIT_OK


def _copy_checked(file: Path, new: Path) -> None:
    """Copy a backup and look for damage in the copy.

    Raises:
        StoreUnavailable: It cannot be read or copied.
        CorruptState: It is damaged, of another program, or of a newer version.
    """
    import sqlite3  # noqa: PLC0415

    from subagents.stores import problems_of, store_file_at  # noqa: PLC0415

    mend = "nothing was changed; restore another backup"
    try:
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        shutil.copyfile(file, new)
        _require_sqlite(new)
        copy = store_file_at(new)
        if copy.found_schema() is None:
            copy.open_readonly()  # says what else it is, or what is wrong with it
            raise CorruptState(f"{new} is a database without a table")
        problems = problems_of(copy)
    except OSError as error:
        raise StoreUnavailable(f"cannot copy {file}: {error.strerror}", hint=mend) from error
    except sqlite3.Error as error:
        raise CorruptState(f"{file} is no database: {error}", hint=mend) from error
    except SubagentsError as error:
        raise CorruptState(error.message.replace(str(new), str(file)), hint=mend) from error
    if problems:
        raise CorruptState(f"{file} is damaged: {problems[0]}", hint=mend)


def _require_sqlite(file: Path) -> None:
    with file.open("rb") as opened:
        head = opened.read(len(SQLITE))
    if not head:
        raise CorruptState(f"{file} is empty")
    kind = next((word for sign, word in _PACKED.items() if head.startswith(sign)), None)
    if kind is not None:
        raise CorruptState(f"{file} is compressed ({kind}): unpack it first")
    if head != SQLITE:
        raise CorruptState(f"{file} is no database: it does not begin as those of SQLite do")


def repair(
    *,
    empty: Annotated[
        bool,
        Parameter(name="--empty", help="Start empty: move database and files of runs aside."),
    ] = False,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Rebuild the database from what can be read of it, and of the files of runs.

    For one that is damaged, missing or empty; no daemon may be running. Runs whose record is
    whole stay as they are. Others are folded from their journal, or end as lost with what
    their files say. Nothing is started again, and no result announced twice. The new
    database takes its place after you agree; the old one is kept beside it.

    For example:

        subagents db repair

        subagents db repair --yes --json

        subagents db repair --empty
    """
    home = paths()
    store = _store_file(home)
    aside = home.state_dir / time.strftime("aside-%Y%m%d-%H%M%S")
    with store.locked() as is_cut:
        if empty:
            moved = [*_files_of(home.database), *filter(Path.exists, home.belongings)]
            if not moved:
                _say(
                    {"aside": None, "runs": []}, "there is nothing to move: it is empty", json=json
                )
                return EXIT_OK
            names = ", ".join(each.name for each in moved)
            if not output.is_confirmed(f"Move {names} to {aside}, and start empty?", yes=yes):
                return EXIT_FAILED
            _move(moved, aside)
            _say({"aside": str(aside), "runs": []}, f"moved to {aside}: {names}", json=json)
            return EXIT_OK
        store.require_not_newer()
        return _rebuild(home, aside, is_cut=is_cut, yes=yes, json=json)


def _rebuild(home: Paths, aside: Path, *, is_cut: bool, yes: bool, json: bool) -> int:
    import sqlite3  # noqa: PLC0415

    from subagents.extensions.repair.repairs import rebuild_database  # noqa: PLC0415 - the whole engine

    with tempfile.TemporaryDirectory(prefix="repair-", dir=home.state_dir) as directory:
        new = Path(directory) / home.database.name
        try:
            runs = rebuild_database(home, new, is_cut=is_cut)
        except (OSError, sqlite3.Error) as error:
            raise StoreUnavailable(f"{home.database} cannot be rebuilt: {error}") from error
        for each in () if json else runs:
            ends = "; it ended as lost" if each.is_lost else ""
            output.line(f"{each.run_id}: {each.found.splitlines()[0]}{ends}")
        note = f"{counted(len(runs), 'run')} repaired, all others as they were"
        old = _files_of(home.database)
        keep = f", and keep the old one in {aside}" if old else ""
        if not output.is_confirmed(f"{note}. Put the new database in place{keep}?", yes=yes):
            return EXIT_FAILED
        _move(old, aside)
        # It says how far the log of the old one went.
        os.truncate(f"{home.database}.lock", 0)
        new.rename(home.database)
    told = [{"runId": r.run_id, "found": r.found, "lost": r.is_lost} for r in runs]
    kept = f"the old one is in {aside}" if old else "there was none before"
    document: dict[str, object] = {"aside": str(aside) if old else None, "runs": told}
    _say(document, f"{note}; {kept}", json=json)
    return EXIT_OK


def _files_of(database: Path) -> list[Path]:
    names = ("", "-wal", "-shm")
    return [each for name in names if (each := Path(f"{database}{name}")).exists()]


def _move(files: Iterable[Path], aside: Path) -> None:
    for each in files:
        aside.mkdir(mode=0o700, exist_ok=True)
        each.rename(aside / each.name)


def _say(document: dict[str, object], text: str, *, json: bool) -> None:
    if json:
        output.document(document)
    else:
        output.line(text)
