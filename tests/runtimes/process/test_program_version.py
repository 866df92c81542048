"""A program that is too old is refused before it is started."""

from pathlib import Path

import pytest

from subagents.config.programs.versions_seen import versions_seen
from subagents.errors import UsageError
from subagents.runtimes.process.program_version import check_version

PATTERN = r"codex-cli (\d+\.\d+\.\d+)"


def says(tmp_path: Path, text: str) -> str:
    program = tmp_path / "codex"
    program.write_text(f"#!/bin/sh\necho '{text}'\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.requirement("versions:too-old-refused")
def test_an_old_version_is_refused_with_the_one_needed_and_the_command_to_get_it(
    tmp_path: Path,
) -> None:
    with pytest.raises(UsageError) as caught:
        check_version(says(tmp_path, "codex-cli 0.20.0"), "codex", pattern=PATTERN, option="here")

    row = versions_seen()["codex"]
    assert f"is version 0.20.0; {row.oldest} or newer is needed" in str(caught.value)
    assert row.update in str(caught.value)


@pytest.mark.requirement("versions:too-old-refused")
@pytest.mark.parametrize("text", ["codex-cli 999.0.0", "a wrapper 0.1", ""])
def test_what_is_new_or_says_nothing_of_itself_is_let_through(tmp_path: Path, text: str) -> None:
    check_version(says(tmp_path, text), "codex", pattern=PATTERN, option="here")
