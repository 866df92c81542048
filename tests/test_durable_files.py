"""Files of the daemon are replaced whole, and for its owner alone."""

import os
import stat
from pathlib import Path

import pytest

from subagents.durable_files import replace_file, write_all


@pytest.mark.requirement("state:durable-files")
def test_a_new_file_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        replace_file(tmp_path / "a.json", b"{}")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.requirement("state:durable-files")
def test_a_file_that_cannot_be_synced_keeps_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.json"
    replace_file(file, b"old")

    def fails(_file: int) -> None:
        raise OSError(5, "input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="input/output"):
        replace_file(file, b"new")

    assert file.read_bytes() == b"old"


@pytest.mark.requirement("state:durable-files")
def test_what_one_write_leaves_over_is_written_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:2]))
    with (tmp_path / "log").open("wb") as file:
        write_all(file.fileno(), b"abcde")

    assert (tmp_path / "log").read_bytes() == b"abcde"
