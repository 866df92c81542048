"""How the end of a run was handed over, over all tries, as documents of the wire.

Source: 2-lifecycle §7; seed 004 part 4.
"""

import msgspec

from subagents.domain.run.run import Delivery, DeliveryTry

Document = dict[str, object]


def delivery(value: Delivery | None) -> Document | None:
    if value is None:
        return None
    return {
        "target": value.target,
        "tries": [delivery_try(each) for each in value.tries],
        "triesTotal": value.tries_total,
        "failures": value.failures,
        "due": value.due_ms,
    }


def delivery_try(value: DeliveryTry) -> Document:
    """One line of the trace of seed 004 part 4."""
    return {
        "at": value.at_ms,
        "target": value.target,
        "requesterDepth": value.requester_depth,
        "nested": value.nested,
        "routeMode": value.route_mode,
        "phases": list(value.phases),
        "outcome": msgspec.to_builtins(value.outcome),
        "idempotencyKey": value.idempotency_key,
    }
