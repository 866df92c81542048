"""When schedules are due: cron expressions, lengths, zones, clocks set forward and back."""

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domain.schedules.test_schedule import a_schedule

from subagents.domain.run.values import replace
from subagents.domain.schedules.schedule import MISSED_MAX, Schedule
from subagents.engine.schedules.due_times import (
    check_when,
    due_after,
    in_words,
    next_due,
    passed,
)
from subagents.errors import UsageError

BERLIN = ZoneInfo("Europe/Berlin")


def ms(*parts: int, zone: ZoneInfo | None = None) -> int:
    at = datetime(*parts, tzinfo=zone or UTC)  # type: ignore[misc, arg-type]  # year, month, day, …
    return round(at.timestamp() * 1000)


def of(when: str, zone: str = "UTC", *, since: int = 0) -> Schedule:
    return replace(a_schedule(), when=when, zone=zone, created_at_ms=since, decided_to_ms=since)


@pytest.mark.requirement("schedule:cron")
@pytest.mark.parametrize(
    ("when", "first", "second"),
    [
        ("0 3 * * 1-5", (2026, 11, 24, 3), (2026, 11, 25, 3)),
        ("@daily", (2026, 11, 25), (2026, 11, 26)),
        ("@HOURLY", (2026, 11, 24, 3), (2026, 11, 24, 4)),
        ("*/20 * * * *", (2026, 11, 24, 2, 40), (2026, 11, 24, 3)),
        ("every 90m", (2026, 11, 24, 4), (2026, 11, 24, 5, 30)),
    ],
)
def test_expressions_aliases_and_lengths_say_when(
    when: str, first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    schedule = of(when, since=ms(2026, 11, 24, 2, 30))

    assert list(islice(due_after(schedule, schedule.decided_to_ms), 2)) == [ms(*first), ms(*second)]
    assert next_due(schedule) == ms(*first)
    check_when(when, "UTC")


@pytest.mark.requirement("schedule:zone")
def test_work_of_an_hour_that_is_skipped_is_due_after_it_and_of_a_doubled_one_once() -> None:
    nightly = of("30 2 * * *", "Europe/Berlin", since=ms(2026, 3, 28, 12))
    assert list(islice(due_after(nightly, nightly.decided_to_ms), 2)) == [
        ms(2026, 3, 29, 3, zone=BERLIN),
        ms(2026, 3, 30, 2, 30, zone=BERLIN),
    ]
    nightly = of("30 2 * * *", "Europe/Berlin", since=ms(2026, 10, 24, 12))
    assert list(islice(due_after(nightly, nightly.decided_to_ms), 2)) == [
        ms(2026, 10, 25, 0, 30),
        ms(2026, 10, 26, 1, 30),
    ]


@pytest.mark.requirement("schedule:cron")
@pytest.mark.parametrize(
    ("when", "why"),
    [
        ("* * * * * *", "five fields"),
        ("", "five fields"),
        ("61 * * * *", "bad minute"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("@dayly", "is none of @hourly"),
        ("every 1s", "at least 10 seconds"),
        ("every 400d", "at most 365d"),
        ("every now and then", "now and then"),
        ("0 " * 300, "characters"),
    ],
)
def test_what_says_no_times_is_refused_with_the_way_out(when: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        check_when(when, "UTC")
    assert refused.value.details == {"field": "when"}


@pytest.mark.requirement("schedule:zone")
@pytest.mark.parametrize("zone", ["Mars", "", "../../etc/passwd", "/etc/localtime"])
def test_what_is_no_zone_is_refused(zone: str) -> None:
    with pytest.raises(UsageError, match="is not a time zone"):
        check_when("@daily", zone)


@pytest.mark.requirement("schedule:cron")
def test_an_expression_is_said_in_words() -> None:
    assert in_words("0 3 * * 1-5") == "At 03:00 on Monday through Friday"
    assert in_words("every 15m") == "every 15m"


@pytest.mark.requirement("schedule:missed")
@given(
    when=st.sampled_from(["*/7 * * * *", "0 3 * * *", "every 10s", "every 1h", "0 0 29 2 *"]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
    since=st.integers(1_600_000_000_000, 1_900_000_000_000),
    after_ms=st.integers(0, 40 * 24 * 3_600_000),
)
def test_the_times_that_passed_are_those_due_until_then(
    when: str, zone: str, since: int, after_ms: int
) -> None:
    schedule = of(when, zone, since=since)
    now = since + after_ms

    found = passed(schedule, now)

    first = next_due(schedule)
    assert first is not None
    assert first > since
    if found is None:
        assert first > now
    else:
        assert first <= found.newest_ms <= now
        assert next(due_after(schedule, found.newest_ms)) > now
        few = list(islice(due_after(schedule, since), found.number))
        assert len(few) == found.number <= MISSED_MAX
        assert found.number == MISSED_MAX or few[-1] == found.newest_ms


@pytest.mark.requirement("schedule:pause")
def test_nothing_is_due_while_it_is_paused() -> None:
    schedule = replace(of("every 10s"), paused_at_ms=5)

    assert next_due(schedule) is None
    assert passed(schedule, 10**12) is None
