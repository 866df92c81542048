"""Answers about events as they go over the wire."""

import pytest
from tests.api.run_journals import journal, slot, spawned, started

from subagents.api.answers.event_building import stream_event
from subagents.api.answers.explain import fold
from subagents.domain.transcript.feed_entry import NAMES, feed_documents
from subagents.text import iso


@pytest.mark.requirement("feed:exact-fields")
def test_an_event_of_the_stream_loses_no_field_in_its_struct() -> None:
    *_, last = fold(journal(spawned(), slot(), started()))
    found = feed_documents(last.run, last.entry.event, number=7, seq=3, names=frozenset(NAMES))

    (event,) = [stream_event(each) for each in found]

    assert (event.seq, event.name, event.type) == (7, "run", "AttemptStarted")
    assert event.occurred_at == iso(last.entry.at_ms)
