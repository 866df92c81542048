"""Events as they are answered: times as everywhere, whatever form the journal stores."""

import pytest
from tests.api.run_journals import ID, journal, slot, spawned, started

from subagents.api.answers.event_building import timeline_event
from subagents.api.answers.explain import fold
from subagents.domain.run import events as e
from subagents.domain.run.run import Request
from subagents.domain.run.values import RequestId
from subagents.text import iso


@pytest.mark.requirement("wire:timeline", "wire:times")
def test_times_inside_an_event_are_iso_8601_and_durations_stay_numbers() -> None:
    request = Request(
        id=RequestId(f"{ID}:q1"), attempt=1, question="?", asked_at_ms=1_000, deadline_ms=9_000
    )
    journaled = journal(spawned(), slot(), started(), e.RequestAsked(at_ms=1_500, request=request))

    first, *_, asked = [timeline_event(each) for each in fold(journaled)]

    assert asked.occurred_at == iso(1_500)
    shown = asked.data["request"]
    assert isinstance(shown, dict)
    assert (shown["askedAt"], shown["deadlineAt"]) == (iso(1_000), iso(9_000))
    assert "atMs" not in str(asked.data)
    assert isinstance(first.data["resolved"], dict)
