"""A disk that is filled in the middle of twenty runs, again and again.

    python -m tests.torture.full_disk --minutes 5 --seed 7

The state of the daemon is on a file system of its own. In each round twenty runs are at work when
it is filled: some end while it is full, some pass their deadline, some are cancelled, and sometimes
the daemon is killed. Half of the time every byte that is freed is taken at once. Then there is room
again. Nobody tells the daemon so.
"""

import contextlib
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Final

from tests.e2e.live_home import Document, LiveHome, audit, live_home, until
from tests.e2e.small_disk import CannotMount, fill, small_disk
from tests.torture.bed import Bed, Skipped, main

from subagents.client.client import Client
from subagents.errors import SubagentsError, Unavailable
from subagents.runtimes.process.processes import scan

DISK_MIB: Final = 96
RUNS: Final = 20
DEADLINE_S: Final = 3.0
GRACE_S: Final = 0.5
STOP_S: Final = 20.0
"""After a deadline or a cancel, until its processes are gone, on a full disk and a busy machine."""
RECOVER_S: Final = 30.0
SETTLE_S: Final = 90.0
CONFIG: Final = """
[agents.defaults.subagents]
max_children_per_agent = 1000
max_concurrent = 64

"""
JOURNAL: Final = 'echo "$SUBAGENTS_ATTEMPT" >> "$MARKS"'
TASKS: Final = {
    # Its last words are before: what a worker cannot write on a full disk is its own failure.
    "ends": f"{JOURNAL}; echo said; until [ -e {{go}} ]; do sleep 0.05; done; exit 0",
    "fails": f"{JOURNAL}; until [ -e {{go}} ]; do sleep 0.05; done; exit 5",
    "deadline": f"{JOURNAL}; exec sleep 600",
    "cancel": f"{JOURNAL}; exec sleep 600",
}
EXPECTED: Final = {"ends": "ok", "fails": "error", "deadline": "timeout", "cancel": "cancelled"}


class Filler(threading.Thread):
    """Takes every byte that becomes free, until told to stop."""

    def __init__(self, disk: Path) -> None:
        super().__init__(daemon=True)
        self._disk = disk
        self._ending = threading.Event()
        self.file = fill(disk)

    def run(self) -> None:
        while not self._ending.wait(0.01):
            fill(self._disk)

    def end(self) -> None:
        self._ending.set()
        if self.is_alive():
            self.join(SETTLE_S)
        self.file.unlink()


