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
from subagents.errors import UsageError
from subagents.extensions.schedules.due_times import (
    check_when,
    due_after,
    in_words,
    next_due,
    passed,
)

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


@pytest.mark.requirement("schedule:cron")
@pytest.mark.parametrize(
    ("when", "plain", "words"),
    [
        ("0 0 * * FRI-SUN", "0 0 * * 5-7", "At 00:00 on Friday through Sunday"),
        ("0 0 * * mon-sun", "0 0 * * 1-7", "At 00:00 on Monday through Sunday"),
        ("0 0 * * 5-0", "0 0 * * 5-7", "At 00:00 on Friday through Sunday"),
        (
            "0 0 * * WED,SAT-SUN",
            "0 0 * * 3,6-7",
            None,
        ),
        ("0 0 * * THU-SUN/2", "0 0 * * 4,6", None),
        ("0 0 * * SUN-TUE", "0 0 * * 0-2", "At 00:00 on Sunday through Tuesday"),
        ("*/45 * * * *", "0,45 * * * *", "At minutes 0 and 45 of every hour"),
        ("0 */5 * * *", "0 0,5,10,15,20 * * *", "At minute 0 past hours 0, 5, 10, 15, and 20"),
        ("3/40 * * * *", "3,43 * * * *", "At minutes 3 and 43 of every hour"),
        ("*/20 * * * *", "0,20,40 * * * *", "Every 20 minutes"),
        ("0 9-17/2 * * *", "0 9,11,13,15,17 * * *", None),
    ],
)
def test_days_that_end_a_range_and_steps_mean_what_they_say(
    when: str, plain: str, words: str | None
) -> None:
    since = ms(2026, 11, 24, 2, 30)
    found, wanted = of(when, since=since), of(plain, since=since)

    check_when(when, "UTC")
    assert list(islice(due_after(found, since), 60)) == list(islice(due_after(wanted, since), 60))
    assert words is None or in_words(when) == words


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
        ("@reboot", "no time that comes again"),
        ("every 1s", "at least 10 seconds"),
        ("every 400d", "at most 365d"),
        ("every now and then", "now and then"),
        ("0 " * 300, "characters"),
        ("*/90 * * * *", r"minute \*/90 is only ever 0: write 0"),
        ("0 */24 * * *", r"hour \*/24 is only ever 0"),
        ("0 0 */31 * *", r"day-of-month \*/31 is only ever 1"),
        ("0 0 1 */12 *", r"month \*/12 is only ever 1"),
        ("0 0 * * */7", r"day-of-week \*/7 is only ever 0"),
        ("0,30,55/10 * * * *", "minute 55/10 is only ever 55"),
        ("10-20/15 * * * *", "minute 10-20/15 is only ever 10"),
        ("*/99999999999 * * * *", "is only ever 0"),
        ("*/0 * * * *", "bad minute"),
        ("0 22-6 * * *", "hour 22-6 ends before it begins: write 22-23,0-6"),
        ("0 0 * * sat-mon", "write 6,0-1"),
        ("0 0 1 nov-feb *", "write 11-12,1-2"),
        ("0 0 ? * *", "bad day-of-month"),
    ],
)
def test_what_says_no_times_is_refused_with_the_way_out(when: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        check_when(when, "UTC")
    assert refused.value.details == {"field": "when"}


@pytest.mark.requirement("schedule:zone")
@pytest.mark.parametrize(
    "zone",
    [
        *("Mars", "", "../../etc/passwd", "/etc/localtime"),
        *("CET-1CEST", "CET-1CEST,nonsense", "X-1", "<+03", "Mars99", "JST-9\nJST-8"),
    ],
)
def test_what_is_no_zone_is_refused(zone: str) -> None:
    with pytest.raises(UsageError, match="is not a time zone"):
        check_when("@daily", zone)


@pytest.mark.requirement("schedule:zone")
@pytest.mark.parametrize(
    ("zone", "winter", "summer"),
    [
        ("CET-1CEST,M3.5.0,M10.5.0/3", 60, 120),
        ("EST5EDT,M3.2.0,M11.1.0", -300, -240),
        ("AEST-10AEDT,M10.1.0,M4.1.0/3", 660, 600),
        ("JST-9", 540, 540),
        ("IST-5:30", 330, 330),
        ("<+0330>-3:30", 210, 210),
        ("<-03>3", -180, -180),
    ],
)
def test_a_zone_may_be_a_rule_of_posix(zone: str, winter: int, summer: int) -> None:
    daily = of("0 3 * * *", zone, since=ms(2026, 1, 10, 12))

    check_when("0 3 * * *", zone)
    assert next_due(daily) == ms(2026, 1, 11, 3) - winter * 60_000
    assert next(due_after(daily, ms(2026, 7, 10, 12))) == ms(2026, 7, 11, 3) - summer * 60_000


@pytest.mark.requirement("schedule:cron")
def test_an_expression_is_said_in_words() -> None:
    assert in_words("0 3 * * 1-5") == "At 03:00 on Monday through Friday"
    assert in_words("every 15m") == "every 15m"
    assert in_words("*/5 * * * *") == "Every 5 minutes"


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
