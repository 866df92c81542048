"""Effects are stored until they were performed, and performed as they were stored."""

import msgspec
import pytest

from subagents.domain.run.effects import (
    Announce,
    CleanUp,
    Effect,
    InterruptAttempt,
    LookAfter,
    ResumeAttempt,
    StartAttempt,
    SteerAttempt,
    StopAttempt,
    Verify,
    decode_effects,
    encode_effects,
)
from subagents.domain.run.values import MessageId


@pytest.mark.requirement("journal:names")
@pytest.mark.parametrize(
    ("stored", "effect"),
    [
        (b'{"type":"StartAttempt","attempt":1}', StartAttempt(attempt=1)),
        (
            b'{"type":"ResumeAttempt","attempt":1,"turn":2,"message":"go on"}',
            ResumeAttempt(attempt=1, turn=2, message="go on"),
        ),
        (
            b'{"type":"StopAttempt","attempt":1,"graceMs":5000}',
            StopAttempt(attempt=1, grace_ms=5000),
        ),
        (
            b'{"type":"SteerAttempt","attempt":1,"number":3,"message":"hurry"}',
            SteerAttempt(attempt=1, number=3, message="hurry"),
        ),
        (b'{"type":"InterruptAttempt","attempt":1}', InterruptAttempt(attempt=1)),
        (b'{"type":"Verify","attempt":2}', Verify(attempt=2)),
        (b'{"type":"LookAfter","attempt":2}', LookAfter(attempt=2)),
        (
            b'{"type":"Announce","deliveryId":"r-1:announce","number":2}',
            Announce(delivery_id=MessageId("r-1:announce"), number=2),
        ),
        (b'{"type":"CleanUp","delete":true}', CleanUp(delete=True)),
    ],
)
def test_what_a_version_before_left_to_be_done_is_read_and_written_as_it_was(
    stored: bytes, effect: Effect
) -> None:
    row = b"[[7,0," + stored + b"]]"

    assert decode_effects(row) == [(7, 0, effect)]
    assert encode_effects([(7, 0, effect)]) == row


@pytest.mark.requirement("journal:names")
def test_what_is_no_effect_is_refused_and_a_follow_up_is_none() -> None:
    for data in (b'{"type":"MarkTold"}', b'{"type":"StartAttempt"}'):
        with pytest.raises(msgspec.ValidationError):
            decode_effects(b"[[7,0," + data + b"]]")
