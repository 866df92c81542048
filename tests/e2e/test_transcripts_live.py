"""What workers print: recorded once, whatever dies, at a bounded price in time and on the disk."""

import contextlib
import os
import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.live_home import LiveHome, live_home, until

from subagents.client.client import Client

MILLION = 1_000_000
CALLS_MIN = 20
"""Answered meanwhile, one after the other: a daemon that did nothing else would answer one."""
MEGABYTE = 1_000_000
TRANSCRIPT_MB = 32
"""The default of ``max_transcript_mb``."""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[LiveHome]:
    with live_home(tmp_path) as found:
        yield found


def log(home: LiveHome, run_id: str, **query: str | int) -> dict[str, Any]:
    return home.get(f"/v1/runs/{run_id}/log", **query)


def texts(home: LiveHome, run_id: str, kind: str) -> list[str]:
    """All lines of one type, page by page."""
    found: list[str] = []
    while True:
        page = log(home, run_id, offset=len(found), limit=10_000, type=kind)
        found += [line["text"] for line in page["lines"]]
        if len(found) >= page["totalLines"]:
            return found


@contextlib.contextmanager
def control_calls(home: LiveHome, run_id: str) -> Iterator[list[float]]:
    """Ask for the status of a run all the time; how long each answer took, in seconds."""
    took: list[float] = []
    is_over = threading.Event()

    def ask() -> None:
        with Client(home.paths.socket, reader=home.reader) as client:
            while not is_over.wait(0.005):
                began = time.perf_counter()
                client.get(f"/v1/runs/{run_id}/status")
                took.append(time.perf_counter() - began)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield took
    finally:
        is_over.set()
        asking.join()


@pytest.mark.requirement("e2e:transcript:million-lines")
def test_a_million_lines_are_recorded_while_control_calls_are_answered(
    home: LiveHome, record_property: Callable[[str, object], None]
) -> None:
    idle = home.spawn("sleep 600")
    home.until_phase(idle, "running")
    with control_calls(home, idle) as took:
        began = time.perf_counter()
        run_id = home.spawn(f"seq {MILLION}")
        home.finish(run_id, timeout_s=300)
        total_s = time.perf_counter() - began
    # How quickly says as much of the other tests here: `bench --only h` has it, when quiet.
    record_property("median_ms", statistics.median(took) * 1000)
    record_property("total_s", total_s)

    assert len(took) >= CALLS_MIN
    assert log(home, run_id, limit=1)["totalLines"] >= MILLION
    kept = home.paths.transcripts_dir / run_id
    assert sum(file.stat().st_size for file in kept.iterdir()) <= TRANSCRIPT_MB * MEGABYTE
    for at in ({"offset": 0}, {}):  # the oldest that are left, and the newest
        page = log(home, run_id, limit=10_000, type="text", **at)
        end = MILLION - (page["totalLines"] - page["offset"] - 10_000)
        assert [line["text"] for line in page["lines"]] == [
            str(number) for number in range(end - 9_999, end + 1)
        ]


TALKER = """\
import os, sys, time
for number in range(6_000):
    if number % 1_500 == 0:
        while not os.path.exists(f"part{number // 1_500}"):
            time.sleep(0.01)
    print(f"out {number}")
    if number % 10 == 0:
        print(f"error {number}", file=sys.stderr)
    if number % 100 == 99:
        sys.stdout.flush()
        time.sleep(0.01)
"""


@pytest.mark.requirement("e2e:transcript:once-over-kills")
def test_every_line_of_both_streams_is_recorded_once_over_many_kills(home: LiveHome) -> None:
    (home.work / "talker.py").write_text(TALKER)
    run_id = home.spawn("exec python3 talker.py")
    rng = random.Random(4)  # noqa: S311 - repeatable

    def has_lines(count: int) -> bool:
        return bool(log(home, run_id, limit=1)["totalLines"] >= count)

    for part in range(4):
        (home.work / f"part{part}").touch()
        killed_at = 1_650 * part + rng.randrange(1_200)
        until(lambda at=killed_at: has_lines(at), what="the middle of a part")  # type: ignore[misc]  # bound
        home.restart_after_kill()
    home.finish(run_id)

    assert texts(home, run_id, "text") == [f"out {number}" for number in range(6_000)]
    assert texts(home, run_id, "error") == [f"error {number}" for number in range(0, 6_000, 10)]


RESULT_BYTES = 64 * 1024 * 1024
"""What may be its result is kept until it ends (``retention.max_result_mb``)."""
FLOOD = """\
import os, time
line = b"w" * 999 + b"\\n"
for part in range(200):
    os.write(1, line * 1000)
    while os.fstat(1).st_blocks * 512 > 110_000_000:  # a busy machine reads later: it is waited for
        time.sleep(0.02)
os.write(1, b"the end of it\\n")
while not os.path.exists("go"):
    time.sleep(0.02)
"""


def allocated(path: Path) -> int:
    return path.stat().st_blocks * 512


def can_punch(directory: Path) -> bool:
    """Whether holes can be made here, found out without our own code."""
    probe = directory / "probe"
    probe.write_bytes(b"x" * MEGABYTE)
    command = f"fallocate --punch-hole --offset 0 --length 524288 {probe} 2>/dev/null"
    return os.system(command) == 0 and allocated(probe) < MEGABYTE  # noqa: S605 - a fixed line


@pytest.mark.requirement("e2e:transcript:disk-is-bounded")
def test_two_hundred_megabytes_of_output_hold_little_disk_while_it_runs_and_none_after(
    home: LiveHome,
) -> None:
    if not can_punch(home.work):
        pytest.skip("no holes can be punched here")
    (home.work / "flood.py").write_text(FLOOD)
    run_id = home.spawn("exec python3 flood.py")
    out = home.attempt_file(run_id, "out")
    most = 0

    def is_let_go() -> bool:
        nonlocal most
        size = out.stat().st_size if out.exists() else 0
        held = allocated(out) if out.exists() else 0
        most = max(most, held)
        return size > 200 * MEGABYTE and held < RESULT_BYTES + 10 * MEGABYTE

    until(is_let_go, what="all written and let go", within_s=120, pause_s=0.05)
    assert home.row(run_id)["phase"] == "running"
    assert most < 120 * MEGABYTE  # and more than 110 MB is never written ahead
    (home.work / "go").touch()
    [item] = home.finish(run_id)

    assert item["result"].endswith("w\nthe end of it")
    until(lambda: not out.exists(), what="the file is deleted")
    assert {"out", "err"}.isdisjoint(file.name for file in out.parent.iterdir())
    assert log(home, run_id, limit=1, type="text")["lines"][0]["text"] == "the end of it"


@pytest.mark.requirement("e2e:transcript:disk-is-bounded")
def test_output_that_a_dead_daemon_did_not_let_go_goes_with_the_next_one(home: LiveHome) -> None:
    run_id = home.spawn("seq 1000; while ! [ -e go ]; do sleep 0.02; done")
    out = home.attempt_file(run_id, "out")
    until(lambda: out.exists() and out.stat().st_size, what="its output")
    home.kill()
    (home.work / "go").touch()
    until(home.attempt_file(run_id, "exit").exists, what="its end")
    assert out.exists()
    home.start()
    [item] = home.finish(run_id)

    assert item["result"].endswith("999\n1000")
    until(lambda: not out.exists(), what="the file is deleted")
    assert texts(home, run_id, "text") == [str(number) for number in range(1, 1001)]
