"""Texts stay on their line and in their length, and numbers and times are short and never wrong."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import NOW_MS

from subagents.errors import UsageError
from subagents.text import (
    DURATION_MS_MAX,
    age,
    chosen,
    clock,
    compact,
    counted,
    cut,
    cut_middle,
    cut_start,
    duration,
    fence,
    harmless,
    iso,
    listed,
    money,
    one_line,
    parse_duration,
    parse_time,
    quoted,
    shortened,
    size,
    upcoming,
)

TEXTS = st.text(alphabet="ab é日 \t\n\r\x1b[31m\x9b\u202e\u2028\u200b\ud800`", max_size=60)

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
    "0.0001s": 1,
    "0.4ms": 1,
    "0.6ms": 1,
    "1.4ms": 1,
    "0.00000001d": 1,
    "PT0.0001S": 1,
    "0.0000001": 1,
    "0h0m0.0001s": 1,
    "0.0h": 0,
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
    assert parse_duration(text, field="--timeout") == expected


@pytest.mark.requirement("cli:durations")
@pytest.mark.parametrize("text", REFUSED, ids=repr)
def test_anything_else_is_refused_with_the_flags_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--timeout must be a duration such as 250ms, 5m"):
        parse_duration(text, field="--timeout")


@pytest.mark.requirement("cli:durations")
def test_more_than_a_year_is_taken_for_a_slip_of_the_unit() -> None:
    with pytest.raises(UsageError, match=r"--timeout must be at most 365d, not '366d'"):
        parse_duration("366d", field="--timeout")


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
    spelled = f"P{days}DT{hours}H{minutes}M{whole}.{fraction:03}S"
    assert parse_duration(short, field="x") == total
    assert parse_duration(spelled, field="x") == total


@pytest.mark.requirement("cli:durations")
@given(st.text(max_size=100))
def test_no_text_makes_it_fail_otherwise_or_gives_a_value_out_of_bounds(text: str) -> None:
    try:
        value = parse_duration(text, field="x")
    except UsageError as error:
        assert error.details == {"field": "x"}  # noqa: PT017  both ends are right
    else:
        assert 0 <= value <= DURATION_MS_MAX


HARMLESS = {
    "plain\ttext\n": "plain\ttext\n",
    "\x1b[31mred\x1b[0m": "red",
    "\x1b]0;title\x07x": "]0;titlex",
    "\x1b]52;c;aGk=\x1b\\": "]52;c;aGk=\\",
    "over\rwrite": "overwrite",
    "\x9b2J": "2J",
    "\u202eevil": "evil",
    "\x1b": "",
    "\x1b[?25l": "",
}


@pytest.mark.requirement("cli:harmless")
@pytest.mark.parametrize(("text", "shown"), HARMLESS.items(), ids=map(repr, HARMLESS))
def test_a_workers_text_cannot_drive_the_terminal(text: str, shown: str) -> None:
    assert harmless(text) == shown


@pytest.mark.requirement("cli:harmless")
@given(st.text(alphabet=st.sampled_from("\x1b[]0;mHJ\x07\r\n\t\x9bab?"), max_size=40))
def test_no_escape_survives_whatever_is_mixed(text: str) -> None:
    assert not set(harmless(text)) & set("\x1b\x9b\x07\r")


@pytest.mark.requirement("announcement:no-controls")
@given(TEXTS, st.integers(1, 40))
def test_a_line_is_one_line_of_printable_characters_within_its_length(
    text: str, chars_max: int
) -> None:
    line = one_line(text, chars_max)

    assert line.isprintable()
    assert len(line) <= chars_max
    assert line == line.strip()
    assert "  " not in line


@pytest.mark.requirement("announcement:no-controls")
@given(st.text(alphabet="ab cd", max_size=200))
def test_a_line_of_any_length_keeps_every_word(text: str) -> None:
    assert one_line(text, chars_max=None).split() == text.split()


@pytest.mark.requirement("text:formats")
def test_a_line_of_a_megabyte_is_cut_with_a_sign_even_when_most_of_it_is_blank() -> None:
    assert one_line(f"begin{' ' * 1_000_000}end", 20) == "begin…"
    assert one_line("x" * 1_000_000) == f"{'x' * 299}…"


@pytest.mark.requirement("text:formats")
@given(st.text(max_size=50), st.integers(1, 30))
def test_a_cut_text_is_never_longer_and_keeps_its_beginning_or_its_end(
    text: str, chars_max: int
) -> None:
    begun, ended = cut(text, chars_max), cut_start(text, chars_max)

    assert max(len(begun), len(ended)) <= max(chars_max, 1)
    assert text.startswith(begun.removesuffix("…"))
    assert text.endswith(ended.removeprefix("…"))
    assert (begun == text) is (len(text) <= chars_max)


@pytest.mark.requirement("text:formats")
@given(st.text(min_size=201, max_size=400))
def test_of_a_text_that_loses_its_middle_both_ends_stay(text: str) -> None:
    shown = cut_middle(text, 200)

    head, _, tail = shown.partition(f"\n… ({len(text) - 200} characters left out) …\n")
    assert len(shown) <= 200
    assert text.startswith(head)
    assert tail
    assert text.endswith(tail)


@pytest.mark.requirement("text:formats")
def test_a_shortened_text_says_how_much_is_missing_and_where_the_whole_is() -> None:
    assert shortened("abcdef", 4) == "abcd… (2 more characters)"
    assert shortened("abcdef", 4, "result r-1") == "abcd… (2 more characters: result r-1)"
    assert (shortened("abcd", 4), shortened(None, 4)) == ("abcd", None)


@pytest.mark.requirement("announcement:untrusted")
@given(st.text(alphabet="`a\n ", max_size=60))
def test_nothing_ends_a_quote_from_the_inside(text: str) -> None:
    first, *inside, last = fence(text).split("\n")

    assert first == last
    assert first.strip("`") == ""
    assert "\n".join(inside) == text
    assert first not in "\n".join(inside)


@pytest.mark.requirement("announcement:untrusted")
@given(TEXTS)
def test_a_quoted_text_is_whole_either_on_its_line_or_in_a_fence(text: str) -> None:
    assert quoted(text) in {f'"{text}"', f"says:\n{fence(text)}"}


@pytest.mark.requirement("text:formats")
def test_a_long_list_names_some_and_counts_the_rest() -> None:
    assert listed(["a", "b\nc"], 2) == "a, b c"
    assert listed(["a", "b", "c"], 2) == "a, b and 1 more"
    assert listed(["a"], 2, total=9) == "a and 8 more"


@pytest.mark.requirement("text:formats")
def test_nouns_follow_their_number() -> None:
    assert [counted(n, "error") for n in (0, 1, 2)] == ["0 errors", "1 error", "2 errors"]
    assert counted(3, "try", "tries") == "3 tries"


@pytest.mark.requirement("budget:shown")
@pytest.mark.parametrize(
    ("usd", "text"),
    [(0.5, "$0.50"), (0, "$0.00"), (0.004, "$0.004"), (12.345, "$12.35"), (5e-06, "$0.000005")],
)
def test_a_cost_is_never_shown_as_nothing(usd: float, text: str) -> None:
    assert money(usd) == text


@pytest.mark.requirement("budget:shown")
@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1k"),
        (4_200, "4.2k"),
        (80_000, "80k"),
        (999_949, "999.9k"),
        (999_999, "1M"),
        (1_500_000, "1.5M"),
    ],
)
def test_tokens_are_shown_short(count: int, text: str) -> None:
    assert compact(count) == text


@pytest.mark.requirement("text:formats")
def test_sizes_are_shown_in_the_largest_unit_that_fits() -> None:
    shown = [size(each) for each in (1, 1_023, 1_536, 3_355_443, 40 * 1024**3)]
    assert shown == ["1 byte", "1023 bytes", "1.5 KiB", "3.2 MiB", "40.0 GiB"]


@pytest.mark.requirement("announcement:text")
@pytest.mark.requirement("cli:plain")
@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (-5, "0ms"),
        (850, "850ms"),
        (1_000, "1s"),
        (3_490, "3.4s"),
        (12_999, "12s"),
        (60_000, "1m"),
        (185_000, "3m 5s"),
        (3_600_000, "1h"),
        (7_800_000, "2h 10m"),
        (200_000_000, "2d 7h"),
    ],
)
def test_times_are_shown_as_precisely_as_they_matter(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text


@pytest.mark.requirement("text:formats")
@given(st.integers(0, DURATION_MS_MAX))
def test_a_duration_that_is_shown_is_read_back_as_at_most_itself(milliseconds: int) -> None:
    read = parse_duration(duration(milliseconds).replace(" ", ""), field="x")

    assert 0 <= milliseconds - read <= max(milliseconds // 24, 1_000)


@pytest.mark.requirement("digest:now")
@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (-5, "0s ago"),
        (999, "0s ago"),
        (3_490, "3s ago"),
        (30_400, "30s ago"),
        (185_000, "3m 5s ago"),
    ],
)
def test_an_age_is_told_in_whole_seconds(milliseconds: int, text: str) -> None:
    assert age(milliseconds) == text


@pytest.mark.requirement("text:formats")
@given(st.integers(0, 4_102_444_800_000))
def test_a_time_is_iso_8601_in_utc_and_loses_no_millisecond(at_ms: int) -> None:
    moment = datetime.fromisoformat(iso(at_ms))

    assert moment.utcoffset() == timedelta(0)
    assert round(moment.timestamp() * 1_000) == at_ms
    assert clock(at_ms) == iso(at_ms)[11:19]


@pytest.mark.requirement("log:since")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("5m", NOW_MS - 300_000),
        ("2d", NOW_MS - 172_800_000),
        ("90", NOW_MS - 90_000),
        ("PT1H", NOW_MS - 3_600_000),
        ("2023-11-14T22:13:20Z", NOW_MS),
        ("2023-11-14T22:13:20+00:00", NOW_MS),
        ("2023-11-14T23:13:20+01:00", NOW_MS),
        ("2023-11-14T22:13:20.500Z", NOW_MS + 500),
    ],
)
def test_since_is_a_duration_or_a_time(text: str, found: int) -> None:
    assert parse_time(text, now_ms=NOW_MS, field="since") == found


@pytest.mark.requirement("log:since")
def test_a_time_without_a_zone_is_one_of_this_machine() -> None:
    local = datetime.fromtimestamp(NOW_MS / 1000, tz=UTC).astimezone().replace(tzinfo=None)
    assert parse_time(local.isoformat(), now_ms=0, field="since") == NOW_MS
    midnight = local.replace(hour=0, minute=0, second=0).timestamp() * 1000
    assert parse_time(local.date().isoformat(), now_ms=0, field="since") == midnight
    assert parse_time("today", now_ms=NOW_MS, field="since") == midnight
    before = (local.replace(hour=0, minute=0, second=0) - timedelta(days=1)).timestamp() * 1000
    assert parse_time(" Yesterday ", now_ms=NOW_MS, field="since") == before


@pytest.mark.requirement("cli:next-time")
def test_what_is_to_come_is_said_by_its_day_and_this_machines_clock() -> None:
    now = datetime(2026, 11, 20, 22, 30).astimezone()

    def said(**later: int) -> str:
        return upcoming((now + timedelta(**later)).timestamp() * 1000, now.timestamp() * 1000)

    assert [said(seconds=-5), said(minutes=35), said(minutes=75)] == [
        *("in 0ms", "in 35m", "today 23:45"),
    ]
    assert [said(minutes=90), said(hours=49), said(days=3), said(days=7)] == [
        *("tomorrow 00:00", "Sun 23:30", "Mon 22:30", "2026-11-27 22:30"),
    ]


@pytest.mark.requirement("cli:answer-in-place")
@pytest.mark.parametrize(
    ("typed", "options", "meant"),
    [
        *(("2", ["a", "b"], "b"), ("3", ["a", "b"], "3"), ("b", [], "b")),
        *(("1", ["0", "1"], "1"), ("2", ["1", "4"], "2")),
    ],
)
def test_a_number_names_an_option_unless_options_are_numbers(
    typed: str, options: list[str], meant: str
) -> None:
    assert chosen(typed, options) == meant
