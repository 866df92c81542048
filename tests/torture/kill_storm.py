"""Kill -9 of everything, again and again, under a service that every real client uses.

    python -m tests.torture.kill_storm --minutes 5 --seed 7

Twelve callers, each a process of its own and by another way in (``callers``), spawn workers of four
kinds and take their results. Meanwhile the daemon, callers, the programs they call, workers, their
shims and couriers are killed at random instants. At the end everybody is left in peace, and what
the callers and workers wrote down themselves is judged (``verdict``); then the database is folded.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.e2e.acp_setups import ACP
from tests.e2e.bridge_client import environment
from tests.e2e.live_home import LiveHome, audit, live_home, until
from tests.e2e.program_setups import LLM
from tests.e2e.scripted_model import Conversation, Say, ScriptedModel, Turn, Use
from tests.free_ports import free_port
from tests.live_processes import is_running
from tests.torture.bed import ROOT, Bed, main
from tests.torture.callers import DOORS, FINISH_S
from tests.torture.verdict import Kill, judge

from subagents.client.daemon_start import holder
from subagents.domain.run.run import OVER, Phase
from subagents.domain.run.values import RunId
from subagents.runtimes.process.processes import Process, scan

CAP: Final = 4
PAUSE_S: Final = 0.7
"""Between two kills, on average."""
VICTIMS: Final = ("daemon", "caller", "client", "worker", "shim", "courier")
WEIGHTS: Final = (34, 26, 26, 8, 3, 3)
CHOOSY: Final = 0.7
"""Share of killed callers that have something in hand, when there are such."""
AT_A_RECEIPT: Final = 0.5
"""Share of killed daemons that have just acknowledged something."""
RECEIPT_S: Final = 1.0
OURS_TO_START: Final = 0.5
"""Share of killed daemons that are started again by the storm; callers bring back the others."""
SETTLE_S: Final = 90.0
HERE: Final = Path(__file__).parent

CONFIG: Final = """
[agents.defaults.subagents]
max_children_per_agent = 1000
max_concurrent = {cap}

[daemon]
http_port = {port}

[agents.told]
subagents.allow_agents = ["*"]
courier.command = ["{python}", "-S", "{program}", "{diary}"]

[agents.posted]
subagents.allow_agents = ["*"]
courier.webhook = "http://127.0.0.1:{webhook_port}/"

