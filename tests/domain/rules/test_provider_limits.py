"""Gates and waits as pure values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def refused_live(
    gate: Gate | None, now_ms: int, *, run: str = "live", after_ms: int | None = None
) -> Gate:
    return provider_limits.refused_live(
        gate,
        provider="x",
        run_id=RunId(run),
        now_ms=now_ms,
        status=429,
        retry_after_ms=after_ms,
    )


ASKED = st.none() | st.integers(1, 30_000)
STEPS = st.lists(
    st.tuples(st.sampled_from(["ended", "live", "probe", "probe refused"]), ASKED), max_size=60
)
"""What is heard of one provider, 0 to 40 s after the step before."""


@given(STEPS, st.lists(st.integers(0, 40_000), min_size=60, max_size=60))
@pytest.mark.requirement("limits:gate:live-counts-nothing")
def test_only_refusals_that_ended_an_attempt_make_the_next_wait_longer(
    steps: list[tuple[str, int | None]], pauses: list[int]
) -> None:
    gate: Gate | None = None
    now, ended = AT, 0
    for (step, after_ms), pause in zip(steps, pauses, strict=False):
        now += pause
        before = gate
        match step:
            case "ended":
                ended += 1
                gate = refused(gate, now, after_ms=after_ms)
                allowed = max(provider_limits.wait_ms(ended, None), after_ms or 0)
                assert gate.until_ms <= max(now + allowed, before.until_ms if before else 0)
                assert gate.is_closed(now)
            case "live":
                gate = refused_live(gate, now, after_ms=after_ms)
                assert before is None or gate == before
            case "probe" if gate is not None and not gate.is_closed(now):
                gate = replace(gate, probe=RunId("first"), probe_at_ms=now)
            case "probe refused" if gate is not None and gate.probe is not None:
                gate = refused_live(gate, now, run="first", after_ms=after_ms)
                assert gate.is_probing(now)
                assert not gate.is_closed(now)
        assert gate is None or gate.waits <= ended


@given(st.lists(ASKED, min_size=1, max_size=40), ASKED)
@pytest.mark.requirement("limits:gate:live-counts-nothing")
def test_however_often_a_program_tries_again_the_first_real_refusal_closes_for_as_long(
    tries: list[int | None], asked: int | None
) -> None:
    gate: Gate | None = None
    for after_ms in tries:
        gate = refused_live(gate, AT, after_ms=after_ms)
    alone = refused(None, AT + 60_000, after_ms=asked)

    assert refused(gate, AT + 60_000, after_ms=asked) == alone


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
