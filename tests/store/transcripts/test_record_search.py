"""Searching records as they are written finds what decoding each of them would find."""

import hashlib
import itertools
import threading

import pytest
import re2  # type: ignore[import-untyped]  # it brings no types
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from msgspec.json import encode

from subagents.domain.run.worker_output import LineType
from subagents.domain.transcript.transcript_query import LogQuery
from subagents.errors import UsageError
from subagents.store.transcripts import grep, record_search
from subagents.store.transcripts.record_search import rewritten
from subagents.store.transcripts.segments import Row, rows_of

ROWS = st.builds(
    Row,
    seq=st.just(0),
    ts=st.integers(0, 99),
    type=st.sampled_from(list(LineType)),
    attempt=st.integers(1, 3),
    text=st.one_of(
        st.text("ab1 [,]", max_size=8),
        st.text('ab1 .-]^"\\\n\t\0\x1b\x7fäKſ𝄞', max_size=8),
        st.sampled_from(["\x1b[31mab\x1b[0m", "[1,2,", '","text",1,"', "]", "text", "a b", ""]),
    ),
)
ODD_LINES = st.sampled_from(
    [
        b'{"seq":3,"ts":7,"positions":{"1/out":9}}\n',
        b'{"seq":3,"ts":7,"watch":{"a":["[1,2,","text",1,"a"]}}\n',
        b'[7,8,"text",1,"a torn o\n',
        b'[7,8,"[9,9,"text",1,"a"]\n',
        b'[7,8,"text",1,"\xff a"]\n',
        b'[7,8,"text",1,"\\ud834\\udd1e a"]\n',
        b'[7,8,"text",1,"\\ud800 a"]\n',
        b'[7,8,"nobody",1,"a"]\n',
        b'[7,8,"text",1,"a\0[7,8,"text",1,"a"]\n',
        b"\n",
        b"a\n",
    ]
)
ATOMS = st.sampled_from(
    ["a", "b", "1", " ", ".", r"\d", r"\w", r"\W", r"\S", r"\s", r"\D", "[ab]", "[^a]", "[^-a]",
     "[-a]", "[a-]", "[]a]", "[^]a]", "[^^]", r"[^\]]", r"[\s1]", r"[^\s]", r"[\\s]", "^", "$",
     r"\b", r"\B", r"\A", r"\z", "(ab)", "(?:a|b)", "(?i:A)", "(?i)", "(?-i)", "-", '"', r"\"",
     r"\\", r"\.", "(?P<n>a)", "ä", "(?i:K)", r"\x61", r"\n", "[[:alpha:]]", "]", ",", "text"]
)  # fmt: skip
REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "*?", "??", "{2}", "{1,}", "{0,2}"])
SEQUENCES = st.lists(st.tuples(ATOMS, REPEATS).map("".join), max_size=4).map("".join)
PATTERNS = st.builds(
    "{}{}".format,
    st.sampled_from(["", "", "", "(?i)", "(?s)", "(?m)"]),
    st.lists(SEQUENCES, min_size=1, max_size=3).map("|".join),
)
QUERIES = st.builds(
    LogQuery,
    types=st.sampled_from([(), (), (LineType.TEXT,), (LineType.TOOL, LineType.ERROR)]),
    attempt=st.none() | st.integers(1, 3),
)


@st.composite
def slices_of_records(draw: st.DrawFn) -> bytes:
    """Records with numbers that grow, and what may stand between them."""
    lines = []
    for number, row in zip(itertools.count(1, 10), draw(st.lists(ROWS, max_size=40))):
        lines.append(encode(Row(number, row.ts, row.type, row.attempt, row.text)) + b"\n")
        if draw(st.integers(0, 9)) == 0:
            lines.append(draw(ODD_LINES).replace(b"[7,", b"[%d," % (number + 1)))
    return b"".join(lines)


def one_by_one(wanted: grep.Pattern, query: LogQuery, data: bytes) -> list[Row]:
    return [
        row
        for row in rows_of(data)
        if query.attempt in {None, row.attempt}
        and (not query.types or row.type in query.types)
        and wanted.matching.Match(row.text.encode())
    ]


