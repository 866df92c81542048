"""Too much of everything: connections, output, spawns, and readers that do not read.

    python -m tests.torture.floods --minutes 5 --seed 7

One flood after the other hits one daemon for as long as there is time, each at least once. An
honest caller is there all the while, and the daemon's memory is looked at.
"""

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tests.e2e.live_home import Document, LiveHome, live_home
from tests.free_ports import free_port
from tests.torture.bed import MIB, Bed, main, resident_bytes

from subagents.client.client import Client
from subagents.errors import SubagentsError

HALF_SENT: Final = 1_000
PEERS: Final = 8
"""Addresses of this machine that they come from: one alone is cut off sooner."""
HALF: Final = b"GET /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: " + b"a" * 20_000
HELD_S: Final = 12.0
"""Longer than a head may take."""
NOISY: Final = 2
NOISY_MIB: Final = 250
NOISY_MIB_IN_HASTE: Final = 50
HASTE_MINUTES: Final = 3.0
"""In less time than this not so much is printed."""
WAVES: Final = 2
WAVE_GROWTH_MAX: Final = 16 * MIB
SPAWNS: Final = 2_000
OF_REAL_WORKERS: Final = 100
SPAWNERS: Final = 20
SLOW: Final = 30
SLOW_BYTES: Final = 500
ANSWER_S: Final = 20.0
"""For one call of the honest caller, on a machine that does all this with two processors."""
GROWTH_MAX: Final = 120 * MIB
DISK_MAX: Final = NOISY * (64 + 128) * MIB
"""Output that is not read yet: a worker that is 64 MiB ahead is stopped, once that is seen."""
SETTLE_S: Final = 240.0
CONFIG: Final = """
[agents.defaults.subagents]
max_children_per_agent = 100000
max_concurrent = 8

[daemon]
http_port = {port}

"""


class Watch(threading.Thread):
    """The honest caller, who also looks at the memory and the disk."""

    def __init__(self, home: LiveHome) -> None:
        super().__init__(daemon=True)
        self._home = home
        self._ending = threading.Event()
        self.first = resident_bytes(home.pid)
        self.most = self.first
        self.disk = 0
        self.slowest_s = 0.0
        self.errors: Counter[str] = Counter()

    def run(self) -> None:
        while not self._ending.wait(0.2):
            began = time.monotonic()
            try:
                with Client(self._home.paths.socket, timeout_s=ANSWER_S) as client:
                    client.get("/v1/runs", {"limit": 1})
            except SubagentsError as error:
                self.errors[error.message] += 1
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)
            self.most = max(self.most, resident_bytes(self._home.pid))
            self.disk = max(self.disk, self._attempts_bytes())

    def _attempts_bytes(self) -> int:
        total = 0
        for each in self._home.paths.attempts_dir.rglob("*"):
            with contextlib.suppress(OSError):
                # What takes room, not how long it is: read output is punched out of its file.
                total += each.stat().st_blocks * 512
        return total

    def end(self) -> None:
        self._ending.set()
        self.join(SETTLE_S)


@contextlib.contextmanager
def watched(bed: Bed, home: LiveHome, flood: str) -> Iterator[Watch]:
    watch = Watch(home)
    watch.start()
    try:
        yield watch
    finally:
        watch.end()
    grown = watch.most - watch.first
    bed.check(not watch.errors, f"{flood}: an honest call failed: {dict(watch.errors)}")
    bed.check(watch.slowest_s < ANSWER_S, f"{flood}: an answer took {watch.slowest_s:.1f} s")
    bed.check(grown < GROWTH_MAX, f"{flood}: memory grew by {grown / MIB:.0f} MiB")


def half_sent(bed: Bed, home: LiveHome, port: int) -> str:
    """Connections that begin a request and never end it."""
    with watched(bed, home, "half-sent requests") as watch:
        levels = [wave(watch, port) for _ in range(WAVES)]
        grown = levels[-1] - levels[0]
        bed.check(grown < WAVE_GROWTH_MAX, f"a wave more took {grown / MIB:.0f} MiB more")
        with contextlib.closing(socket.create_connection(("127.0.0.1", port), 10)) as line:
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
            answer = line.recv(4096)
        bed.check(b" 200 " in answer, f"after half-sent requests: {answer[:100]!r}")
    return f"answered others within {watch.slowest_s:.1f} s, memory {_grown(watch)}"


def wave(watch: Watch, port: int) -> int:
    """A thousand of them, held until each had its time; returns the most memory seen so far."""
    with contextlib.ExitStack() as held:
        for number in range(HALF_SENT):
            line = held.enter_context(socket.socket())
            line.settimeout(5)
            with contextlib.suppress(OSError):  # refused, or cut off: that is the point
                line.bind((f"127.0.0.{1 + number % PEERS}", 0))
                line.connect(("127.0.0.1", port))
                line.sendall(HALF)
        began = time.monotonic()
        while time.monotonic() - began < HELD_S:
            time.sleep(0.2)
    return watch.most


