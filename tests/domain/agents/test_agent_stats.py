"""What an agent's record says: rates with their intervals, and what its card leaves open."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import a_record

from subagents.domain.agents.agent_stats import (
    interval,
    measured_cost_tier,
    measured_latency,
)


@pytest.mark.requirement("agents:measured")
def test_ten_attempts_are_a_measure_of_time_and_fewer_are_none() -> None:
    assert measured_latency(a_record("a", p50_ms=185_000)) == "3m 5s"
    assert measured_latency(a_record("a", attempts=9)) is None
    assert measured_latency(None) is None


@pytest.mark.requirement("agents:measured")
@pytest.mark.parametrize(
    ("cost_usd", "tier"),
    [
        (0.0, "free"),
        (0.5, "cheap"),
        (0.51, "medium"),
        (5.0, "medium"),
        (5.01, "expensive"),
        (None, None),
    ],
)
def test_the_mean_cost_of_ten_attempts_says_the_tier(
    cost_usd: float | None, tier: str | None
) -> None:
    assert measured_cost_tier(a_record("a", cost_usd=cost_usd)) == tier
    assert measured_cost_tier(a_record("a", attempts=9, cost_usd=cost_usd)) is None
    assert measured_cost_tier(None) is None


@pytest.mark.requirement("performance:interval")
@pytest.mark.parametrize(
    ("number", "n", "low", "high"),
    [
        # As in the literature: Wilson 1927; Newcombe 1998, table I (81/263, 15/148, 0/20, 1/29).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (1, 1, 0.2065, 1.0),
        (20, 20, 0.8389, 1.0),
    ],
)
def test_the_interval_is_wilsons(number: int, n: int, low: float, high: float) -> None:
    found = interval(number, n)

    assert found == pytest.approx((low, high), abs=0.0001)


@pytest.mark.requirement("performance:interval")
@given(st.integers(1, 10_000), st.data())
def test_an_interval_holds_what_was_seen_and_narrows_with_more_of_it(
    n: int, data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, n))
    low, high = interval(number, n)
    more_low, more_high = interval(number * 4, n * 4)

    assert 0 <= low <= number / n <= high <= 1
    assert more_high - more_low < high - low
    assert interval(0, 0) == (0.0, 1.0)
    assert math.isclose(interval(n - number, n)[0], 1 - high, abs_tol=1e-9)
