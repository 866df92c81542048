"""What a crash leaves at any instant of the work: the files as they are then, opened anew.

    python -m tests.torture.crash_copies --minutes 5 --seed 7

While callers spawn, take and cancel, the daemon is stopped (SIGSTOP), wherever its threads are, and
its database and write-ahead log are copied. That is what kill -9 at that instant would have left.
Of half the copies the end of the log is torn off too, as when the machine loses power. A fresh
store opens each copy.
"""

import contextlib
import os
import shutil
import signal
import sqlite3
import threading
import time
from pathlib import Path
from typing import Final

from tests.e2e.live_home import LiveHome, fold, live_home
from tests.torture.bed import Bed, main

from subagents.client.client import Client
from subagents.domain.run.values import RunId
from subagents.errors import SubagentsError
from subagents.store.sqlite.sqlite_store import SqliteStore

CALLERS: Final = 3
PAUSE_S: Final = 0.5
FOLDED_MAX: Final = 200
"""The newest are those that were at work."""
JOURNAL_MAX: Final = 100_000
CONFIG: Final = """
[agents.defaults.subagents]
max_children_per_agent = 100000
max_concurrent = 6

"""


class Busy(threading.Thread):
    """A caller that spawns, takes what is there and cancels now and then."""

    def __init__(self, home: LiveHome, number: int, ending: threading.Event) -> None:
        super().__init__(daemon=True)
        self._home = home
        self._number = number
        self._ending = ending
        self.acknowledged: list[str] = []
        """Runs, each once its receipt was here."""

    def run(self) -> None:
        session = f"agent:main:busy{self._number}"
        with Client(self._home.paths.socket, session=session, reader=session) as client:
            while not self._ending.is_set():
                try:
                    self._turn(client)
                except SubagentsError:
                    continue

    def _turn(self, client: Client) -> None:
        agent = "sh" if len(self.acknowledged) % 4 == 0 else "quick"
        body = self._home.spawn_body("echo a result", agent=agent)
        run_id = str(client.post("/v1/runs", body)["runId"])
        self.acknowledged.append(run_id)
        if len(self.acknowledged) % 7 == 0:
            client.post(f"/v1/runs/{run_id}/cancel", {})
        found = client.post("/v1/inbox", {"limit": 5})["messages"]
        assert isinstance(found, list)
        client.post("/v1/inbox/ack", {"messageIds": [each["id"] for each in found]})


def torture(bed: Bed) -> None:
    ending = threading.Event()
    copies = torn = runs = 0
    with live_home(bed.root, config=CONFIG) as home:
        callers = [Busy(home, number, ending) for number in range(CALLERS)]
        for each in callers:
            each.start()
        try:
            while (bed.left_s or not copies) and not bed.findings.wrong:
                time.sleep(bed.chance.uniform(0, 2 * PAUSE_S))
                is_torn = bed.chance.random() < 0.5
                place = bed.root / f"copy-{copies}"
                promised = copy_of(home, callers, place)
                if is_torn:
                    tear(place, bed.chance.random())
                runs += look_at(bed, place, set() if is_torn else promised)
                copies, torn = copies + 1, torn + is_torn
                if not bed.findings.wrong:
                    shutil.rmtree(place)
        finally:
            ending.set()
            for each in callers:
                each.join(60)
    bed.saw(
        "copy of the database in the middle of a write",
        copies,
        f"all open, whole, and every one of {runs:,} runs folds from its journal;"
        f" of {torn} the log's end was torn off",
    )


def copy_of(home: LiveHome, callers: list[Busy], place: Path) -> set[str]:
    """Copy what a crash would leave now; returns the runs that were acknowledged before."""
    place.mkdir()
    os.kill(home.pid, signal.SIGSTOP)
    try:
        # The receipts that are here were sent before the daemon stood still.
        promised = {run_id for each in callers for run_id in list(each.acknowledged)}
        for ending in ("", "-wal"):
            file = home.paths.database.with_name(home.paths.database.name + ending)
            if file.exists():
                shutil.copyfile(file, place / f"copy.db{ending}")
    finally:
        os.kill(home.pid, signal.SIGCONT)
    return promised


def tear(place: Path, share: float) -> None:
    """Take away the end of the log: what the disk had not written yet."""
    log = place / "copy.db-wal"
    if log.exists():
        os.truncate(log, int(log.stat().st_size * share))


def look_at(bed: Bed, place: Path, promised: set[str]) -> int:
    """Open a copy as a daemon would, and judge all that is in it; returns how many runs are."""
    store = SqliteStore(place / "copy.db")
    try:
        store.open("torture")
    except SubagentsError as error:
        bed.wrong(f"{place.name} does not open: {error.message}")
        return 0
    try:
        problems = store.check()
        bed.check(not problems, f"{place.name} is damaged: {problems}")
        stored = runs_in(place / "copy.db")
        bed.check(promised <= set(stored), f"{place.name} lacks {promised - set(stored)}")
        for run_id in stored[:FOLDED_MAX]:
            journal = [each.event for each in store.journal(RunId(run_id), limit=JOURNAL_MAX)]
            bed.check(fold(journal) == store.run(RunId(run_id)), f"{place.name}: {run_id} no fold")
        return min(FOLDED_MAX, len(stored))
    finally:
        store.close()


def runs_in(database: Path) -> list[str]:
    """Their ids, the newest first."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        found = connection.execute("SELECT run_id FROM run ORDER BY number DESC").fetchall()
    return [run_id for (run_id,) in found]


if __name__ == "__main__":
    main("crash_copies", torture)
