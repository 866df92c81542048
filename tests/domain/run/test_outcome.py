"""Outcomes of runs, checks and deliveries."""

import msgspec
import pytest
from tests.builders import a_verification

from subagents.domain.run.outcome import (
    OK,
    Check,
    CheckType,
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
    DeliveryPath,
    Outcome,
    Skipped,
    SkipReason,
    Status,
    Verdict,
    Verification,
)


@pytest.mark.requirement("outcome:typed")
def test_only_ok_is_ok() -> None:
    assert OK.is_ok
    assert not any(Outcome(status=each).is_ok for each in Status if each is not Status.OK)


@pytest.mark.requirement("contract:fail-has-details")
def test_the_failures_of_a_verification_are_its_checks_that_did_not_pass() -> None:
    passed = Check(type=CheckType.COMMAND, target="make test", passed=True)
    failed = Check(type=CheckType.ARTIFACT, target="a.txt", passed=False, reason="is missing")
    unknown = Check(type=CheckType.COMMAND, target="x", passed=False, could_not_check=True)

    found = Verification(verdict=Verdict.FAILED, checks=(passed, failed, unknown))

    assert found.failures == (failed, unknown)
    assert a_verification(Verdict.PASSED).failures == ()


@pytest.mark.requirement("journal:names")
@pytest.mark.parametrize(
    ("stored", "outcome"),
    [
        (b'{"kind":"delivered","path":"steered"}', Delivered(path=DeliveryPath.STEERED)),
        (b'{"kind":"skipped","reason":"announce-skip"}', Skipped(reason=SkipReason.ANNOUNCE_SKIP)),
        (
            b'{"kind":"failed","retryable":true,"error":"HTTP 503","retryAfterMs":900}',
            DeliveryFailed(retryable=True, error="HTTP 503", retry_after_ms=900),
        ),
    ],
)
def test_what_a_delivery_came_to_is_stored_by_its_kind(
    stored: bytes, outcome: DeliveryOutcome
) -> None:
    assert msgspec.json.decode(stored, type=DeliveryOutcome) == outcome
    assert msgspec.json.encode(outcome) == stored
