"""Search the texts of lines for a regular expression that anybody may have written.

RE2 answers in time linear in the text: no pattern makes it try combinations, and other threads run
while it looks. Linear may still be slow (a long pattern full of counts visits each letter some
thousand times), so a whole search has a deadline.
"""

import re
import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import re2  # type: ignore[import-untyped]  # it brings no types

from subagents.domain.transcript.transcript_query import GREP_CHARS_MAX, Hits, LogQuery
from subagents.errors import UsageError
from subagents.store.transcripts.record_search import NOTHING, Found, record_search
from subagents.store.transcripts.segments import Row, Turns, first_seq, rows_of

SEARCH_S: Final = 5.0
HITS_S: Final = 1.0
HITS_MAX: Final = 100
ROWS_AT_ONCE: Final = 10
"""Searched between two looks at the clock: the worst pattern takes 0.25 s for the longest line."""
_PART_CHARS_MAX: Final = 60
_PLAIN: Final = re.compile(r'[^\\.+*?()|\[\]{}^$"\x00-\x1f\x7f]+')
"""A pattern that is a word: no operators, and JSON writes it as it is."""


class Pattern(NamedTuple):
    """What to look for."""

    matching: Any
    """An ``re2.Set`` of one: it says whether a text matches, and does not work out where."""
    word: str | None
    """The pattern, if it is nothing but a word: finding that takes a tenth of the time."""
    source: str


class _Construct(NamedTuple):
    """Something of other engines' patterns that RE2 does not have."""

    seen: re.Pattern[str]
    """What RE2 says about it: its error, a colon, the part of the pattern."""
    name: str
    way_out: str


_NO_MEMORY: Final = "search for the part that is always the same, and look through what is found"
_CONSTRUCTS: Final = tuple(
    _Construct(re.compile(seen), name, way_out)
    for seen, name, way_out in (
        (r"perl operator: \(\?[=!]", "a lookahead", _NO_MEMORY),
        (r"perl operator: \(\?<[=!]", "a lookbehind", _NO_MEMORY),
        (r"escape sequence: \\[1-9]|perl operator: \(\?P$", "a backreference", _NO_MEMORY),
        (r"perl operator: \(\?>", "an atomic group", "(?:…) finds the same or more"),
        (r"perl operator: \(\?\(", "a condition", "write both cases: a|b"),
        (r"repetition operator: \S+\+$", "a possessive repetition", "a+ finds the same or more"),
        (r"escape sequence: \\Z", r"\Z", r"the end of the text is \z, or $"),
        (r"escape sequence: \\[uUN]", r"\u, \U or \N", r"write \x{e4}, or the character itself"),
    )
)
_SYNTAX: Final = "put \\ before a character that is meant as it is"


def pattern(text: str) -> Pattern:
    """Compile a pattern: RE2's syntax, on Unicode; ``(?i)`` at its beginning ignores case.

    Args:
        text: At most ``GREP_CHARS_MAX`` characters.

    Raises:
        UsageError: No regular expression of RE2's; the message quotes the part that is wrong and
            ``details.part`` has it.
    """
    if len(text) > GREP_CHARS_MAX:
        raise UsageError(
            f"grep: a pattern has at most {GREP_CHARS_MAX:,} characters, not {len(text):,}",
            details={"field": "grep", "chars": len(text), "charsMax": GREP_CHARS_MAX},
        )
    options = re2.Options()
    options.log_errors = False
    matching = re2.Set.SearchSet(options)
    try:
        re2.compile(text, options)  # says what is wrong, which a set does not
        matching.Add(text)
        matching.Compile()
    except re2.error as error:
        raise _refusal(bytes(error.args[0]).decode("utf-8", "replace")) from error
    except UnicodeEncodeError as error:
        raise _refusal(f"not Unicode text: {text!a}") from error
    re2.purge()  # it would keep the last 128, with up to 8 MiB each
    return Pattern(matching, text if _PLAIN.fullmatch(text) else None, text)


