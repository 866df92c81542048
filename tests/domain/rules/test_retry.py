"""When to try again: the tables of delays, and the times of delivery tries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.domain.rules.retry import (
    DELIVERY_DELAY_MS_MAX,
    backoff_delay_ms,
    delivery_delay_ms,
    matches,
    retry_delay_ms,
)
from subagents.domain.run.outcome import OK, Outcome, Reason, Status
from subagents.domain.run.spec import RETRY_DELAY_MS_MAX, Backoff, RunSpec
from subagents.domain.run.values import RunId

ERROR = Outcome(status=Status.ERROR, reason=Reason.EXIT_CODE, error="auth error")


def delay(
    spec: RunSpec, outcome: Outcome = ERROR, *, used: int = 0, passed_ms: int = 0
) -> int | None:
    return retry_delay_ms(
        spec, outcome, retries_used=used, first_start_ms=1_000, now_ms=1_000 + passed_ms
    )


@pytest.mark.parametrize(
    ("strategy", "delays"),
    [
        pytest.param(
            Backoff.FIXED,
            [1000, 1000, 1000, 1000],
            marks=pytest.mark.requirement("retry:backoff-fixed"),
        ),
        pytest.param(
            Backoff.LINEAR,
            [1000, 2000, 3000, 4000],
            marks=pytest.mark.requirement("retry:backoff-linear"),
        ),
        pytest.param(
            Backoff.EXPONENTIAL,
            [1000, 2000, 4000, 8000],
            marks=pytest.mark.requirement("retry:backoff-exponential"),
        ),
    ],
)
def test_the_delays_of_each_backoff(strategy: Backoff, delays: list[int]) -> None:
    found = [backoff_delay_ms(n, base_ms=1000, strategy=strategy) for n in range(4)]

    assert found == delays


@pytest.mark.requirement("retry:backoff-bounded")
@given(st.integers(0, 100), st.integers(0, RETRY_DELAY_MS_MAX), st.sampled_from(list(Backoff)))
def test_no_delay_is_longer_than_an_hour(number: int, base_ms: int, strategy: Backoff) -> None:
    assert 0 <= backoff_delay_ms(number, base_ms=base_ms, strategy=strategy) <= 3_600_000


@pytest.mark.requirement("retry:retry-on", "retry:on-timeout-only")
@pytest.mark.parametrize(
    ("error", "patterns", "wanted"),
    [
        ("some error", (), True),
        ("connect: econnreset by peer", ("ETIMEDOUT", "ECONNRESET"), True),
        ("Rate limited", ("ETIMEDOUT",), False),
        ("TIMEOUT ERROR", ("timeout",), True),
    ],
)
def test_retry_on_is_case_insensitive_substrings(
    error: str, patterns: tuple[str, ...], *, wanted: bool
) -> None:
    assert matches(error, patterns) is wanted


@pytest.mark.requirement("retry:on-timeout-only")
def test_an_error_that_retry_on_does_not_name_is_not_retried() -> None:
    assert delay(RunSpec(task="t", retry_count=3, retry_on=("timeout",))) is None
    assert delay(RunSpec(task="t", retry_count=3, retry_on=("AUTH",))) == 1000


@pytest.mark.requirement("retry:retry-on")
def test_retry_on_sees_the_kind_of_end_as_well_as_its_text() -> None:
    spec = RunSpec(task="t", retry_count=1, retry_on=("timeout",))

    assert delay(spec, Outcome(status=Status.TIMEOUT, reason=Reason.DEADLINE)) == 1000


@pytest.mark.requirement("retry:max-time", "retry:retry-max-time")
def test_retry_max_time_cuts_the_last_delay_and_then_ends_the_retries() -> None:
    spec = RunSpec(task="t", retry_count=10, retry_delay=100, retry_max_time=150)

    assert delay(spec) == 100
    assert delay(spec, used=1, passed_ms=100) == 50
    assert delay(spec, used=2, passed_ms=150) is None


@pytest.mark.requirement("retry:retry-count-0", "retry:retry-count-3")
def test_there_are_as_many_retries_as_were_asked_for() -> None:
    assert delay(RunSpec(task="t", retry_count=0)) is None
    found = [delay(RunSpec(task="t", retry_count=3), used=n) for n in range(5)]
    assert found == [1000, 2000, 4000, None, None]


@pytest.mark.requirement("retry:what-is-retried")
@pytest.mark.parametrize(
    ("outcome", "retried"),
    [
        (OK, False),
        (ERROR, True),
        (Outcome(status=Status.TIMEOUT, reason=Reason.DEADLINE), True),
        (Outcome(status=Status.LOST, reason=Reason.LEASE_LOST), True),
        (Outcome(status=Status.ERROR, reason=Reason.START_FAILED), True),
        (Outcome(status=Status.CANCELLED), False),
        (Outcome(status=Status.PARTIAL, reason=Reason.REPORTED_PARTIAL), False),
        (Outcome(status=Status.PARTIAL, reason=Reason.BUDGET), False),
        (Outcome(status=Status.ERROR, reason=Reason.BUDGET), False),
    ],
)
def test_only_errors_timeouts_and_lost_attempts_are_retried(
    outcome: Outcome, *, retried: bool
) -> None:
    assert (delay(RunSpec(task="t", retry_count=1), outcome) is not None) is retried


@pytest.mark.requirement("delivery:backoff")
@given(st.text(min_size=1, max_size=12), st.integers(1, 1_000))
def test_delivery_tries_back_off_from_15_seconds_to_5_minutes_within_20_percent(
    name: str, number: int
) -> None:
    base = min(15_000 * 2 ** min(number - 1, 20), DELIVERY_DELAY_MS_MAX)

    found = delivery_delay_ms(RunId(name), number)

    assert 0.8 * base - 1 <= found <= 1.2 * base
    assert found == delivery_delay_ms(RunId(name), number)


@pytest.mark.requirement("delivery:backoff")
def test_runs_that_failed_together_do_not_come_back_together() -> None:
    delays = {delivery_delay_ms(RunId(f"r-{n:010}"), 1) for n in range(100)}

    assert len(delays) > 10
