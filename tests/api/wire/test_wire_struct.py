"""Answers are read leniently: what is new is ignored, what is missing has its default."""

import pytest

from subagents.api.wire.message_answers import Inbox
from subagents.api.wire.run_answers import RunDetail, RunPage, RunStatus
from subagents.api.wire.wire_struct import iso_or_none, read
from subagents.errors import DaemonUnreachable
from subagents.text import iso, milliseconds_of


@pytest.mark.requirement("wire:times")
def test_a_time_goes_over_the_wire_as_iso_8601_and_comes_back_the_same() -> None:
    assert iso(1_795_368_370_123) == "2026-11-22T17:26:10.123Z"
    assert milliseconds_of("2026-11-22T17:26:10.123Z") == 1_795_368_370_123
    assert (iso_or_none(None), milliseconds_of(None), milliseconds_of("soon")) == (None, None, None)


@pytest.mark.requirement("wire:lenient")
def test_unknown_fields_are_ignored_and_missing_ones_have_defaults() -> None:
    found = read({"runId": "r-1", "phase": "running", "invented": {"a": 1}}, RunDetail)

    assert (found.run_id, found.phase, found.attempts, found.outcome) == (
        "r-1",
        "running",
        [],
        None,
    )


@pytest.mark.requirement("wire:lenient")
def test_the_answers_of_a_daemon_of_version_0_1_are_read_too() -> None:
    row = {"runId": "r-1", "createdAt": 1_000, "startedAt": None, "attempt": 1, "attempts": 3}
    message = {"id": "m", "createdAt": 1_000, "consumedAt": 2_000}

    (found,) = read({"runs": [row], "total": 1}, RunPage).runs
    assert (found.created_at, found.started_at, found.attempt) == (iso(1_000), None, 1)
    assert read({"runId": "r-1", "deadline": 5_000}, RunStatus).deadline == iso(5_000)
    assert read({"messages": [message]}, Inbox).messages[0].consumed_at == iso(2_000)


@pytest.mark.requirement("wire:lenient")
def test_what_is_no_such_answer_says_that_the_versions_differ() -> None:
    with pytest.raises(DaemonUnreachable, match="not understood") as refused:
        read({"runs": "none"}, RunPage)

    assert "different versions" in str(refused.value.hint)