def _refusal(error: str) -> UsageError:
    """``error`` is RE2's error: ``what: part of the pattern``."""
    what, _, part = error.partition(": ")
    part = part[:_PART_CHARS_MAX]
    why, way_out = f"{what}{part and f', in {part}'}", _SYNTAX
    for construct in _CONSTRUCTS:
        if construct.seen.search(error):
            why, way_out = f"{construct.name} is not possible here, in {part}", construct.way_out
    return UsageError(
        f"grep: {why}", hint=way_out, details={"field": "grep", "part": part} if part else None
    )


def hits(
    wanted: Pattern, texts: Sequence[str], *, now: Callable[[], float] = time.monotonic
) -> tuple[Hits, ...]:
    """Where the pattern matches in each text, at most ``HITS_MAX`` times.

    Working that out takes longer than to see that it does: texts that come after ``HITS_S`` have
    none, which is no error, since it only helps the eye.
    """
    options = re2.Options()
    options.log_errors = False
    compiled = re2.compile(wanted.source, options)
    re2.purge()
    due = now() + HITS_S
    return tuple(_hits_in(compiled, text) if now() < due else () for text in texts)


def _hits_in(compiled: Any, text: str) -> Hits:
    found = (match.span() for match in compiled.finditer(text))
    return tuple(islice((each for each in found if each[0] < each[1]), HITS_MAX))


class Search:
    """One search through many lines, with a deadline from its beginning.

    Args:
        wanted: What for.
        query: Of which lines; its window is the caller's.
        lowest: The number of the first line that is looked at.
        now: Seconds, of any clock that does not jump.
    """

    def __init__(
        self,
        wanted: Pattern,
        query: LogQuery,
        *,
        lowest: int = 1,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._matches, self._word = wanted.matching.Match, wanted.word
        self._encoded = (wanted.word or "").encode()
        self._records = record_search(wanted.source, query.types, query.attempt)
        self._query = query
        self._lowest = lowest
        self._now = now
        self._due = now() + SEARCH_S
        self._turns = Turns()

    def find(self, data: bytes) -> Found:
        """The lines that match among these records.

        Raises:
            UsageError: The search takes too long.
        """
        if self._encoded not in data:
            return NOTHING
        first = first_seq(data)
        # A text with an escape, or with a NUL, is not written as it is (`record_search`).
        is_written = b"\\" not in data and b"\0" not in data
        if self._records is None or first is None or first < self._lowest or not is_written:
            return self._decoded(data)
        self._check(first)
        return self._records.find(data)

    def _decoded(self, data: bytes) -> Found:
        rows = fitting(rows_of(data), self._query, self._lowest)
        if self._records is None or not rows:
            found = self.matching(rows)
            return Found(len(found), lambda: found)
        self._check(rows[0].seq)
        one_line = [row for row in rows if "\n" not in row.text]
        others = self.matching([row for row in rows if "\n" in row.text])
        several = Found(len(others), lambda: others)
        return self._records.among(one_line).beside(several)

    def matching(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Those whose text matches, in order.

        Raises:
            UsageError: The search takes too long.
        """
        found: list[Row] = []
        for at in range(0, len(rows), ROWS_AT_ONCE):
            self._check(rows[at].seq)
            self._turns.give()
            part = rows[at : at + ROWS_AT_ONCE]
            if self._word is None:
                found += [row for row in part if self._matches(row.text.encode())]
            else:
                found += [row for row in part if self._word in row.text]
        return found

    def _check(self, seq: int) -> None:
        if self._now() > self._due:
            lines = seq - self._lowest
            raise UsageError(
                f"grep: stopped after {SEARCH_S:g} s and {lines:,} lines",
                hint="look at fewer lines (since, type, attempt), or name a word they contain",
                details={"field": "grep", "linesSearched": lines},
            )


def fitting(rows: Sequence[Row], query: LogQuery, lowest: int) -> Sequence[Row]:
    """Those from ``lowest`` on, of the types and the attempt that are wanted."""
    if rows and rows[0].seq < lowest:
        rows = [row for row in rows if row.seq >= lowest]
    if query.types:
        rows = [row for row in rows if row.type in query.types]
    if query.attempt is not None:
        rows = [row for row in rows if row.attempt == query.attempt]
    return rows