"""


def use_shell(conversation: Conversation) -> Turn:
    """The line that the task quotes."""
    line = conversation.seen.split("script:work `")[-1].partition("`")[0]
    return Use("shell", {"command": line})


def say_result(conversation: Conversation) -> Turn:
    """What a plain command would have printed."""
    token = conversation.seen.split("worker.sh ")[-1].split()[0]
    return Say(f"result of {token} ends")


class Storm:
    """The processes of one storm, and the list of those that were killed."""

    def __init__(self, bed: Bed, home: LiveHome, place: Path) -> None:
        self.bed = bed
        self.home = home
        self.place = place
        self.kills: list[Kill] = []
        self._callers: dict[str, subprocess.Popen[bytes]] = {}
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._down_since: float | None = None

    # -- callers ------------------------------------------------------------------------------

    def start_callers(self) -> None:
        for door in DOORS:
            process = self._callers.get(door)
            if process is None or process.poll() is not None:
                self._callers[door] = self._start(door)

    def _start(self, door: str) -> "subprocess.Popen[bytes]":
        seed = f"{self.bed.findings.seed}/{self.bed.chance.random()}"
        with (self.place / f"{door}.stderr").open("ab") as stderr:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.torture.callers", door, str(self.place), seed],
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                env={**environment(self.home), "PYTHONPATH": str(ROOT)},
            )

    def finish_callers(self) -> None:
        """Let each take what it was promised, and end."""
        (self.place / "finish").touch()
        self.start_callers()
        due = time.monotonic() + FINISH_S + SETTLE_S
        for door, process in self._callers.items():
            try:
                status = process.wait(max(1.0, due - time.monotonic()))
            except subprocess.TimeoutExpired:
                status = None
            if status == 1:
                self.bed.wrong(f"{door}: waited {FINISH_S:.0f} s in vain for what it was promised")
            elif status != 0:
                said = (self.place / f"{door}.stderr").read_text(errors="replace")[-1000:]
                self.bed.wrong(f"{door}: its caller ended with {status}: {said}")

    def end_callers(self) -> None:
        for process in self._callers.values():
            if process.poll() is None:
                process.kill()
            process.wait(SETTLE_S)
        for daemon in self._daemons:
            daemon.kill()
            daemon.wait(SETTLE_S)

    def launch(self) -> None:
        """A daemon, as a service manager would start it; one that finds another gives way."""
        self._daemons = [each for each in self._daemons if each.poll() is None]
        self._daemons.append(self.home.launch())

    # -- kills --------------------------------------------------------------------------------

    def strike(self) -> None:
        """Kill something that is there."""
        kind = self.bed.chance.choices(VICTIMS, WEIGHTS)[0]
        if kind == "daemon":
            self._strike_daemon()
        else:
            found = [*self._targets(kind)]
            if found:
                pid, victim = self.bed.chance.choice(found)
                self._kill(pid, kind, victim)
        self._bring_back()
        self.start_callers()

    def _strike_daemon(self) -> None:
        if self.bed.chance.random() < AT_A_RECEIPT:
            self._until_receipt()
        pid = self._serving()
        if pid is not None:
            self._kill(pid, "daemon", "daemon")
            until(lambda: not is_running(pid), what=f"the end of {pid}")
        if self.bed.chance.random() < OURS_TO_START:
            self.launch()

    def _until_receipt(self) -> None:
        """Return when some caller has just noted something, if one does soon: what it was promised
        must be on disk by then.
        """
        notes = [self.place / "diaries" / door / "spawns" for door in DOORS]
        before = _sizes(notes)
        due = time.monotonic() + RECEIPT_S
        while time.monotonic() < due and _sizes(notes) == before:
            time.sleep(0.001)

    def _bring_back(self) -> None:
        """A daemon that no caller brings back within seconds is ours to start."""
        if self._serving() is not None:
            self._down_since = None
        elif self._down_since is None:
            self._down_since = time.monotonic()
        elif time.monotonic() - self._down_since > 5:
            self.launch()
            self._down_since = time.monotonic()

    def _serving(self) -> int | None:
        """The daemon that holds the home's lock, whoever started it."""
        found = holder(self.home.paths)
        return None if found is None else found.pid

    def _targets(self, kind: str) -> Iterator[tuple[int, str]]:
        if kind == "caller":
            holding = [door for door in self._callers if self._holds(door)]
            is_choosy = holding and self.bed.chance.random() < CHOOSY
            for door in holding if is_choosy else self._callers:
                yield self._callers[door].pid, door
        elif kind == "client":
            doors = {process.pid: door for door, process in self._callers.items()}
            for each in scan():
                if each.parent in doors:
                    yield each.pid, doors[each.parent]
        elif kind == "courier":
            serving = self._serving()
            for each in scan():
                if each.parent == serving and "courier_program.py" in _line_of(each.pid):
                    yield each.pid, "program"
        else:
            ours = of_attempts(self.home)
            parents = {each.parent for each in ours}
            for each in ours:
                # A worker's own programs die with it or by themselves.
                is_shim = each.pid in parents and each.parent not in {e.pid for e in ours}
                if each.marker is not None and is_shim == (kind == "shim"):
                    yield each.pid, each.marker.attempt_id

    def _holds(self, door: str) -> bool:
        return (self.place / "diaries" / door / "holding").exists()

    def _kill(self, pid: int, kind: str, victim: str) -> None:
        at_ns = time.monotonic_ns()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.kills.append(Kill(at_ns, kind, victim))
        if kind == "caller":  # whoever asks next whether it is there is to know
            self._callers[victim].wait(SETTLE_S)


def _sizes(files: list[Path]) -> list[int]:
    return [file.stat().st_size if file.exists() else 0 for file in files]


def _line_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""


