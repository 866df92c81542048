"""The table of versions that were tried: whole, compared, and shown."""

import pytest
from scripts.runtime_table_page import PAGE, TRIALS_MAX, page, with_trial

from subagents.config.programs.program_catalog import PROGRAMS
from subagents.extensions.conversation.versions_seen import (
    ProgramVersions,
    Standing,
    Trial,
    newest_seen,
    number_in,
    standing_of,
    versions_seen,
)


def a_trial(version: str) -> Trial:
    return Trial(version=version, tried_on="2026-11-22", held={"steer": "same turn"})


ROW = ProgramVersions(oldest="1.10.0", seen=(a_trial("1.20.3"), a_trial("1.21.0")))


@pytest.mark.requirement("versions:table:whole")
def test_every_known_program_has_a_version_that_was_tried_and_the_way_to_a_newer_one() -> None:
    for program in PROGRAMS:
        row = versions_seen()[program.name]
        assert newest_seen(program.name)
        assert row.update
        assert row.oldest is None or row.why_oldest


@pytest.mark.requirement("versions:table:shown")
def test_the_page_shows_what_the_table_holds() -> None:
    assert PAGE.read_text() == page(versions_seen())


@pytest.mark.requirement("versions:compare")
@pytest.mark.parametrize(
    ("version", "standing"),
    [
        ("1.9.9", Standing.TOO_OLD),
        ("1.10.0", Standing.UNSEEN),
        ("1.20.3", Standing.TRIED),
        ("1.22.0", Standing.UNSEEN),
    ],
)
def test_a_version_is_compared_by_its_numbers(version: str, standing: Standing) -> None:
    assert standing_of(ROW, version) is standing


@pytest.mark.requirement("versions:compare")
def test_the_number_is_found_in_what_a_program_says() -> None:
    assert number_in("codex-cli 0.169.0 (x)") == "0.169.0"
    assert number_in("no number") is None


@pytest.mark.requirement("versions:table:kept")
def test_a_new_trial_is_the_newest_and_replaces_one_of_the_same_version() -> None:
    again = Trial(version="1.20.3", tried_on="2026-11-23", held={})
    assert with_trial(ROW, again).seen == (a_trial("1.21.0"), again)

    row = ROW
    for number in range(9):
        row = with_trial(row, a_trial(f"2.{number}"))
    assert [each.version for each in row.seen] == [f"2.{n}" for n in range(9)][-TRIALS_MAX:]
