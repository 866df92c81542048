"""Events are written down under their names, and what an older version wrote is still read."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from tests.domain.event_makers import lived

from subagents.domain.run.events import (
    EVENT_TYPES,
    Archived,
    AttemptStarted,
    DeliverySettled,
    Event,
    ParentNotified,
    Paused,
    SignalReceived,
    SlotGranted,
    SteerRequested,
    TimerFired,
    decode_event,
    encode_event,
)
from subagents.domain.run.outcome import DeferReason, Deferred
from subagents.domain.run.run import DeliveryTry, Exit, Priority
from subagents.domain.run.signals import Exited
from subagents.domain.run.values import SessionKey


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


@pytest.mark.requirement("timers:cause")
def test_a_journal_of_0_1_0_has_timers_without_a_cause() -> None:
    old = b'{"type":"TimerFired","atMs":5}'

    assert decode_event(old) == TimerFired(at_ms=5)
    assert encode_event(TimerFired(at_ms=5)) == old


@pytest.mark.requirement("journal:names")
@pytest.mark.parametrize(
    ("stored", "event"),
    [
        (
            b'{"type":"AttemptStarted","atMs":5,"attempt":2,"pid":77,"nativeSession":"s"}',
            AttemptStarted(at_ms=5, attempt=2, pid=77, native_session="s"),
        ),
        (
            (
                b'{"type":"SignalReceived","atMs":5,"attempt":1,"signal":'
                b'{"type":"Exited","key":"k","exit":{"code":3},"drained":true}}'
            ),
            SignalReceived(
                at_ms=5, attempt=1, signal=Exited(key="k", exit=Exit(code=3), drained=True)
            ),
        ),
        (
            (
                b'{"type":"DeliverySettled","atMs":5,"record":{"atMs":4,"target":"agent:a:main",'
                b'"requesterDepth":0,"nested":false,"routeMode":"direct","phases":["direct"],'
                b'"outcome":{"kind":"deferred","reason":"quiet"},"idempotencyKey":"r-1:announce/1"}}'
            ),
            DeliverySettled(
                at_ms=5,
                record=DeliveryTry(
                    at_ms=4,
                    target=SessionKey("agent:a:main"),
                    requester_depth=0,
                    nested=False,
                    route_mode="direct",
                    phases=("direct",),
                    outcome=Deferred(reason=DeferReason.QUIET),
                    idempotency_key="r-1:announce/1",
                ),
            ),
        ),
        (
            b'{"type":"ParentNotified","atMs":5,"message":"m","priority":"blocker"}',
            ParentNotified(at_ms=5, message="m", priority=Priority.BLOCKER),
        ),
    ],
)
def test_an_event_is_written_under_its_name_and_read_back_as_it_was(
    stored: bytes, event: Event
) -> None:
    assert decode_event(stored) == event
    assert encode_event(event) == stored


@pytest.mark.requirement("journal:names")
def test_what_an_older_version_did_not_write_is_as_it_was_then() -> None:
    assert decode_event(b'{"type":"SteerRequested","atMs":5,"by":"me","message":"m"}') == (
        SteerRequested(at_ms=5, by="me", message="m", next_turn=False)
    )
    granted = decode_event(b'{"type":"SlotGranted","atMs":5,"sessionKey":"s","tokenHash":"h"}')
    assert granted == SlotGranted(at_ms=5, session_key=SessionKey("s"), token_hash="h", node=None)


@pytest.mark.requirement("journal:names")
@pytest.mark.parametrize(
    "data",
    [b'{"type":"Invented","atMs":5}', b'{"type":"TimerFired"}', b'{"atMs":5}', b"TimerFired"],
)
def test_what_is_no_event_of_this_version_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.ValidationError if data.startswith(b"{") else msgspec.DecodeError):
        decode_event(data)
