"""Any pattern is answered in time: with lines, or with what is wrong with it."""

import time

import pytest
import regex  # type: ignore[import-untyped]  # it brings no types
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from subagents.domain.transcript.transcript_query import GREP_CHARS_MAX
from subagents.errors import UsageError
from subagents.store.transcripts import grep
from subagents.store.transcripts.grep_plan import plan
from subagents.store.transcripts.segments import Row

CATASTROPHIC = ["(a|aa)+$", "(a|a)*$", "(?=a)(a|aa)+$", "^(a|aa)*$"]
SLOW_TEXT = "a" * 30 + "!"


def rows(*texts: str) -> list[Row]:
    return [
        Row(seq=seq, ts=seq, type="text", attempt=1, text=text) for seq, text in enumerate(texts, 1)
    ]


def found(pattern: str, *texts: str) -> list[str]:
    search = grep.Search(grep.pattern(pattern))
    return [row.text for row in search.matching(rows(*texts))]


@pytest.mark.requirement("grep:bad-pattern")
@pytest.mark.parametrize(
    ("pattern", "why", "position"),
    [
        ("[", "missing ]", 0),
        ("ab[c", "missing ]", 2),
        ("[]a", "missing ]", 0),
        ("[^]a", "missing ]", 0),
        ("(", "missing )", 0),
        ("x(a(b)", "missing )", 1),
        (r"\((a", "missing )", 2),
        ("a)", "there is no ( for this )", 1),
        ("*", "nothing to repeat", 0),
        ("a**", "this repeats a repetition", 2),
        ("a{2,1}", "the least is more than the most", 2),
        ("\\", "nothing follows \\", 0),
        (r"a\Q", r"bad escape \Q", 1),
        (r"\x1", r"incomplete escape \x1", 0),
        ("[z-a]", "the range ends before it begins", 4),
        ("(?z)", "unknown kind of group", 2),
        (r"(a)\2", "there is no such group", 5),
        ("(" * 900, "it is nested too deeply, or counts too far", 0),
        (r"\p{Foo}", "unknown property", 7),
        ("(a+)+$", "it repeats what repeats already, which could take for ever", 0),
        ("x((a*))*", "it repeats what repeats already, which could take for ever", 1),
    ],
)
def test_a_pattern_that_is_none_is_refused_with_the_reason_and_the_place(
    pattern: str, why: str, position: int
) -> None:
    with pytest.raises(UsageError) as refused:
        grep.pattern(pattern)

    assert refused.value.message == f"grep: {why}, at position {position}"
    assert refused.value.details == {"field": "grep", "position": position}


@pytest.mark.requirement("grep:bad-pattern")
def test_a_pattern_that_is_too_long_is_refused() -> None:
    assert grep.pattern("a" * GREP_CHARS_MAX)
    with pytest.raises(UsageError, match="at most 1,000 characters, not 1,001"):
        grep.pattern("a" * (GREP_CHARS_MAX + 1))


@pytest.mark.requirement("grep:catastrophic")
@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_a_catastrophic_pattern_is_stopped_and_told_of(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = grep.pattern(pattern)
    monkeypatch.setattr(wanted, "linear", None)

    began = time.process_time()
    with pytest.raises(UsageError, match=r"needs more than 0\.1 s for one line") as refused:
        grep.Search(wanted).matching(rows("first", SLOW_TEXT))

    assert time.process_time() - began < 0.25
    assert "(a|aa)+" in str(refused.value.hint)


@pytest.mark.requirement("grep:catastrophic")
def test_the_example_of_every_book_is_refused_before_a_line_is_read() -> None:
    began = time.process_time()
    with pytest.raises(UsageError, match="repeats what repeats already") as refused:
        found("(a+)+$", SLOW_TEXT)

    assert time.process_time() - began < 0.1
    assert "a+" in str(refused.value.hint)


@pytest.mark.requirement("grep:re2")
@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("(a|aa)+$", ["baa", "aa"]),
        ("^(a|aa)*$", ["aa"]),
        ("(a|a)*$", [SLOW_TEXT, "b", "baa", "aa"]),
    ],
)
def test_with_re2_installed_a_catastrophic_pattern_is_answered(
    pattern: str, matching: list[str]
) -> None:
    pytest.importorskip("re2")

    assert found(pattern, SLOW_TEXT, "b", "baa", "aa") == matching
    # A text that some of a pattern's classes mean differently there is not shown to it.
    with pytest.raises(UsageError):
        found(pattern, SLOW_TEXT + "ä")


@pytest.mark.requirement("grep:deadline")
def test_a_search_that_takes_too_long_says_how_far_it_got() -> None:
    now = [0.0]
    search = grep.Search(grep.pattern("b"), now=lambda: now[0])
    search.matching(rows("a", "b"))
    now[0] = grep.SEARCH_S + 0.1

    with pytest.raises(UsageError, match="stopped after 5 s and 2 lines") as refused:
        search.matching(rows("c"))

    assert refused.value.details == {"field": "grep", "linesSearched": 2}
    assert "since" in str(refused.value.hint)


