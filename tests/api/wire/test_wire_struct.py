"""Answers are read leniently: what is new is ignored, what is missing has its default."""

import pytest
from tests.field_defaults import true_where_unsaid

from subagents.api import wire
from subagents.api.wire import message_answers, run_answers
from subagents.api.wire.message_answers import Inbox
from subagents.api.wire.run_answers import RunDetail, RunPage, RunStatus
from subagents.api.wire.wire_struct import WireStruct, document_of, iso_or_none, made, read
from subagents.domain.run.outcome import Check, CheckType
from subagents.domain.run.run import Cancel, Progress
from subagents.errors import DaemonUnreachable
from subagents.text import iso, milliseconds_of


@pytest.mark.requirement("wire:times")
def test_a_time_goes_over_the_wire_as_iso_8601_and_comes_back_the_same() -> None:
    assert iso(1_795_368_370_123) == "2026-11-22T17:26:10.123Z"
    assert milliseconds_of("2026-11-22T17:26:10.123Z") == 1_795_368_370_123
    assert (iso_or_none(None), milliseconds_of(None), milliseconds_of("soon")) == (None, None, None)


@pytest.mark.requirement("wire:lenient")
def test_what_a_daemon_of_an_earlier_version_does_not_say_is_read_as_no() -> None:
    assert true_where_unsaid(wire, WireStruct) == {
        "AccessAnswer.network",  # there was nothing yet that kept a worker from it
        "LogPage.ended",  # who is not told of more does not wait for it
    }


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


@pytest.mark.requirement("wire:by-name")
def test_a_value_is_shown_by_the_names_that_it_shares_with_its_answer_and_its_times() -> None:
    said = Progress(phase="read", percent_complete=40, updated_at_ms=1_000, number=2)
    cancel = Cancel(at_ms=2_000, by="agent:main:main", cascaded=True)
    shown = made(message_answers.Progress, said)
    asked = made(run_answers.Cancellation, cancel, requested_at=iso(cancel.at_ms))

    assert (shown.phase, shown.percent_complete, shown.updated_at) == ("read", 40, iso(1_000))
    assert (asked.by, asked.reason, asked.requested_at) == (cancel.by, None, iso(2_000))


@pytest.mark.requirement("wire:by-name")
def test_a_value_inside_an_answer_shows_what_its_place_has_names_for_and_no_more() -> None:
    check = Check(type=CheckType.COMMAND, target="make", passed=False, could_not_check=True)

    (shown,) = made(run_answers.Verification, status="failed", checks=(check,)).checks

    assert document_of(shown) == {
        "type": "command",
        "target": "make",
        "passed": False,
        "reason": None,
        "evidence": None,
    }


@pytest.mark.requirement("wire:by-name")
def test_a_field_that_a_value_lacks_or_that_its_answer_lacks_is_a_mistake_and_no_default() -> None:
    cancel = Cancel(at_ms=2_000, by="agent:main:main")

    with pytest.raises(AttributeError, match="requested_ms"):
        made(run_answers.Cancellation, cancel)
    with pytest.raises(KeyError, match="asked_at"):
        made(run_answers.Cancellation, cancel, asked_at=iso(2_000))
