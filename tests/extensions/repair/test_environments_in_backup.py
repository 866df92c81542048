"""The variables of workers in a backup."""

from pathlib import Path

import pytest

from subagents.extensions.repair.environments_in_backup import put_in, take_out


@pytest.mark.requirement("cli:db")
def test_what_goes_while_a_backup_is_made_is_left_out(tmp_path: Path) -> None:
    kept, again = tmp_path / "kept", tmp_path / "again"
    kept.mkdir()
    (kept / "r-1").write_bytes(b"A=1")
    (kept / "r-2").hardlink_to(kept / "r-1")
    (kept / "r-0").symlink_to("gone")

    put_in(tmp_path / "copy.db", kept)
    take_out(tmp_path / "copy.db", again)

    assert {each.name: each.read_bytes() for each in again.iterdir()} == {
        "r-1": b"A=1",
        "r-2": b"A=1",
    }
