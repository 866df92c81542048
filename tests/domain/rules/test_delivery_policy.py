"""What each outcome of a delivery try means, apart from how it was carried."""

import pytest
from tests.builders import ME, NOW_MS, RUN, a_try

from subagents.domain.rules.delivery_policy import (
    TRIES_KEPT,
    Done,
    GiveUp,
    TryAgain,
    next_step,
    record_try,
)
from subagents.domain.run.outcome import (
    DeferReason,
    Deferred,
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
    DeliveryPath,
    Skipped,
    SkipReason,
)
from subagents.domain.run.run import Delivery

REFUSED = DeliveryFailed(retryable=True, error="refused")


def after(*tries: tuple[DeliveryOutcome, int]) -> Delivery:
    delivery = Delivery(target=ME)
    for number, (outcome, at_ms) in enumerate(tries, start=1):
        delivery = record_try(delivery, a_try(outcome, at_ms, number))
    return delivery


@pytest.mark.requirement("delivery:policy", "delivery:typed-outcomes")
@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        *((Delivered(path=path), Done) for path in DeliveryPath),
        *((Skipped(reason=reason), Done) for reason in SkipReason),
        *((Deferred(reason=reason), TryAgain) for reason in DeferReason),
        (REFUSED, TryAgain),
        (DeliveryFailed(retryable=False, error="gone"), GiveUp),
    ],
)
def test_every_outcome_has_its_consequence(outcome: DeliveryOutcome, expected: type) -> None:
    assert isinstance(next_step(RUN, after((outcome, NOW_MS))), expected)


@pytest.mark.requirement("delivery:gives-up-after-30-minutes")
def test_failures_are_retried_for_half_an_hour_and_then_given_up() -> None:
    half_hour = 30 * 60_000

    almost = after((REFUSED, NOW_MS), (REFUSED, NOW_MS + half_hour - 1))
    over = after((REFUSED, NOW_MS), (REFUSED, NOW_MS + half_hour))

    assert isinstance(next_step(RUN, almost), TryAgain)
    assert next_step(RUN, over) == GiveUp()


@pytest.mark.requirement("delivery:no-silent-expiry", "field:parked-delivery-expired")
def test_a_deferral_never_ends_in_giving_up() -> None:
    waiting = Deferred(reason=DeferReason.MISSING_REQUESTER)
    delivery = after(*((waiting, NOW_MS + day * 86_400_000) for day in range(30)))

    step = next_step(RUN, delivery)

    assert isinstance(step, TryAgain)
    assert step.due_ms - delivery.tries[-1].at_ms <= 1.2 * 300_000


@pytest.mark.requirement("delivery:gives-up-after-30-minutes")
def test_a_try_that_got_further_starts_the_half_hour_again() -> None:
    delivery = after(
        (REFUSED, NOW_MS),
        (Deferred(reason=DeferReason.REQUESTER_BUSY), NOW_MS + 1_000_000),
        (REFUSED, NOW_MS + 2_000_000),
    )

    assert isinstance(next_step(RUN, delivery), TryAgain)
    assert (delivery.failures, delivery.first_failure_ms) == (1, NOW_MS + 2_000_000)


@pytest.mark.requirement("delivery:traced")
def test_every_try_is_counted_and_the_newest_are_kept_in_the_run() -> None:
    delivery = after(*((REFUSED, NOW_MS + n) for n in range(50)))

    assert delivery.tries_total == 50
    assert len(delivery.tries) == TRIES_KEPT
    assert delivery.tries[-1].at_ms == NOW_MS + 49
