"""What an agent's own record says where its card is silent: how long it takes and what it costs."""

from typing import Final

from subagents.domain.track_record.track_record import Stats
from subagents.text import duration

ATTEMPTS_MIN: Final = 10
"""Fewer attempts are no measure."""
CHEAP_USD_MAX: Final = 0.05
MEDIUM_USD_MAX: Final = 0.50
"""The highest mean cost of an attempt that is ``medium``; above it is ``expensive``."""


def measured_latency(record: Stats | None) -> str | None:
    """The time within which half of its attempts ended, as ``3m 5s``; None = too few are known."""
    if record is None or record.took is None or record.attempt_count < ATTEMPTS_MIN:
        return None
    return duration(record.took.p50_ms)


def measured_cost_tier(record: Stats | None) -> str | None:
    """The tier of the mean cost of its attempts; None = that of too few is known."""
    if record is None or record.cost_usd is None or record.cost_known < ATTEMPTS_MIN:
        return None
    mean = record.cost_usd / record.cost_known
    if mean == 0:
        return "free"
    if mean <= CHEAP_USD_MAX:
        return "cheap"
    return "medium" if mean <= MEDIUM_USD_MAX else "expensive"
