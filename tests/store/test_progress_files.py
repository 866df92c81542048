"""The progress of each run in a file of its own: whole lines, whatever happened to the last one."""

import os
import stat
from pathlib import Path

import pytest

from subagents.domain.run.run import Progress, ProgressLevel
from subagents.domain.run.values import RunId
from subagents.store.progress_files import ProgressFiles

RUN = RunId("r-0123456789")


def update(number: int, phase: str = "reading") -> Progress:
    return Progress(
        phase=phase,
        percent_complete=12.5,
        updated_at_ms=1_700_000_000_000 + number,
        level=ProgressLevel.DETAIL,
        metrics={"files": 3, "rate": 0.5, "where": "src\n"},
        number=number,
    )


@pytest.mark.requirement("progress:log", "progress:jsonl-file")
def test_what_was_kept_is_read_back_in_order_one_line_each(tmp_path: Path) -> None:
    log = ProgressFiles(tmp_path / "progress")
    for number in (1, 2, 3):
        log.append(RUN, update(number))
    log.append(RunId("r-other"), update(1, "other"))

    assert log.read(RUN) == (update(1), update(2), update(3))
    file = tmp_path / "progress" / f"{RUN}.jsonl"
    assert len(file.read_text().splitlines()) == 3
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@pytest.mark.requirement("progress:torn-line")
@pytest.mark.parametrize("torn", [b'{"phase":"wri', b"\xff\xfe", b"[1]", b"{}", b'{"phase":3}\n'])
def test_a_torn_line_is_skipped_and_the_next_one_is_whole(tmp_path: Path, torn: bytes) -> None:
    log = ProgressFiles(tmp_path)
    log.append(RUN, update(1))
    with (tmp_path / f"{RUN}.jsonl").open("ab") as file:
        file.write(torn)
    assert log.read(RUN) == (update(1),)

    log.append(RUN, update(2))

    assert log.read(RUN) == (update(1), update(2))


@pytest.mark.requirement("progress:log")
def test_a_line_of_which_the_disk_takes_a_part_at_a_time_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
    log = ProgressFiles(tmp_path)
    log.append(RUN, update(1))

    assert log.read(RUN) == (update(1),)


@pytest.mark.requirement("progress:torn-line")
def test_an_update_whose_commit_was_lost_is_replaced_by_the_one_with_its_number(
    tmp_path: Path,
) -> None:
    log = ProgressFiles(tmp_path)
    for progress in (update(1), update(2, "lost"), update(2, "told again")):
        log.append(RUN, progress)

    assert log.read(RUN) == (update(1), update(2, "told again"))


@pytest.mark.requirement("progress:forgotten", "progress:cleaned-up")
def test_forgetting_deletes_the_file_and_may_be_repeated(tmp_path: Path) -> None:
    log = ProgressFiles(tmp_path / "never made")
    assert log.read(RUN) == ()
    log.forget(RUN)
    log.append(RUN, update(1))

    log.forget(RUN)
    log.forget(RUN)

    assert log.read(RUN) == ()
    assert list((tmp_path / "never made").iterdir()) == []
