"""What one delivery outcome means for the run; separate from transport."""

from typing import assert_never

from subagents.domain.rules.retry import DELIVERY_GIVE_UP_MS, delivery_delay_ms
from subagents.domain.run.outcome import (
    Deferred,
    Delivered,
    DeliveryFailed,
    Skipped,
)
from subagents.domain.run.run import Delivery, DeliveryTry
from subagents.domain.run.values import RunId, Value, replace

TRIES_KEPT = 20
"""The newest tries stay in the run; older ones are in the journal."""


class Done(Value, frozen=True):
    """Delivered, or on purpose not."""


class TryAgain(Value, frozen=True):
    due_ms: int


class GiveUp(Value, frozen=True):
    """On purpose: the result is kept, listed under ``attention``, and can be delivered by hand."""


def next_step(run_id: RunId, delivery: Delivery) -> Done | TryAgain | GiveUp:
    """Decide from the newest try and the history before it."""
    newest = delivery.tries[-1]
    match newest.outcome:
        case Delivered() | Skipped():
            return Done()
        case Deferred():
            # The requester is busy, not gone: it counts as no failure and is never given up.
            return TryAgain(due_ms=newest.at_ms + delivery_delay_ms(run_id, delivery.tries_total))
        case DeliveryFailed(retryable=retryable, retry_after_ms=asked_ms):
            # Giving up is by time, not by tries: a receiver that restarts has half an hour.
            since = delivery.first_failure_ms or newest.at_ms
            if not retryable or newest.at_ms - since >= DELIVERY_GIVE_UP_MS:
                return GiveUp()
            delay_ms = max(delivery_delay_ms(run_id, delivery.failures), asked_ms or 0)
            return TryAgain(due_ms=newest.at_ms + delay_ms)
        case _:
            assert_never(newest.outcome)


def record_try(delivery: Delivery, record: DeliveryTry) -> Delivery:
    """Add one try to the delivery's history."""
    failed = isinstance(record.outcome, DeliveryFailed)
    return replace(
        delivery,
        tries=(*delivery.tries, record)[-TRIES_KEPT:],
        tries_total=delivery.tries_total + 1,
        failures=delivery.failures + 1 if failed else 0,
        first_failure_ms=(delivery.first_failure_ms or record.at_ms) if failed else None,
        due_ms=None,
    )
