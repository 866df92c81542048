"""Any pattern is answered in time: with lines, or with what is wrong with it."""

import re
import threading
import time
from collections.abc import Sequence

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from msgspec import json

from subagents.domain.run.worker_output import LINE_CHARS_MAX, LineType
from subagents.domain.transcript.transcript_query import GREP_CHARS_MAX, LogQuery
from subagents.errors import UsageError
from subagents.store.transcripts import grep
from subagents.store.transcripts.segments import Row

CATASTROPHIC = ["(a+)+$", "(a|aa)+$", "(a|a)*$", "((a*))*$", "^(a|aa)*$"]
LARGEST = "[ab].{900}$"
"""Its states do not fit in RE2's memory: the slowest kind of pattern there is."""


def rows(*texts: str, first: int = 1) -> list[Row]:
    return [
        Row(seq=seq, ts=seq, type=LineType.TEXT, attempt=1, text=text)
        for seq, text in enumerate(texts, first)
    ]


def written_as(found: Sequence[Row]) -> list[bytes]:
    return [json.encode(row) + b"\n" for row in found]


def found(pattern: str, *texts: str) -> list[str]:
    search = grep.Search(grep.pattern(pattern), LogQuery())
    return [row.text for row in search.matching(rows(*texts))]


@pytest.mark.requirement("grep:bad-pattern")
@pytest.mark.parametrize(
    ("pattern", "why", "part"),
    [
        ("ab[c", "missing ], in [c", "[c"),
        ("x(a(b)", "missing ), in x(a(b)", "x(a(b)"),
        ("a)", "unexpected ), in a)", "a)"),
        ("*", "no argument for repetition operator, in *", "*"),
        ("a**", "bad repetition operator, in **", "**"),
        ("a{2,1}", "invalid repetition size, in {2,1}", "{2,1}"),
        ("x{1001}", "invalid repetition size, in {1001}", "{1001}"),
        ("\\x1", "invalid escape sequence, in \\x1", "\\x1"),
        ("[z-a]", "invalid character class range, in z-a", "z-a"),
        ("(?z)", "invalid perl operator, in (?z", "(?z"),
        ("(" * 900, f"missing ), in {'(' * 60}", "(" * 60),
    ],
)
def test_a_pattern_that_is_none_is_refused_with_the_reason_and_the_part_that_is_wrong(
    pattern: str, why: str, part: str
) -> None:
    with pytest.raises(UsageError) as refused:
        grep.pattern(pattern)

    assert refused.value.message == f"grep: {why}"
    assert refused.value.details == {"field": "grep", "part": part}
    assert refused.value.hint == "put \\ before a character that is meant as it is"


@pytest.mark.requirement("grep:bad-pattern")
@pytest.mark.parametrize("pattern", ["\\", "\ud800", "(\\pL{1,100}\\s?){1,10}"])
def test_what_cannot_be_a_pattern_at_all_is_refused_too(pattern: str) -> None:
    with pytest.raises(UsageError, match=r"^grep: "):
        grep.pattern(pattern)


@pytest.mark.requirement("grep:bad-pattern")
@pytest.mark.parametrize(
    ("pattern", "construct", "way_out"),
    [
        ("a(?=b)", "a lookahead is not possible here, in (?=", "look through what is found"),
        ("a(?!b)", "a lookahead is not possible here, in (?!", "look through what is found"),
        ("(?<=a)b", "a lookbehind is not possible here, in (?<=", "look through what is found"),
        ("(?<!a)b", "a lookbehind is not possible here, in (?<!", "look through what is found"),
        (r"(a)\1", r"a backreference is not possible here, in \1", "look through what is found"),
        ("(?P<n>a)(?P=n)", "a backreference is not possible here, in (?P", "look through"),
        ("(?>a)b", "an atomic group is not possible here, in (?>", "(?:…)"),
        ("(?(1)a|b)", "a condition is not possible here, in (?(", "a|b"),
        ("a++b", "a possessive repetition is not possible here, in ++", "a+"),
        (r"a\Z", r"\Z is not possible here, in \Z", r"\z"),
        (r"\u00e4", r"\u, \U or \N is not possible here, in \u", r"\x{e4}"),
    ],
)
def test_a_construct_of_other_engines_is_named_with_the_way_out(
    pattern: str, construct: str, way_out: str
) -> None:
    with pytest.raises(UsageError) as refused:
        grep.pattern(pattern)

    assert refused.value.message == f"grep: {construct}"
    assert way_out in str(refused.value.hint)


@pytest.mark.requirement("grep:bad-pattern")
def test_a_pattern_that_is_too_long_is_refused() -> None:
    assert grep.pattern("a" * GREP_CHARS_MAX)
    with pytest.raises(UsageError, match="at most 1,000 characters, not 1,001"):
        grep.pattern("a" * (GREP_CHARS_MAX + 1))


@pytest.mark.requirement("grep:catastrophic")
@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_a_pattern_that_a_backtracking_engine_never_finishes_is_answered_at_once(
    pattern: str,
) -> None:
    slow = "b" + "a" * (LINE_CHARS_MAX - 2) + "!"

    began = time.process_time()
    assert "aa" in found(pattern, *[slow] * 100, "aa")

    assert time.process_time() - began < 30