def prepare(place: Path) -> None:
    """The workers' script, their slots and the file all callers read."""
    (place / "slots").mkdir(parents=True)
    (place / "diaries" / "program").mkdir(parents=True)
    (place / "cap").write_text(str(CAP))
    (place / "worker.sh").write_text((HERE / "worker.sh").read_text())


def torture(bed: Bed) -> None:
    place = bed.root / "storm"
    prepare(place)
    port, webhook_port = free_port(), free_port()
    scripts = {"work": (use_shell, say_result)}
    with ScriptedModel(scripts) as model:
        config = CONFIG.format(
            cap=CAP,
            port=port,
            webhook_port=webhook_port,
            python=sys.executable,
            program=HERE / "courier_program.py",
            diary=place / "diaries" / "program",
        )
        config += "".join(each.config(model.url, bed.root) for each in (ACP, LLM))
        with live_home(bed.root, config=config, grace_s=1.0) as home:
            told = {
                "socket": str(home.paths.socket),
                "work": str(home.work),
                "worker": str(place / "worker.sh"),
                "port": port,
                "webhookPort": webhook_port,
                "token": str(home.paths.state_dir / "operator.token"),
            }
            (place / "callers.json").write_text(json.dumps(told))
            storm = Storm(bed, home, place)
            try:
                rage(bed, storm)
                calm(bed, storm)
            finally:
                storm.end_callers()


def rage(bed: Bed, storm: Storm) -> None:
    storm.start_callers()
    while bed.left_s:
        time.sleep(bed.chance.uniform(0, 2 * PAUSE_S))
        storm.strike()


def calm(bed: Bed, storm: Storm) -> None:
    """Let all settle, then judge."""
    counts = Counter(each.kind for each in storm.kills)
    bed.say(f"{len(storm.kills)} kills {dict(counts)}; everybody is left in peace")
    home = storm.home
    if not home.is_up():
        storm.launch()
    storm.finish_callers()
    # A courier that failed is tried again after minutes; whether it told is in the diary.
    rests = {*OVER, Phase.ANNOUNCE_DEFERRED}

    def open_runs() -> list[tuple[RunId, Phase]]:
        return [(each.id, each.phase) for each in home.stored().values() if each.phase not in rests]

    try:
        until(lambda: not open_runs(), what="the end of every run", within_s=SETTLE_S)
        until(lambda: not home.effects_left(), what="all effects", within_s=SETTLE_S)
        until(lambda: not of_attempts(home), what="the end of every worker", within_s=SETTLE_S)
    except AssertionError as error:
        left = open_runs()
        bed.wrong(f"stuck: {error}; open: {left}")
    found = judge(storm.place, storm.kills)
    for each in found.wrong:
        bed.wrong(each)
    try:
        audit(home)
    except AssertionError as error:
        bed.wrong(f"the database does not add up: {error}")
    for kind in VICTIMS:
        bed.saw(f"kill -9 of a {NAMES[kind]}", counts[kind], SEEN[kind])
    bed.saw(
        f"the same, over {len(DOORS)} ways in",
        len(storm.kills),
        f"{found.spawns:,} spawns acknowledged, {found.starts:,} attempts, {found.handed:,} results"
        f" handed over, {found.redelivered:,} of them again under the same id;"
        f" {len(found.wrong)} lost, doubled or wrong",
    )


NAMES: Final = {
    "daemon": "daemon",
    "caller": "caller",
    "client": "client's own program (`run`, `wait`, `inbox`, `mcp`, `hook`)",
    "worker": "worker",
    "shim": "worker's shim",
    "courier": "courier's program",
}
SEEN: Final = {
    "daemon": "started again by the next call or by hand; workers went on",
    "caller": "what it had not taken went to its next life",
    "client": "what it had not handed on stayed unread",
    "worker": "its attempt ended as failed or lost; its requester was told",
    "shim": "its worker was followed to its end; its requester was told",
    "courier": "run again, with the same id",
}


def of_attempts(home: LiveHome) -> list[Process]:
    """Live processes of this home's attempts, and of no other's."""
    root = str(home.paths.attempts_dir)
    return [each for each in scan() if each.marker is not None and each.marker.root == root]


if __name__ == "__main__":
    main("kill_storm", torture)
