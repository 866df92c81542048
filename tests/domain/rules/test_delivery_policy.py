"""Who is notified of an end, by which routes, and what each outcome of a try means."""

import pytest
from tests.builders import ME, NOW_MS, RUN, Life, a_try

from subagents.domain.rules.delivery_policy import (
    TRIES_KEPT,
    Done,
    GiveUp,
    TryAgain,
    next_step,
    record_try,
    route,
    skip_reason,
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
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import RunId

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
    waiting = Deferred(reason=DeferReason.REQUESTER_BUSY)
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


@pytest.mark.requirement("delivery:order", "delivery:dispatch-order")
def test_direct_comes_first_when_a_completion_message_is_expected_and_last_when_not() -> None:
    expected = Life.begin(RunSpec(task="t")).run
    quiet = Life.begin(RunSpec(task="t", expects_completion_message=False)).run

    assert route(expected).phases == ("direct-primary", "steer-fallback", "queue-fallback")
    assert route(quiet).phases == ("steer-primary", "queue-primary", "direct-fallback")


@pytest.mark.requirement("delivery:nested-is-internal", "delivery:bubbles-up")
def test_a_childs_child_goes_to_no_outside_channel() -> None:
    run = Life.begin(requester_run=RunId("r-parent"), depth=2).run

    found = route(run)

    assert found.mode == "internal"
    assert all("direct" not in phase for phase in found.phases)


@pytest.mark.requirement("delivery:silent-texts")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ANNOUNCE_SKIP", SkipReason.ANNOUNCE_SKIP),
        (" NO_REPLY\n", SkipReason.SILENT),
        ("NO_REPLY.", None),
        ("no_reply", None),
        ("I say ANNOUNCE_SKIP", None),
        ("", None),
    ],
)
def test_the_two_silent_texts_alone_skip_the_push_but_not_the_inbox(
    text: str, reason: SkipReason | None
) -> None:
    life = Life.begin().start().result(text).exit()

    assert skip_reason(life.run) == (None if reason is None else Skipped(reason=reason))
    assert [m.consumed for m in life.messages] == [False]


@pytest.mark.requirement("cancel:cascaded-is-quiet")
def test_nobody_is_pushed_the_end_of_a_child_that_went_with_its_parent() -> None:
    life = Life.begin().start().cancel(cascaded=True).exit()

    assert skip_reason(life.run) == Skipped(reason=SkipReason.NOT_EXPECTED)
