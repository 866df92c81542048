"""What an agent's attempts came to, and what that says where its card is silent; pure."""

import math
from typing import Final

from subagents.domain.run.values import Value
from subagents.text import duration

_Z: Final = 1.959964
"""The quantile of a 95 % interval."""
ATTEMPTS_MIN: Final = 10
"""Fewer attempts are no measure."""
CHEAP_USD_MAX: Final = 0.05
MEDIUM_USD_MAX: Final = 0.50
"""The highest mean cost of an attempt that is ``medium``; above it is ``expensive``."""


class Tokens(Value, frozen=True):
    """None = unknown, never 0."""

    input: int | None
    output: int | None
    cache_read: int | None = None
    """The part of ``input`` that came from a cache."""
    cache_write: int | None = None
    """The part of ``input`` that was put into one."""


class Rate(Value, frozen=True):
    """A share with its 95 % interval (Wilson)."""

    count: int
    n: int
    rate: float
    low: float
    high: float


class Runtime(Value, frozen=True):
    """Half, and 95 of 100, of the newest attempts took at most so long."""

    p50_ms: int
    p95_ms: int


class Stats(Value, frozen=True):
    """What the attempts of one agent (tag, model) came to."""

    name: str | None
    """None = attempts without a tag, or a model that was not chosen."""
    runs: int
    attempt_count: int
    outcomes: dict[str, int]
    """How many ended in which way; those ``cancelled`` and ``couldNotCheck`` are in no rate."""
    reasons: dict[str, int]
    success: Rate | None
    """The success rate of all that say something of the agent; None without any."""
    verified: Rate | None
    """The rate of verified ones among those with a contract; None without any."""
    took: Runtime | None
    tokens: Tokens
    """The tokens of all attempts whose tokens are known."""
    tokens_known: int
    cost_usd: float | None
    """The cost of all attempts whose cost is known; None when none is."""
    cost_known: int


def rate_of(number: int, n: int) -> Rate | None:
    """``number`` of ``n`` as a share; None when ``n`` is 0."""
    if n == 0:
        return None
    low, high = interval(number, n)
    share = number / n
    return Rate(count=number, n=n, rate=round(share, 4), low=round(low, 4), high=round(high, 4))


def interval(number: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share of which ``number`` of ``n`` were seen (Wilson).

    Honest for few: 1 of 1 is 0.21 to 1, and 0 of 0 is 0 to 1.
    """
    if n == 0:
        return 0.0, 1.0
    share, z2 = number / n, _Z * _Z
    centre = share + z2 / (2 * n)
    spread = _Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low, high = (centre - spread) / (1 + z2 / n), (centre + spread) / (1 + z2 / n)
    # What was seen always lies inside; rounding must not say otherwise.
    return max(min(low, share), 0.0), min(max(high, share), 1.0)


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
