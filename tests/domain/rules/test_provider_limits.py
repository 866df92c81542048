"""Gates and waits as pure values."""

import pytest

from subagents.domain.rules import provider_limits
from subagents.domain.rules.provider_limits import Gate
from subagents.domain.run.values import RunId, replace

AT = 1_000_000


def refused(
    gate: Gate | None, now_ms: int, *, status: int | None = 429, after_ms: int | None = None
) -> Gate:
    return provider_limits.refused(
        gate, provider="x", now_ms=now_ms, status=status, retry_after_ms=after_ms
    )


@pytest.mark.requirement("limits:gate:one-series")
def test_refusals_while_a_gate_is_closed_are_one_and_may_only_make_it_longer() -> None:
    gate = refused(None, AT)
    assert (gate.until_ms, gate.waits) == (AT + 15_000, 1)
    same = refused(gate, AT + 10, after_ms=1_000)
    assert (same.until_ms, same.waits) == (gate.until_ms, 1)
    longer = refused(same, AT + 20, status=None, after_ms=60_000)
    assert (longer.until_ms, longer.waits, longer.status) == (AT + 60_020, 1, 429)


@pytest.mark.requirement("limits:gate:doubles")
def test_a_refusal_after_the_wait_is_the_next_of_the_series() -> None:
    gate, now = refused(None, AT), AT
    waits = []
    for _ in range(6):
        now = gate.until_ms
        assert not gate.is_closed(now)
        gate = refused(replace(gate, probe=RunId("r"), probe_at_ms=now), now)
        waits.append(gate.until_ms - now)
    assert waits == [30_000, 60_000, 120_000, 240_000, 300_000, 300_000]
    assert gate.probe is None


@pytest.mark.requirement("limits:gate:bounded")
def test_no_provider_closes_a_gate_for_longer_than_a_run_would_wait() -> None:
    gate = refused(None, AT, after_ms=10**12)
    assert gate.until_ms - AT == provider_limits.TOTAL_MS_MAX


@pytest.mark.requirement("limits:words")
def test_a_refusal_names_its_provider_and_status() -> None:
    assert provider_limits.refusal_text("anthropic", 529) == "anthropic: 529"
    assert provider_limits.refusal_text("anthropic", None) == "anthropic: refused"