@pytest.mark.requirement("grep:exact")
@settings(max_examples=2_000, deadline=None)
@given(PATTERNS, QUERIES, slices_of_records(), st.sampled_from([1, 2, 64]))
@example("a", LogQuery(), b'[1,2,"text",1,"a"]\n' * 200, 64)
def test_what_is_found_is_what_decoding_each_line_finds(
    pattern: str, query: LogQuery, data: bytes, many: int
) -> None:
    try:
        wanted = grep.pattern(pattern)
    except UsageError:
        assume(False)
    expected = one_by_one(wanted, query, data)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(record_search, "MANY", many)
        search = grep.Search(wanted, query)

        for found in (search.find(data), search.find(data)):
            assert (found.lines, list(found.rows())) == (len(expected), expected)


@pytest.mark.requirement("grep:cost")
@pytest.mark.parametrize(
    "pattern",
    ["error", "(?i)ERROR", r"\d{4}ms$", r"\w+ \w+ 77", "quick|needle", "^99", r"[^\s]+\s*=", r"\W"],
)
def test_usual_patterns_are_looked_for_without_decoding_what_does_not_match(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[bytes] = []

    def rows(data: bytes) -> list[Row]:
        decoded.append(data)
        return rows_of(data)

    monkeypatch.setattr(grep, "rows_of", rows)
    search = grep.Search(grep.pattern(pattern), LogQuery())
    data = b"".join(b'[%d,7,"text",1,"99 needle77 error = 1234ms"]\n' % n for n in range(1, 2_000))

    search.find(data)

    assert decoded == []


@pytest.mark.requirement("grep:cost")
@pytest.mark.parametrize(("every", "calls"), [(10_000, 1), (50, 41), (20, 9), (1, 80)])
def test_re2_is_called_less_than_once_for_a_line_that_matches(
    every: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a slice of 2,000 lines; where many match, from the second slice on."""
    search = record_search.record_search("needle", (), None)
    assert search is not None
    words = ("needle" if number % every == 0 else "hay" for number in range(1, 2_001))
    data = b"".join(b'[1,7,"text",1,"%s"]\n' % word.encode() for word in words)
    search.find(data)
    made = [0]
    regexp = type(re2.compile("a"))
    match = regexp.match

    def counted(*args: object) -> object:
        made[0] += 1
        return match(*args)

    monkeypatch.setattr(regexp, "match", counted)
    assert search.find(data).lines == 2_000 // every

    assert made[0] <= calls


@pytest.mark.requirement("grep:cost")
def test_lines_with_escapes_are_looked_through_together(monkeypatch: pytest.MonkeyPatch) -> None:
    search = grep.Search(grep.pattern('say."x+"'), LogQuery())
    looked_at: list[Row] = []

    def one_after_the_other(rows: list[Row]) -> list[Row]:
        looked_at.extend(rows)
        return []

    monkeypatch.setattr(search, "matching", one_after_the_other)
    rows = [Row(n, 7, LineType.TEXT, 1, f'say\t"{"x" * (n % 2)}"') for n in range(1, 2_000)]
    data = b"".join(encode(row) + b"\n" for row in rows)

    assert [search.find(data).lines for _ in range(2)] == [1_000, 1_000]
    assert list(search.find(data).rows()) == rows[::2]
    assert looked_at == []


@pytest.mark.requirement("grep:exact")
@pytest.mark.parametrize(
    "pattern", [r"a\nb", "[]a]", "[^]a]", "(?s)a.b", r"\x0a", r"\pL", "[[:space:]]", r"\Q.\E"]
)
def test_a_pattern_of_which_nobody_knows_whether_it_crosses_a_line_is_left_alone(
    pattern: str,
) -> None:
    assert rewritten(pattern) is None


@pytest.mark.requirement("grep:deadline")
@pytest.mark.parametrize("pattern", ["(?:a.{400}){2}c", "[ab].{900}$"])
def test_a_pattern_that_is_slow_in_a_whole_slice_goes_line_by_line(pattern: str) -> None:
    assert record_search.record_search(pattern, (), None) is None


@pytest.mark.requirement("grep:other-threads")
def test_other_threads_run_while_a_slice_is_looked_through() -> None:
    search = record_search.record_search("(?:0.{30}1){2}c", (), None)
    assert search is not None
    text = f"{int.from_bytes(hashlib.shake_256().digest(12_500)):b}".encode()
    data = b'[1,7,"text",1,"%s"]\n' % text
    turns, done = [0], threading.Event()

    def other() -> None:
        while not done.is_set():
            turns[0] += 1

    thread = threading.Thread(target=other)
    thread.start()
    try:
        before = turns[0]
        assert search.find(data).lines == 0
        assert turns[0] > before + 1_000
    finally:
        done.set()
        thread.join()