def noisy_workers(bed: Bed, home: LiveHome, _port: int) -> str:
    """Workers that print without end."""
    is_hasty = bed.findings.minutes < HASTE_MINUTES
    mebibytes = NOISY_MIB_IN_HASTE if is_hasty else NOISY_MIB
    with watched(bed, home, "noisy workers") as watch:
        task = f"yes 'a line of output' | head -c {mebibytes * MIB}; echo; echo the end"
        run_ids = [home.spawn(task) for _ in range(NOISY)]
        items = _finish(home, run_ids)
        for run_id in run_ids:
            text = str(items.get(run_id, {}).get("result"))
            bed.check(text.endswith("the end"), f"noisy workers: {run_id} gave {text[-60:]!r}")
        bed.check(watch.disk < DISK_MAX, f"noisy workers took {watch.disk / MIB:.0f} MiB of disk")
    return (
        f"{mebibytes} MiB of each, on disk at most {watch.disk / MIB:.0f} MiB in all,"
        f" memory {_grown(watch)}; others answered within {watch.slowest_s:.1f} s"
    )


def many_spawns(bed: Bed, home: LiveHome, _port: int) -> str:
    """Thousands of spawns at once."""
    with watched(bed, home, "spawns at once") as watch:
        began = time.monotonic()
        with ThreadPoolExecutor(SPAWNERS) as pool:
            spawning = [
                pool.submit(
                    home.spawn, "echo a result", agent="sh" if n < OF_REAL_WORKERS else "quick"
                )
                for n in range(SPAWNS)
            ]
            run_ids = [each.result(SETTLE_S) for each in spawning]
        accepted_s = time.monotonic() - began
        items = _finish(home, run_ids)
        bed.check(len(set(run_ids)) == SPAWNS, "spawns at once: two of them became one run")
        bed.check(
            len(items) == SPAWNS, f"spawns at once: {SPAWNS - len(items)} results are missing"
        )
    return (
        f"accepted in {accepted_s:.1f} s, each result given once, memory {_grown(watch)};"
        f" others answered within {watch.slowest_s:.1f} s"
    )


def slow_readers(bed: Bed, home: LiveHome, _port: int) -> str:
    """Callers that ask for much and read little."""
    with watched(bed, home, "slow readers") as watch, contextlib.ExitStack() as held:
        lines = []
        for _ in range(SLOW):
            line = held.enter_context(socket.socket(socket.AF_UNIX))
            line.settimeout(5)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.connect(str(home.paths.socket))
            line.sendall(b"GET /v1/runs?limit=500 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            lines.append(line)
        began = time.monotonic()
        while time.monotonic() - began < HELD_S / 2:
            for line in lines:
                line.recv(SLOW_BYTES)
            time.sleep(0.1)
        run_id = home.spawn("echo a result")
        bed.check(run_id in _finish(home, [run_id]), "slow readers: a run beside them got stuck")
    return f"answered others within {watch.slowest_s:.1f} s, memory {_grown(watch)}"


def _grown(watch: Watch) -> str:
    return f"{watch.first / MIB:.0f} → at most {watch.most / MIB:.0f} MiB"


def _finish(home: LiveHome, run_ids: list[str]) -> dict[str, Document]:
    """The items of all that ended in time, each handed over by a message of its own."""
    wanted, found = set(run_ids), dict[str, Document]()
    due = time.monotonic() + SETTLE_S
    with Client(home.paths.socket, reader="floods") as client:
        while wanted - set(found) and time.monotonic() < due:
            body = {"runIds": sorted(wanted - set(found))[:500], "timeoutSeconds": 5}
            answered: Document = client.post("/v1/wait", body, timeout_s=ANSWER_S)
            offered = set(answered["messages"])
            found |= {e["runId"]: e for e in answered["completed"] if e["messageId"] in offered}
            client.post("/v1/inbox/ack", {"messageIds": [*offered]})
    return found


FLOODS: Final[tuple[tuple[str, int, Callable[[Bed, LiveHome, int], str]], ...]] = (
    ("half-sent requests over TCP", WAVES * HALF_SENT, half_sent),
    ("workers that print without end", NOISY, noisy_workers),
    ("spawns at once", SPAWNS, many_spawns),
    ("readers that hardly read", SLOW, slow_readers),
)


def torture(bed: Bed) -> None:
    port = free_port()
    times: Counter[str] = Counter()
    said: dict[str, str] = {}
    with live_home(bed.root, config=CONFIG.format(port=port)) as home:
        while (bed.left_s or len(said) < len(FLOODS)) and not bed.findings.wrong:
            for name, count, flood in FLOODS:
                if bed.left_s or name not in said:
                    said[name] = flood(bed, home, port)
                    times[name] += count
                    bed.say(f"{name}: {said[name]}")
    for name, seen in said.items():
        bed.saw(name, times[name], seen)


if __name__ == "__main__":
    main("floods", torture)
