"""A program that is too old is refused before it is started."""

from pathlib import Path

import pytest

from subagents.errors import UsageError
from subagents.extensions.conversation import program_version
from subagents.extensions.conversation.program_version import check_version, has_option
from subagents.extensions.conversation.versions_seen import versions_seen

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


@pytest.mark.requirement("versions:by-feature")
@pytest.mark.parametrize(
    ("help_text", "is_there"),
    [
        ("  --keep <on|off>   Keep it", True),
        ("  -k, --keep=WORD", True),
        ("  [--keep]", True),
        ("  --keep-all", False),
        ("  --no-keep", False),
        ("", False),
    ],
)
def test_an_option_is_there_where_the_help_names_it(
    tmp_path: Path, help_text: str, *, is_there: bool
) -> None:
    assert has_option(says(tmp_path, help_text), "--keep") == is_there


@pytest.mark.requirement("versions:by-feature")
def test_a_program_that_could_not_be_asked_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = says(tmp_path, "--keep")
    with monkeypatch.context() as busy:
        busy.setattr(program_version, "VERSION_S", -1.0)
        assert not has_option(program, "--keep")
    assert has_option(program, "--keep")


@pytest.mark.requirement("versions:by-feature")
def test_a_program_that_gives_no_help_has_no_option(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/nowhere/interpreter\n")
    broken.chmod(0o755)
    assert not has_option(str(broken), "--keep")
