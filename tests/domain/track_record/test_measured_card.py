"""What an agent's record says where its card is silent."""

import pytest

from subagents.domain.track_record.measured_card import measured_cost_tier, measured_latency
from subagents.domain.track_record.track_record import Runtime, Stats, Tokens


def record(attempts: int, *, cost_usd: float | None = None, p50_ms: int = 185_000) -> Stats:
    return Stats(
        name="a",
        runs=attempts,
        attempt_count=attempts,
        outcomes={},
        reasons={},
        success=None,
        verified=None,
        took=Runtime(p50_ms=p50_ms, p95_ms=p50_ms),
        tokens=Tokens(input=None, output=None),
        tokens_known=0,
        cost_usd=cost_usd,
        cost_known=0 if cost_usd is None else attempts,
    )


@pytest.mark.requirement("agents:measured")
def test_ten_attempts_are_a_measure_of_time_and_fewer_are_none() -> None:
    assert measured_latency(record(10)) == "3m 5s"
    assert measured_latency(record(9)) is None
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
    assert measured_cost_tier(record(10, cost_usd=cost_usd)) == tier
    assert measured_cost_tier(record(9, cost_usd=cost_usd)) is None
    assert measured_cost_tier(None) is None
