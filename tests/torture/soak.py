"""Twenty runs a second for as long as asked, and what it costs the daemon.

    python -m tests.torture.soak --minutes 60 --seed 7

Runs are kept for a minute instead of days (``hasty_daemon``), so that pruning keeps up with the
spawns. The memory of the daemon is looked at every second. After the first ten minutes, or half of
a shorter soak, it must stay within a tenth of what it was; at the end, when all was pruned, so must
the files be gone and the database be half of what it was with a minute's runs in it.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final

from tests.e2e.live_home import LiveHome, live_home, until
from tests.torture.bed import MIB, ROOT, Bed, main, resident_bytes

from subagents.client.client import Client
from subagents.errors import SubagentsError

RATE: Final = 20
"""Runs a second."""
CALLERS: Final = 4
WARM_S: Final = 600.0
TOLERANCE: Final = 0.1
JUDGED_S: Final = 900.0
"""A shorter soak says what it saw, and judges nothing: its memory is still warming up."""
SAMPLE_S: Final = 1.0
SETTLE_S: Final = 120.0
FILES_LEFT: Final = 200
SMALL: Final = 8 * MIB
"""Less is not worth the writes of giving it back."""
CONFIG: Final = """
[agents.defaults.subagents]
max_children_per_agent = 100000
max_concurrent = 16
archive_after_minutes = 0

[daemon]
sweep_seconds = 5

"""


class Caller(threading.Thread):
    """Spawns its share of the runs on time, and takes and acknowledges what came."""

    def __init__(self, home: LiveHome, number: int, ending: threading.Event) -> None:
        super().__init__(daemon=True)
        self._home = home
        self._ending = ending
        self._session = f"agent:main:soak{number}"
        self.spawned: set[str] = set()
        self.given: Counter[str] = Counter()
        self.errors: list[str] = []

    def run(self) -> None:
        with Client(self._home.paths.socket, session=self._session) as client:
            due = time.monotonic()
            while not self._ending.is_set():
                self._guarded(lambda: self._spawn(client))
                due += CALLERS / RATE
                if len(self.spawned) % CALLERS == 0:
                    self._guarded(lambda: self._take(client))
                self._ending.wait(max(0.0, due - time.monotonic()))
            settled = time.monotonic() + SETTLE_S
            while len(self.given) < len(self.spawned) and time.monotonic() < settled:
                self._guarded(lambda: self._take(client))
                time.sleep(0.05)

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except SubagentsError as error:
            self.errors.append(error.message)

    def _spawn(self, client: Client) -> None:
        body = self._home.spawn_body("echo a result")
        self.spawned.add(str(client.post("/v1/runs", body)["runId"]))

    def _take(self, client: Client) -> None:
        found = client.post("/v1/inbox", {"limit": 200})["messages"]
        assert isinstance(found, list)
        if found:
            client.post("/v1/inbox/ack", {"messageIds": [each["id"] for each in found]})
            self.given.update(each["runId"] for each in found)


def torture(bed: Bed) -> None:
    ending = threading.Event()
    path = {"PYTHONPATH": str(ROOT)}
    with live_home(bed.root, config=CONFIG, module="tests.torture.hasty_daemon", env=path) as home:
        callers = [Caller(home, number, ending) for number in range(CALLERS)]
        for each in callers:
            each.start()
        try:
            samples, largest = watch(bed, home)
        finally:
            ending.set()
            for each in callers:
                each.join(SETTLE_S + 60)
        spawned = sum(len(each.spawned) for each in callers)
        judge_runs(bed, callers)
        judge_memory(bed, samples, spawned)
        judge_disk(bed, home, largest)


def watch(bed: Bed, home: LiveHome) -> tuple[list[int], int]:
    """The memory at every second, and the largest that the database was."""
    samples, largest = [], 0
    while bed.left_s:
        time.sleep(SAMPLE_S)
        samples.append(resident_bytes(home.pid))
        largest = max(largest, database_bytes(home))
        if len(samples) % 60 == 0:
            runs = home.read("SELECT count(*) FROM run")[0][0]
            files = files_below(home.paths.state_dir)
            bed.say(
                f"{samples[-1] / MIB:.1f} MiB, {runs} runs, {files} files, "
                f"database {database_bytes(home) / MIB:.1f} MiB"
            )
    return samples, largest


def judge_runs(bed: Bed, callers: list[Caller]) -> None:
    spawned = sum(len(each.spawned) for each in callers)
    rate = spawned / (bed.findings.minutes * 60)
    for each in callers:
        bed.check(not each.errors, f"calls failed: {Counter(each.errors).most_common(3)}")
        lost = each.spawned - set(each.given)
        doubled = [run_id for run_id, n in each.given.items() if n > 1]
        bed.check(not lost, f"{len(lost)} results lost: {sorted(lost)[:3]}")
        bed.check(not doubled, f"{len(doubled)} results doubled: {doubled[:3]}")
    bed.saw("runs for a long time", spawned, f"{rate:.1f} a second, each result given once")


def judge_memory(bed: Bed, samples: list[int], spawned: int) -> None:
    warm = int(min(WARM_S, len(samples) * SAMPLE_S / 2))
    later = samples[warm:]
    level = median(later)
    swing = max(max(later) / level - 1, 1 - min(later) / level)
    said = (
        f"{samples[0] / MIB:.0f} MiB at first, {level / MIB:.1f} MiB after {warm / 60:.0f} minutes,"
        f" from then on within ±{swing * 100:.1f} %"
    )
    bed.saw("memory of the daemon", len(samples), said)
    if len(samples) >= JUDGED_S:
        bed.check(swing <= TOLERANCE, f"memory is not flat: {said} ({spawned:,} runs)")


def judge_disk(bed: Bed, home: LiveHome, largest: int) -> None:
    """Once all was pruned."""

    def is_pruned() -> bool:
        home.post("/v1/sweep")
        return home.read("SELECT count(*) FROM run") == [(0,)]

    try:
        until(is_pruned, what="all runs pruned", within_s=SETTLE_S + 60, pause_s=1.0)
    except AssertionError as error:
        bed.wrong(str(error))
    files, size = files_below(home.paths.state_dir), database_bytes(home)
    said = f"{files} files; the database {size / MIB:.1f} MiB, at most {largest / MIB:.1f} MiB"
    bed.saw("all of them pruned", 1, said)
    bed.check(files <= FILES_LEFT, f"files are left of runs that were pruned: {said}")
    bed.check(size <= max(SMALL, largest / 2), f"the database kept what was pruned: {said}")


def database_bytes(home: LiveHome) -> int:
    return home.paths.database.stat().st_size


def files_below(place: Path) -> int:
    # What goes while it is looked at does not count.
    return sum(len(files) for _, _, files in os.walk(place))


if __name__ == "__main__":
    main("soak", torture)
