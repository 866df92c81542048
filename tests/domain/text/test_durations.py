"""Durations are written as people write them, and a slip is refused by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.domain.text.durations import DURATION_MS_MAX, milliseconds, seconds
from subagents.errors import UsageError

READ = {
    "250ms": 250,
    "5m": 300_000,
    "1h30m": 5_400_000,
    "2d": 172_800_000,
    "PT5M": 300_000,
    "pt1h30m": 5_400_000,
    "P1DT12H": 129_600_000,
    "PT0.5S": 500,
    "90": 90_000,
    "1.5": 1_500,
    "1.5h": 5_400_000,
    " 5M ": 300_000,
    "0": 0,
    "0s": 0,
    "1d2h3m4s5ms": 93_784_005,
    "365d": DURATION_MS_MAX,
}
REFUSED = [
    "",
    " ",
    "-5m",
    "5x",
    "m",
    "5m1h",
    "5m5m",
    "1h 30m",
    "P",
    "PT",
    "P1DT",
    "1e3",
    "NaN",
    "inf",
    "५m",
    "1.m",
    ".5",
    "0x10",
    "5m\n5",
    "9" * 65,
]


@pytest.mark.requirement("cli:durations")
@pytest.mark.parametrize(("text", "expected"), READ.items(), ids=READ)
def test_each_documented_form_is_read(text: str, expected: int) -> None:
    assert milliseconds(text, field="--timeout") == expected


@pytest.mark.requirement("cli:durations")
@pytest.mark.parametrize("text", REFUSED, ids=repr)
def test_anything_else_is_refused_with_the_flags_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--timeout must be a duration such as 250ms, 5m"):
        milliseconds(text, field="--timeout")


@pytest.mark.requirement("cli:durations")
def test_more_than_a_year_is_taken_for_a_slip_of_the_unit() -> None:
    with pytest.raises(UsageError, match=r"--timeout must be at most 365d, not '366d'"):
        milliseconds("366d", field="--timeout")


@pytest.mark.requirement("cli:durations")
@given(
    days=st.integers(0, 100),
    hours=st.integers(0, 99),
    minutes=st.integers(0, 99),
    rest_ms=st.integers(0, 99_999),
)
def test_what_is_written_in_parts_adds_up_in_both_spellings(
    days: int, hours: int, minutes: int, rest_ms: int
) -> None:
    total = ((days * 24 + hours) * 60 + minutes) * 60_000 + rest_ms
    whole, fraction = divmod(rest_ms, 1000)
    short = f"{days}d{hours}h{minutes}m{whole}s{fraction}ms"
    iso = f"P{days}DT{hours}H{minutes}M{whole}.{fraction:03}S"
    assert milliseconds(short, field="x") == total
    assert milliseconds(iso, field="x") == total
    assert seconds(short, field="x") == total / 1000


@pytest.mark.requirement("cli:durations")
@given(st.text(max_size=100))
def test_no_text_makes_it_fail_otherwise_or_gives_a_value_out_of_bounds(text: str) -> None:
    try:
        value = milliseconds(text, field="x")
    except UsageError as error:
        assert error.details == {"field": "x"}  # noqa: PT017  both ends are right
    else:
        assert 0 <= value <= DURATION_MS_MAX
