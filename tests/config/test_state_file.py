"""What the user answered is remembered in small private files."""

import stat
from pathlib import Path

import pytest

from subagents.config.paths import Paths
from subagents.config.state_file import read_entries, write_entries
from subagents.errors import ConfigError


def file_in(tmp_path: Path) -> tuple[Paths, Path]:
    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path), "HOME": str(tmp_path)})
    return paths, paths.state_dir / "answers.json"


@pytest.mark.requirement("trust:list-damaged")
def test_entries_come_back_in_order_and_the_oldest_are_forgotten(tmp_path: Path) -> None:
    paths, file = file_in(tmp_path)
    assert read_entries(file, str, hint="") == {}

    write_entries(paths, file, {"a": "1", "b": "2", "c": "3"}, entries_max=2)

    assert list(read_entries(file, str, hint="").items()) == [("b", "2"), ("c", "3")]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.glob("answers.json.*")) == []


@pytest.mark.requirement("trust:list-damaged")
def test_a_damaged_file_is_named_with_what_removing_it_means(tmp_path: Path) -> None:
    paths, file = file_in(tmp_path)
    paths.ensure()
    file.write_text('{"a": 1}')

    with pytest.raises(ConfigError) as refused:
        read_entries(file, str, hint="remove it: then nothing is trusted")

    assert str(file) in refused.value.message
    assert refused.value.hint == "remove it: then nothing is trusted"


@pytest.mark.requirement("trust:list-damaged")
@pytest.mark.parametrize("content", [b'{"a": "\xff"}', b'{"a":' + b"[" * 10_000])
def test_bytes_that_are_no_text_and_nesting_without_end_are_damage_too(
    tmp_path: Path, content: bytes
) -> None:
    paths, file = file_in(tmp_path)
    paths.ensure()
    file.write_bytes(content)

    with pytest.raises(ConfigError):
        read_entries(file, str, hint="")
