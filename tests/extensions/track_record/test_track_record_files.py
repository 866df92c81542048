"""Performance records in files: one line per attempt, whole lines, a file per UTC day."""

import os
import stat
import threading
from pathlib import Path

import pytest

from subagents.domain.agents.agent_stats import Tokens
from subagents.domain.run.values import RunId, SessionKey, replace
from subagents.extensions.track_record import track_record_files as performance
from subagents.extensions.track_record.track_record import (
    DAY_MS,
    AttemptRecord,
    Result,
)
from subagents.extensions.track_record.track_record_files import MARK, PerformanceFiles

DAY = 20_000
"""2024-10-04."""
FILE = "agent-performance-2024-10-04.jsonl"


def a_record(run: str = "r-1", attempt: int = 1, *, at_ms: int = DAY * DAY_MS) -> AttemptRecord:
    return AttemptRecord(
        run_id=RunId(run),
        attempt=attempt,
        agent_id="a",
        task_type=None,
        tags=("☃",),
        model=None,
        spawner_session_key=SessionKey("agent:main:main"),
        started_at=at_ms,
        ended_at=at_ms,
        runtime_ms=0,
        outcome=Result.SUCCESS,
        reason=None,
        verification_passed=None,
        completion_report=None,
        tokens=Tokens(input=None, output=None),
        cost_usd=None,
        retry_of=None,
        escalated_from=None,
    )


def read(log: PerformanceFiles, day: int = DAY) -> list[AttemptRecord]:
    found: list[AttemptRecord] = []
    offset = 0
    while True:
        records, end = log.read(day, offset=offset)
        if end == offset:
            return found
        found += records
        offset = end


@pytest.mark.requirement("performance:rotation")
def test_each_utc_day_has_a_file_of_its_own_for_its_owner_only(tmp_path: Path) -> None:
    log = PerformanceFiles(tmp_path / "state")
    last, first = (
        a_record("r-1", at_ms=(DAY + 1) * DAY_MS - 1),
        a_record("r-2", at_ms=(DAY + 1) * DAY_MS),
    )
    log.append([last, first])

    names = {file.name for file in (tmp_path / "state").iterdir()}
    assert names == {FILE, "agent-performance-2024-10-05.jsonl"}
    assert (read(log), read(log, DAY + 1)) == ([last], [first])
    file = tmp_path / "state" / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert log.sizes() == {DAY: file.stat().st_size, DAY + 1: file.stat().st_size}
    assert read(log, DAY - 1) == []


@pytest.mark.requirement("performance:once")
def test_an_attempt_is_kept_once_whoever_brings_it_again(tmp_path: Path) -> None:
    one, two, three = a_record("r-1"), a_record("r-1", 2), a_record("r-2")
    PerformanceFiles(tmp_path).append([one, two, one])
    after_a_crash = PerformanceFiles(tmp_path)
    after_a_crash.append([two, replace(one, cost_usd=5.0), three])
    after_a_crash.append([three])

    assert read(after_a_crash) == [one, two, three]
    assert len((tmp_path / FILE).read_text().splitlines()) == 3


@pytest.mark.requirement("performance:once")
def test_days_are_remembered_as_long_as_they_are_few_and_read_again_later(tmp_path: Path) -> None:
    log = PerformanceFiles(tmp_path)
    records = [a_record(f"r-{n}", at_ms=(DAY + n) * DAY_MS) for n in range(10)]
    for _ in range(2):
        for record in records:
            log.append([record])

    assert [read(log, DAY + n) for n in range(10)] == [[record] for record in records]
    assert len(log._known) == performance.DAYS_KNOWN_MAX


@pytest.mark.requirement("performance:torn-line")
@pytest.mark.parametrize(
    "torn", [b"{", b'{"runId":"r-2","attempt":1,"agentId":"a"', b"\x00\xff", b"x" * 3_000_000]
)
def test_a_torn_last_line_is_mended_and_its_attempt_can_be_kept(
    torn: bytes, tmp_path: Path
) -> None:
    one, two = a_record("r-1"), a_record("r-2")
    PerformanceFiles(tmp_path).append([one])
    with (tmp_path / FILE).open("ab") as file:
        file.write(torn)
    assert read(PerformanceFiles(tmp_path)) == [one], "before anybody wrote"
    PerformanceFiles(tmp_path).append([two])

    assert read(PerformanceFiles(tmp_path)) == [one, two]
    assert all(
        line.startswith(b'{"runId"') for line in (tmp_path / FILE).read_bytes().splitlines()
    ) or (len(torn) > performance.READ_BYTES)


