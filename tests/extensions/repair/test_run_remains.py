"""What directories and records tell of a run, as far as they do."""

from pathlib import Path

import msgspec
import pytest

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.values import RunId, SessionKey
from subagents.extensions.repair.run_remains import (
    AttemptRecord,
    Remains,
    records_in,
    remains_of,
    runs_with_files,
)

RUN = RunId("r-1")
ME = SessionKey("agent:main:main")


def record(number: int) -> AttemptRecord:
    return AttemptRecord(
        run_id=RUN,
        attempt=number,
        agent_id="builder",
        spawner_session_key=ME,
        outcome="success",
        reason=None,
    )


def found(directory: Path) -> Remains:
    return remains_of(
        RUN,
        attempts=directory / "attempts",
        transcripts=directory / "transcripts",
        record=records_in(directory).get(RUN),
    )


@pytest.mark.requirement("store:remains")
def test_the_runs_are_those_with_an_entry_in_any_directory(tmp_path: Path) -> None:
    (tmp_path / "a" / "r-1").mkdir(parents=True)
    (tmp_path / "b" / "r-2").mkdir(parents=True)
    (tmp_path / "b" / "r-1.jsonl").touch()

    assert runs_with_files([tmp_path / "a", tmp_path / "b", tmp_path / "none"]) == ["r-1", "r-2"]


@pytest.mark.requirement("store:remains")
def test_the_task_is_in_the_transcript_or_the_attempt_and_the_exit_is_the_newest(
    tmp_path: Path,
) -> None:
    for number in (1, 2):
        (tmp_path / "attempts" / RUN / str(number)).mkdir(parents=True)
        (tmp_path / "attempts" / RUN / str(number) / "task").write_text("from the attempt")
    (tmp_path / "attempts" / RUN / "2" / "exit").write_text("signal 9 alone\n")
    assert found(tmp_path)[:4] == ("from the attempt", None, None, "signal 9 alone")

    (tmp_path / "transcripts" / RUN).mkdir(parents=True)
    line = msgspec.json.encode((1, 17, "user", 1, f"task from {ME}: do\nit"))
    (tmp_path / "transcripts" / RUN / "0000000001.jsonl").write_bytes(line + b"\nx\n")
    assert found(tmp_path)[:4] == ("do\nit", ME, 17, "signal 9 alone")


@pytest.mark.requirement("store:remains")
def test_the_record_is_of_the_newest_attempt_on_any_day(tmp_path: Path) -> None:
    for day, number in ((2, 1), (4, 2)):
        line = msgspec.json.encode({**msgspec.to_builtins(record(number)), "endedAt": day})
        file = tmp_path / f"agent-performance-1970-01-0{day}.jsonl"
        file.write_bytes(b"no record\n" + line + b'\n{"runId": "r-1", "att')

    remains = found(tmp_path)

    assert remains.record == record(2)
    assert remains.words() == "; attempt 2 came to success"


@pytest.mark.requirement("store:remains")
def test_a_run_can_be_made_of_whatever_is_known(tmp_path: Path) -> None:
    for remains in (Remains(), Remains(task="x" * 9_000, record=record(1))):
        run = reduce(None, remains.spawned(RUN, requester=None, now_ms=5)).run

        assert run.requester == ME
        assert run.id == RUN
    assert run.resolved.agent_id == "builder"
    assert found(tmp_path).words() == "; its newest attempt ended with nobody knows what"
