"""Events are written down under their names, and what an older version wrote is still read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from tests.domain.event_makers import lived

from subagents.domain.run.events import EVENT_TYPES, Archived, Paused, decode_event, encode_event


@pytest.mark.requirement("journal:round-trip")
@given(st.data())
def test_every_event_of_any_life_is_read_back_as_it_was(data: DataObject) -> None:
    for event in lived(data).journal:
        assert decode_event(encode_event(event)) == event


@pytest.mark.requirement("journal:names")
def test_an_event_is_stored_under_the_name_of_its_class() -> None:
    assert encode_event(Paused(at_ms=5, by="me")) == b'{"type":"Paused","atMs":5,"by":"me"}'
    assert len({kind.__name__ for kind in EVENT_TYPES}) == len(EVENT_TYPES)


@pytest.mark.requirement("journal:names")
def test_fields_that_a_later_version_added_are_ignored() -> None:
    assert decode_event(b'{"type":"Archived","atMs":5,"later":true}') == Archived(at_ms=5)