@pytest.mark.requirement("grep:other-threads")
def test_no_question_keeps_the_other_threads_waiting() -> None:
    """What is asked without a clock ends within so many steps; all else lets the others run."""
    for pattern in ("a.*b.*c", "[ab]+c", "x{1,20}y", "(a|b)?c", r"\d+ \w+ \d+ \w+ z"):
        known = grep.pattern(pattern)
        assert known.plan is not None
        assert known.plan.steps(known.chars_max) <= grep.STEPS_MAX
    assert grep.pattern("(a|aa)+$").chars_max == 0
    assert grep.pattern("(a.*){3}b").chars_max == 0
    assert grep.pattern(r"(\w+) \1").chars_max == 0
    assert grep.pattern("(?=.*a)b").chars_max == 0
    assert grep.pattern("plain").chars_max >= 1000


# -- what is found without asking is what would be found by asking --------------------------------

ATOMS = st.sampled_from(
    ["a", "b", "k", "K", "s", "ä", "0", " ", ".", r"\d", r"\w", r"\W", r"\S", r"\s", "[ab]", "[^a]",
     r"[\Wa]", "[]a]", "[^]]", "[a-c0]", r"\.", r"\n", r"\x61", r"\u00e4", "^", "$", r"\b", r"\B",
     r"\A", r"\Z", "ab", "foo", "(ab)", "(?:a|b)", "(a|)", "(foo|bar)", "((a))", "(?i:A)", "(?=a)",
     "(?!b)", "(?<=a)", "-", '"', r"\\", "(?P<n>a)", r"(a)\1", "{", "}", "#", "é", "ſ", "İ"]
)  # fmt: skip
REPEATS = st.sampled_from(
    [
        "",
        "",
        "",
        "*",
        "+",
        "?",
        "*?",
        "+?",
        "??",
        "{2}",
        "{1,}",
        "{,2}",
        "{1,2}",
        "++",
        "*+",
        "{2,}+",
    ]
)
SEQUENCES = st.lists(st.tuples(ATOMS, REPEATS).map("".join), max_size=4).map("".join)
PATTERNS = st.builds(
    str.__add__,
    st.sampled_from(["", "", "", "(?i)", "(?s)", "(?m)", "(?im)", "(?x)"]),
    st.lists(SEQUENCES, min_size=1, max_size=3).map("|".join),
)
TEXTS = st.lists(st.text('abkKsSfoor0 .äÄé\n"\\-#İſK', max_size=8), max_size=6)


@pytest.mark.requirement("grep:exact")
@settings(max_examples=1500, deadline=None)
@given(PATTERNS, TEXTS)
@example("(?i)k", ["K", "k", "K"])
@example("(?i)s", ["ſ", "S"])
@example("^a|b", ["ba", "ab"])
@example("a+b", ["aab", "b"])
@example(".*", ["", "\n"])
@example('"', ['"'])
def test_a_search_finds_what_the_library_finds_line_by_line(pattern: str, texts: list[str]) -> None:
    try:
        compiled = regex.compile(pattern)
        wanted = grep.Pattern(pattern)
    except (regex.error, UsageError):
        assume(False)
    expected = [text for text in texts if compiled.search(text)]

    assert [row.text for row in grep.Search(wanted).matching(rows(*texts))] == expected


@pytest.mark.requirement("grep:exact")
@settings(max_examples=500, deadline=None)
@given(PATTERNS, TEXTS)
def test_lines_of_json_that_are_passed_over_hold_nothing_that_matches(
    pattern: str, texts: list[str]
) -> None:
    from msgspec import json  # noqa: PLC0415

    try:
        compiled, wanted = regex.compile(pattern), grep.Pattern(pattern)
    except (regex.error, UsageError):
        assume(False)
    data = json.encode(rows(*texts))

    assert wanted.can_be_in(data) or not any(compiled.search(text) for text in texts)


@pytest.mark.requirement("grep:exact")
@pytest.mark.parametrize(
    ("pattern", "words", "is_exact"),
    [
        ("error", ("error",), True),
        ("foo|bar", ("bar", "foo"), True),
        (r"\w+\.py:\d+", (".py:",), False),
        ("(?i)ERROR 42", ("error 42",), False),
        ("(?i)kiss", (), False),
        ("a*", (), False),
        (r"fail(ed|ure)s?", ("fail",), False),
    ],
)
def test_words_that_a_match_contains_are_known(
    pattern: str,
    words: tuple[str, ...],
    is_exact: bool,  # noqa: FBT001  # pytest gives it by name
) -> None:
    known = plan(pattern)

    assert known is not None
    assert (known.literals, known.is_exact) == (words, is_exact)