@pytest.mark.requirement("performance:torn-line")
def test_lines_that_are_not_ours_are_left_out_and_the_others_count(tmp_path: Path) -> None:
    one, two = a_record("r-1"), a_record("r-2")
    PerformanceFiles(tmp_path).append([one])
    with (tmp_path / FILE).open("ab") as file:
        file.write(b"\nhello\n[]\n" + b"y" * 300_000 + b"\n\xff\n")
    PerformanceFiles(tmp_path).append([two])

    assert read(PerformanceFiles(tmp_path)) == [one, two]


@pytest.mark.requirement("performance:once")
def test_after_a_write_that_failed_half_way_everything_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = PerformanceFiles(tmp_path)
    records = [a_record(f"r-{n}") for n in range(5)]
    whole = len(performance._encoder.encode(records[0])) + 1
    real = os.write
    calls = 0

    def full(file: int, content: memoryview) -> int:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(28, "No space left on device")
        return real(file, content[: 2 * whole + 7])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        log.append(records)
    monkeypatch.setattr(os, "write", real)
    assert read(log) == records[:2], "a reader sees whole lines"
    log.append(records)

    assert read(log) == records


@pytest.mark.requirement("performance:rotation")
def test_old_days_go_and_other_files_stay(tmp_path: Path) -> None:
    log = PerformanceFiles(tmp_path)
    log.append([a_record(f"r-{n}", at_ms=(DAY + n) * DAY_MS) for n in range(3)])
    others = ["agent-performance-notes.jsonl", "agent-performance-2024-13-99.jsonl", "subagents.db"]
    for name in others:
        (tmp_path / name).touch()
    log.forget(DAY + 2)
    log.forget(DAY + 2)

    assert sorted(log.sizes()) == [DAY + 2]
    assert all((tmp_path / name).exists() for name in others)
    PerformanceFiles(tmp_path / "never made").forget(DAY)


@pytest.mark.requirement("performance:once")
def test_two_threads_that_bring_the_same_attempts_write_each_once(tmp_path: Path) -> None:
    """A write that was abandoned may still be under way when the next one begins."""
    log = PerformanceFiles(tmp_path)
    records = [a_record(f"r-{n}") for n in range(200)]
    barrier = threading.Barrier(4)

    def bring() -> None:
        barrier.wait(90)
        for start in range(0, 200, 10):
            log.append(records[start : start + 10])

    threads = [threading.Thread(target=bring) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert [record.key for record in read(log)] == [record.key for record in records]


@pytest.mark.requirement("performance:mark")
def test_a_mark_is_there_as_long_as_what_it_speaks_for(tmp_path: Path) -> None:
    log = PerformanceFiles(tmp_path / "state")
    assert log.mark() is None
    log.keep_mark(3)
    assert log.mark() == 3
    log.append([a_record()])
    log.keep_mark(7)
    log.append([a_record("r-2")])
    assert PerformanceFiles(tmp_path / "state").mark() == 7
    whole = log.file(DAY).read_bytes()

    log.file(DAY).write_bytes(whole[:10])
    assert log.mark() is None
    log.file(DAY).unlink()
    assert log.mark() is None


@pytest.mark.requirement("performance:mark")
@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[1]", b'{"number": "x"}'])
def test_a_mark_that_cannot_be_read_is_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / MARK).write_bytes(content)

    assert PerformanceFiles(tmp_path).mark() is None


@pytest.mark.requirement("performance:mark")
def test_the_lines_are_on_the_disk_before_the_mark_that_speaks_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(opened: int) -> None:
        synced.append(Path(f"/proc/self/fd/{opened}").readlink().name)
        real(opened)

    monkeypatch.setattr(os, "fsync", fsync)
    PerformanceFiles(tmp_path).append([a_record()])
    assert synced == []
    log = PerformanceFiles(tmp_path)
    log.keep_mark(1)  # also what the process before has written
    mark = [f"{MARK}.new", tmp_path.name]
    assert synced == [FILE, *mark]

    synced.clear()
    log.keep_mark(2)
    log.append([a_record("r-2")])
    log.keep_mark(3)
    assert synced == [*mark, FILE, *mark]