class Round:
    """Twenty runs and one full disk."""

    def __init__(self, bed: Bed, home: LiveHome, disk: Path, number: int) -> None:
        self._bed = bed
        self._home = home
        self._disk = disk
        self._number = number
        self._go = home.root / f"go-{number}"
        self.kinds: dict[str, str] = {}
        """Run → kind, of what was acknowledged."""
        self.is_taken = bed.chance.random() < 0.5
        self.is_killed = bed.chance.random() < 0.2

    def run(self) -> None:
        self._spawn()
        filler = Filler(self._disk)
        try:
            if self.is_taken:
                filler.start()
            self._while_full()
        finally:
            filler.end()
        self._recover()
        self._settle()

    def _spawn(self) -> None:
        for index in range(RUNS):
            kind = ("ends", "ends", "fails", "deadline", "cancel")[index % 5]
            spec: Document = {"runTimeoutSeconds": DEADLINE_S} if kind == "deadline" else {}
            task = TASKS[kind].replace("{go}", str(self._go))
            self.kinds[self._home.spawn(task, **spec)] = kind
        if self._bed.chance.random() < 0.7:
            # Else the disk is full while they are being started.
            until(lambda: self._started() == RUNS, what="all at work", within_s=SETTLE_S)

    def _started(self) -> int:
        ours = Counter(each.partition("#")[0] for each in self._home.marks_written())
        return sum(ours[run_id] for run_id in self.kinds)

    def _of(self, kind: str) -> list[str]:
        return [run_id for run_id, each in self.kinds.items() if each == kind]

    def _while_full(self) -> None:
        cancelled = [run_id for run_id in self._of("cancel") if self._cancel(run_id)]
        self._go.touch()
        if self.is_killed:
            self._home.kill()
            return
        began = time.monotonic()
        for run_ids, what in (
            (cancelled, "cancelled"),
            (self._of("deadline"), "past its deadline"),
        ):
            due = began + (DEADLINE_S if what == "past its deadline" else 0) + GRACE_S + STOP_S
            for run_id in run_ids:
                try:
                    until(
                        lambda run_id=run_id: not self._is_alive(run_id),  # type: ignore[misc]
                        what="its end",
                        within_s=max(0.1, due - time.monotonic()),
                    )
                except AssertionError:
                    self._bed.wrong(f"round {self._number}: {run_id}, {what}, lives on a full disk")

    def _is_alive(self, run_id: str) -> bool:
        """Whether its worker is at work: its shim may wait for room to note the end."""
        root = str(self._home.paths.attempts_dir)
        return any(
            each.marker is not None
            and each.marker.root == root
            and each.marker.attempt_id.startswith(f"{run_id}#")
            and _is_sleep(each.pid)
            for each in scan()
        )

    def _cancel(self, run_id: str) -> bool:
        """Whether the daemon said that it is cancelled."""
        with contextlib.suppress(SubagentsError):
            self._home.post(f"/v1/runs/{run_id}/cancel", {})
            return True
        return False

    def _recover(self) -> None:
        if self.is_killed:
            self._home.start()

        def accepts() -> bool:
            with contextlib.suppress(Unavailable):
                run_id = self._home.spawn("echo said", idempotencyKey=f"after {self._number}")
                self.kinds[run_id] = "ends"
                return True
            return False

        until(accepts, what="spawns accepted again", within_s=RECOVER_S, pause_s=0.1)
        for run_id in self._of("cancel"):
            self._cancel(run_id)  # what was refused while it was full

    def _settle(self) -> None:
        found = self._take_all()
        began = {each.partition("#")[0] for each in self._home.marks_written()}
        for run_id, kind in self.kinds.items():
            times, outcome = found.get(run_id, 0), self._home.row(run_id)["outcome"]
            status = None if outcome is None else outcome["status"]
            if times != 1:
                self._bed.wrong(f"round {self._number}: {run_id} ({kind}) was announced {times}x")
            # What could not even begin on the full disk is lost, and says so.
            never_began = status in {"lost", "error"} and run_id not in began
            if status != EXPECTED[kind] and not never_began:
                self._bed.wrong(f"round {self._number}: {run_id} ({kind}) ended {outcome}")

    def _take_all(self) -> Counter[str]:
        """How often each run was handed over: acknowledged, and never offered again."""
        found: Counter[str] = Counter()
        due = time.monotonic() + SETTLE_S
        reader = f"r{self._number}"
        with Client(self._home.paths.socket, reader=reader) as client:
            while len(found) < len(self.kinds) and time.monotonic() < due:
                with contextlib.suppress(Unavailable):
                    taken: Document = client.post(
                        "/v1/wait", {"runIds": [*self.kinds], "until": "any", "timeoutSeconds": 1}
                    )
                    client.post("/v1/inbox/ack", {"messageIds": taken["messages"]})
                    found.update(each.partition(":")[0] for each in taken["messages"])
                time.sleep(0.05)
        return found


def _is_sleep(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip() == "sleep"
    return False


def torture(bed: Bed) -> None:
    kinds: Counter[str] = Counter()
    try:
        with (
            small_disk(bed.root / "e2e" / "home", DISK_MIB) as disk,
            live_home(bed.root, config=CONFIG, grace_s=GRACE_S) as home,
        ):
            runs = rounds(bed, home, disk, kinds)
    except CannotMount as error:
        raise Skipped(str(error)) from error
    bed.saw(
        f"disk filled in the middle of {RUNS} runs",
        kinds["rounds"],
        f"all {runs:,} settled as they should and were announced once; deadlines and cancels held;"
        " spawns were accepted again by itself",
    )
    bed.saw("and every byte that became free taken", kinds["taken"], "the same")
    bed.saw(
        "and the daemon killed on the full disk", kinds["killed"], "the same, once there was room"
    )


def rounds(bed: Bed, home: LiveHome, disk: Path, kinds: Counter[str]) -> int:
    """As many as there is time for; returns how many runs there were."""
    runs = 0
    while (bed.left_s or not kinds) and not bed.findings.wrong:
        each = Round(bed, home, disk, kinds["rounds"])
        try:
            each.run()
        except AssertionError as error:
            bed.wrong(f"round {kinds['rounds']}: {error}")
        runs += len(each.kinds)
        kinds.update(["rounds", *["taken"] * each.is_taken, *["killed"] * each.is_killed])
    starts = Counter(home.marks_written())
    bed.check(max(starts.values(), default=0) <= 1, f"began twice: {starts.most_common(3)}")
    if not bed.findings.wrong:
        try:
            audit(home)
        except AssertionError as error:
            bed.wrong(f"the database does not add up: {error}")
    return runs


if __name__ == "__main__":
    main("full_disk", torture)
