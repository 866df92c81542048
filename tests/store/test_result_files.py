"""A long result is a whole file or none, and goes with what replaces it or with its run."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from subagents.domain.run.values import RunId
from subagents.store.result_files import ResultFiles

RUN = RunId("r-0123456789")


def torn() -> Iterator[bytes]:
    yield b"half"
    raise OSError("the disk is full")


@pytest.mark.requirement("results:file")
def test_a_result_is_read_back_from_any_byte_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    files = ResultFiles(tmp_path / "results")

    assert files.keep(RUN, "1-a", [b"one ", b"two ", b"three"], beside=()) == 13

    assert files.read(RUN, "1-a", 4, 3) == b"two"
    assert files.read(RUN, "1-a", 13, 3) == b""
    folder = tmp_path / "results" / RUN
    assert stat.S_IMODE((folder / "1-a").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.requirement("results:file")
def test_what_could_not_be_written_whole_leaves_the_one_before(tmp_path: Path) -> None:
    files = ResultFiles(tmp_path)
    files.keep(RUN, "1-a", [b"before"], beside=())

    with pytest.raises(OSError, match="disk is full"):
        files.keep(RUN, "1-a", torn(), beside=())

    assert files.read(RUN, "1-a", 0, 99) == b"before"
    assert [each.name for each in (tmp_path / RUN).iterdir()] == ["1-a"]


@pytest.mark.requirement("results:file")
def test_files_that_no_run_names_go_with_the_next_result_and_all_with_the_run(
    tmp_path: Path,
) -> None:
    files = ResultFiles(tmp_path)
    for name in ("1-orphan", "1-named"):
        files.keep(RUN, name, [b"x"], beside=("1-orphan",))

    files.keep(RUN, "1-new", [b"y"], beside=("1-named",))
    assert sorted(each.name for each in (tmp_path / RUN).iterdir()) == ["1-named", "1-new"]

    files.forget(RUN)
    files.forget(RUN)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        files.read(RUN, "1-new", 0, 1)
