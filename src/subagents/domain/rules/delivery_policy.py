"""Who is notified of a run's end, over which routes, and what a try came to; no transport."""

from typing import assert_never

from subagents.domain.rules.retry import DELIVERY_GIVE_UP_MS, delivery_delay_ms
from subagents.domain.run.outcome import (
    Deferred,
    Delivered,
    DeliveryFailed,
    Reason,
    Skipped,
    SkipReason,
)
from subagents.domain.run.run import Delivery, DeliveryTry, Run
from subagents.domain.run.values import RunId, Value, replace
from subagents.domain.text.announcement import SILENT_TEXTS

TRIES_KEPT = 20
"""The newest tries stay in the run; older ones are in the journal."""


class Route(Value, frozen=True):
    """Delivery phases to try, in order, by their names in the trace."""

    phases: tuple[str, ...]
    mode: str
    """``internal`` = injected into a run of ours, ``fallback`` = the requester's inbox; a try that
    found a courier bound to the requester's agent is on record as ``bound``."""


def skip_reason(run: Run) -> Skipped | None:
    """Why the announcement is not pushed, if so; the inbox row exists all the same."""
    is_orphaned = run.outcome is not None and run.outcome.reason is Reason.PARENT_ENDED
    if is_orphaned or run.lineage.judges is not None:
        return Skipped(reason=SkipReason.NOT_EXPECTED)
    silent = SILENT_TEXTS.get((run.result or "").strip())
    return None if silent is None else Skipped(reason=silent)


def route(run: Run) -> Route:
    """``expectsCompletionMessage``: direct first, then queue/steer; else the other way round.

    A nested requester is notified by internal injection only: nothing of a child's child goes to an
    outside channel, not even when its parent is gone and the message bubbled up to a session that
    has one. What cannot be steered waits in the inbox, and the reducer's follow-up turn
    (``reduce._follow_up``) hands it to the agent: for a nested requester that turn is the direct
    delivery.
    """
    if run.lineage.requester_run is not None:
        return Route(phases=("steer-internal", "queue-internal"), mode="internal")
    if run.spec.expects_completion_message:
        return Route(phases=("direct-primary", "steer-fallback", "queue-fallback"), mode="fallback")
    return Route(phases=("steer-primary", "queue-primary", "direct-fallback"), mode="fallback")


class Done(Value, frozen=True):
    """Delivered, or on purpose not."""


class TryAgain(Value, frozen=True):
    """Not delivered yet; the next try is due then."""

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