@pytest.mark.requirement("grep:deadline")
def test_a_search_that_takes_too_long_says_how_far_it_got() -> None:
    now = [0.0]
    search = grep.Search(grep.pattern("b"), LogQuery(), lowest=101, now=lambda: now[0])
    written = [b"".join(written_as(rows(*"abcd", first=first))) for first in (101, 105)]
    assert search.find(written[0]).lines == 1
    now[0] = grep.SEARCH_S + 0.1

    with pytest.raises(UsageError, match="stopped after 5 s and 4 lines") as refused:
        search.find(written[1])

    assert refused.value.details == {"field": "grep", "linesSearched": 4}
    assert "since" in str(refused.value.hint)


@pytest.mark.requirement("grep:other-threads")
def test_other_threads_run_while_the_slowest_pattern_looks_at_the_longest_line() -> None:
    line = ("ab b aab " * LINE_CHARS_MAX)[:LINE_CHARS_MAX]
    turns, done = [0], threading.Event()

    def other() -> None:
        while not done.is_set():
            turns[0] += 1

    thread = threading.Thread(target=other)
    thread.start()
    try:
        before = turns[0]
        assert found(LARGEST, line) == [line]
        assert turns[0] > before + 1_000
    finally:
        done.set()
        thread.join()


# -- what is found at once is what would be found line by line ------------------------------------

ATOMS = st.sampled_from(
    ["a", "b", "k", "s", "0", " ", ".", r"\d", r"\w", r"\W", r"\S", r"\s", "[ab]", "[^a]", "[]a]",
     "[^]]", "[a-c0]", r"\.", r"\n", r"\x61", "^", r"\b", r"\B", r"\A", "ab", "foo", "(ab)",
     "(?:a|b)", "(a|)", "(foo|bar)", "((a))", "(?i:A)", "-", '"', r"\\", "(?P<n>a)", "#"]
)  # fmt: skip
REPEATS = st.sampled_from(
    ["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,}", "{1,2}", "{2,}"]
)
SEQUENCES = st.lists(st.tuples(ATOMS, REPEATS).map("".join), max_size=4).map("".join)
PATTERNS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "", "", "(?i)", "(?s)", "(?m)", "(?im)"]),
    st.lists(SEQUENCES, min_size=1, max_size=3).map("|".join),
    st.sampled_from(["", "", "$"]),
)
TEXTS = st.lists(st.text('abkKsSfoor0 .\n"\\-#', max_size=8), max_size=6)


@pytest.mark.requirement("grep:exact")
@settings(max_examples=1500, deadline=None)
@given(PATTERNS, TEXTS)
@example("(?i)k", ["K", "k"])
@example("^a|b", ["ba", "ab"])
@example(".*", ["", "\n"])
@example('"', ['"'])
@example("foo", ["a\nfoo\n"])
def test_a_search_finds_what_pythons_own_engine_finds_in_ascii_texts(
    pattern: str, texts: list[str]
) -> None:
    # Without (?m), $ is the very end here, which Python calls \Z.
    theirs = pattern if "m)" in pattern else pattern.replace("$", r"\Z")
    try:
        compiled = re.compile(theirs, re.ASCII)
        wanted = grep.pattern(pattern)
    except (re.error, UsageError):
        assume(False)
    if r"\B" in pattern:
        texts = [text for text in texts if text]  # where Python's own finds none in an empty one
    expected = [text for text in texts if compiled.search(text)]
    search = grep.Search(wanted, LogQuery())

    assert [row.text for row in search.matching(rows(*texts))] == expected
    assert [row.text for row in search.find(b"".join(written_as(rows(*texts)))).rows()] == expected


@pytest.mark.requirement("grep:exact")
@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("ä", ["Bär"]),
        ("(?i)Ä", ["Bär"]),
        (r"B\x{e4}r", ["Bär"]),
        (r"^B.r$", ["Bär"]),
        (r"\pL{3}", ["Bär"]),
        (r"\w{3}", []),
        ("→ ok", ["→ ok\n"]),
        (r"ok$", []),
        (r"(?m)ok$", ["→ ok\n"]),
    ],
)
def test_other_letters_are_characters_and_classes_are_ascii(
    pattern: str, matching: list[str]
) -> None:
    assert found(pattern, "Bär", "→ ok\n") == matching


@pytest.mark.requirement("grep:exact")
@pytest.mark.parametrize("pattern", ["say", "ä", '"ä"', r"\\", "never", "b$"])
def test_a_word_is_found_however_json_writes_it(pattern: str) -> None:
    texts = ['say "ä"\\', "b"]
    data = b"".join(written_as(rows(*texts)))
    search = grep.Search(grep.pattern(pattern), LogQuery())

    assert [row.text for row in search.find(data).rows()] == found(pattern, *texts)


@pytest.mark.requirement("grep:hits")
def test_hits_are_counted_in_characters_and_an_empty_match_is_none() -> None:
    wanted = grep.pattern("b+|x*")
    assert grep.hits(wanted, ["ä😀bb b", "nothing"]) == (((2, 4), (5, 6)), ())
    assert len(grep.hits(grep.pattern("a"), ["a" * 8_000])[0]) == grep.HITS_MAX


@pytest.mark.requirement("grep:hits")
@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_after_their_time_texts_have_no_hits_and_no_error(pattern: str) -> None:
    clock = iter([0.0, 0.5, grep.HITS_S, grep.HITS_S + 1])
    found = grep.hits(grep.pattern(pattern), ["aa", "aa", "aa"], now=lambda: next(clock))
    assert found == (((0, 2),), (), ())
