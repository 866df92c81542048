"""Answers about what attempts came to over time."""

from collections.abc import Sequence

from subagents.api.calls.services import AsOf
from subagents.api.wire.listing import Listing
from subagents.api.wire.wire_struct import Time, WireStruct
from subagents.extensions.track_record.series import Groups
from subagents.extensions.track_record.track_record import Sum
from subagents.text import iso


class SeriesSum(WireStruct, frozen=True, kw_only=True):
    """What attempts that ended within one time came to."""

    name: str | None = None
    """The outcome, agent or model; null = all together, or a model that was not chosen."""
    attempts: int = 0
    """How many ended."""
    runs: int = 0
    """First attempts among them."""
    tokens: int | None = None
    """Uncached tokens, read and written: without what was read from a cache."""
    tokens_in: int | None = None
    """Tokens read; null = of none it is known."""
    tokens_out: int | None = None
    """Tokens written; null = of none it is known."""
    tokens_cache_read: int | None = None
    """The part of the tokens read that came from the provider's cache; null = none is known."""
    tokens_known_of: int = 0
    """How many attempts' tokens are known."""
    cost_usd: float | None = None
    """US dollars; null = of none it is known."""
    cost_known_of: int = 0
    """How many attempts' cost is known."""


class SeriesBucket(WireStruct, frozen=True, kw_only=True):
    """One hour or day."""

    begins_at: Time | None = None
    """When it begins; it ends where the next one begins."""
    sums: list[SeriesSum] = []
    """One for each group of which an attempt ended; none = no attempt ended."""
    total: SeriesSum = SeriesSum()
    """The sum of all groups."""


class Series(Listing, frozen=True, kw_only=True):
    """What ended attempts came to over time."""

    by: str = "outcome"
    """What is added up together: `outcome`, `agent`, `model`; `cost` and `tokens` = everything."""
    bucket: str = "day"
    """`hour` or `day`, in UTC."""
    buckets: list[SeriesBucket] = []
    """The oldest first, also those without attempts."""
    sums: list[SeriesSum] = []
    """The sum of each group over the whole time, the costliest first."""
    total: SeriesSum = SeriesSum()
    """The sum of everything over the whole time."""


def series_answer(
    found: Sequence[tuple[int, Groups]], *, by: str, bucket: str, as_of: AsOf
) -> Series:
    """What attempts came to in each time, and in all of them together.

    Args:
        found: When each time begins, and its groups.
        by: What the groups are.
        bucket: How long each time is.
        as_of: Of the list.
    """
    whole: dict[str | None, Sum] = {}
    for _, groups in found:
        for name, value in groups.items():
            whole.setdefault(name, Sum()).merge(value)
    costly = sorted(whole, key=lambda name: (-whole[name].cost_usd, name is None, name))
    return Series(
        **as_of,
        by=by,
        bucket=bucket,
        buckets=[_series_bucket(at_ms, groups) for at_ms, groups in found],
        sums=[_series_sum(name, whole[name]) for name in costly],
        total=_series_sum(None, _all_of(whole)),
    )


def _series_bucket(at_ms: int, groups: Groups) -> SeriesBucket:
    names = sorted(groups, key=lambda name: (name is None, name))
    return SeriesBucket(
        begins_at=iso(at_ms),
        sums=[_series_sum(name, groups[name]) for name in names],
        total=_series_sum(None, _all_of(groups)),
    )


def _all_of(groups: Groups) -> Sum:
    found = Sum()
    for each in groups.values():
        found.merge(each)
    return found


def _series_sum(name: str | None, value: Sum) -> SeriesSum:
    fresh = max(value.tokens_in + value.tokens_out - value.cache_read, 0)
    return SeriesSum(
        name=name,
        attempts=value.attempts,
        runs=value.runs,
        tokens=fresh if value.tokens_known else None,
        tokens_in=value.tokens_in if value.tokens_known else None,
        tokens_out=value.tokens_out if value.tokens_known else None,
        tokens_cache_read=value.cache_read or None,
        tokens_known_of=value.tokens_known,
        cost_usd=round(value.cost_usd, 6) if value.cost_known else None,
        cost_known_of=value.cost_known,
    )
