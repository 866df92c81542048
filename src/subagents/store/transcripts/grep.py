"""Search the texts of lines for a regular expression that anybody may have written.

A pattern can be wrong, and it can take for ever: one line of 30 letters keeps a backtracking engine
busy for minutes. Where a pattern and the length of a line say that it ends soon (``grep_plan``), it
is just asked. Else the library watches the clock, lets other threads go on meanwhile, and whoever
asked is told what was too much. A whole search has a deadline, too.

Source: 4-observability §2; notes on libraries ("user grep patterns").
"""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, NoReturn

import msgspec
import regex  # type: ignore[import-untyped]  # it brings no types

from subagents.domain.run.worker_output import LINE_CHARS_MAX
from subagents.domain.transcript.transcript_query import GREP_CHARS_MAX
from subagents.errors import UsageError
from subagents.store.transcripts.grep_plan import Plan, Redundant, plan
from subagents.store.transcripts.segments import Row, Turns

LINE_S: Final = 0.1
"""For one line, in processor time; the library looks at its clock now and then."""
SEARCH_S: Final = 5.0
STEPS_MAX: Final = 300_000
"""So many need no clock: about 3 ms, in which no other thread of Python's runs."""
ROWS_AT_ONCE: Final = 100
"""Asked between two looks at the clock."""
_COMPILED_MAX: Final = 64
_UNLIKE_RE2: Final = regex.compile(r"[^\x00-\x7f]|[\x0b\x1c-\x1f]|\n\Z")
"""Texts in which some classes or ``$`` mean something else to RE2."""


class Pattern:
    """A compiled pattern and what is known of it; one for all searches.

    Args:
        text: At most ``GREP_CHARS_MAX`` characters.

    Raises:
        UsageError: No regular expression; ``details.position`` says where it stops being one.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.compiled: Any = _compile(text)
        try:
            self.plan: Plan | None = plan(text)
        except Redundant as error:
            _refuse(
                "it repeats what repeats already, which could take for ever",
                error.at,
                hint="repeat once: a+ finds all that (a+)+ finds",
            )
        self.search: Callable[[str], object] = regex.compile(
            self.plan.reduced if self.plan else text
        ).search
        """For texts of at most ``chars_max`` characters."""
        self.chars_max = _chars_max(self.plan)
        self.literals = self.plan.literals if self.plan else ()
        self.encoded = tuple(msgspec.json.encode(each)[1:-1] for each in self.literals)
        self.linear = _compile_linear(text)

    def can_be_in(self, data: bytes) -> bool:
        """False = no text in these lines of JSON matches."""
        if self.plan is not None and self.plan.ignores_case:
            data = data.lower()
        return not self.encoded or any(each in data for each in self.encoded)

    def candidates(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Without those whose text surely does not match.

        A pattern that is words is answered by this alone.
        """
        ignores_case = self.plan is not None and self.plan.ignores_case
        match self.literals:
            case (word,) if ignores_case:
                return [row for row in rows if word in row.text.lower()]
            case (word,):
                return [row for row in rows if word in row.text]
            case (word, other) if not ignores_case:
                return [row for row in rows if word in row.text or other in row.text]
        return rows

    @property
    def is_words(self) -> bool:
        """``candidates`` are the answer."""
        return self.plan is not None and self.plan.is_exact and len(self.literals) <= 2


def _chars_max(plan: Plan | None) -> int:
    """Texts up to this length take at most ``STEPS_MAX`` steps."""
    chars = 0
    while plan is not None and chars < LINE_CHARS_MAX and plan.steps(chars + 20) <= STEPS_MAX:
        chars += 20
    return chars


@lru_cache(_COMPILED_MAX)
def pattern(text: str) -> Pattern:
    """See ``Pattern``; compiled once.

    Raises:
        UsageError: No regular expression, or too long a one.
    """
    if len(text) > GREP_CHARS_MAX:
        raise UsageError(
            f"grep: a pattern has at most {GREP_CHARS_MAX:,} characters, not {len(text):,}",
            details={"field": "grep", "chars": len(text), "charsMax": GREP_CHARS_MAX},
        )
    return Pattern(text)


class Search:
    """One search through many lines, with a deadline from its beginning.

    Args:
        wanted: What for.
        now: Seconds, of any clock that does not jump.
    """

    def __init__(self, wanted: Pattern, *, now: Callable[[], float] = time.monotonic) -> None:
        self._wanted = wanted
        self._now = now
        self._due = now() + SEARCH_S
        self._linear_first = False
        self._turns = Turns()
        self.looked_at = 0
        """Lines so far, also those that needed no question."""

    def can_be_in(self, data: bytes) -> bool:
        """False = no line in there matches, and none need be decoded."""
        return self._wanted.can_be_in(data)

    def matching(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Those whose text matches, in order.

        Raises:
            UsageError: One line, or the search, takes too long.
        """
        self._check()
        wanted = self._wanted
        found = wanted.candidates(rows)
        if not wanted.is_words:
            parts = [found[at : at + ROWS_AT_ONCE] for at in range(0, len(found), ROWS_AT_ONCE)]
            found = [row for part in parts for row in self._asked(part)]
        self.looked_at += len(rows)
        return found

    def _asked(self, rows: Sequence[Row]) -> list[Row]:
        self._turns.give()
        self._check()
        chars_max, search, slowly = self._wanted.chars_max, self._wanted.search, self._matches
        return [row for row in rows if (search if len(row.text) <= chars_max else slowly)(row.text)]

    def _matches(self, text: str) -> bool:
        self._check()
        linear = self._wanted.linear
        can_be_linear = linear is not None and not _UNLIKE_RE2.search(text)
        if can_be_linear and self._linear_first:
            return linear.search(text) is not None
        try:
            found = self._wanted.compiled.search(text, concurrent=True, timeout=LINE_S)
        except TimeoutError:
            if not can_be_linear:
                self._too_slow()
            self._linear_first = True
            return linear.search(text) is not None
        return found is not None

    def _check(self) -> None:
        if self._now() > self._due:
            raise UsageError(
                f"grep: stopped after {SEARCH_S:g} s and {self.looked_at:,} lines",
                hint="look at fewer lines (since, type, attempt), or name a word they contain",
                details={"field": "grep", "linesSearched": self.looked_at},
            )

    def _too_slow(self) -> NoReturn:
        raise UsageError(
            f"grep: stopped, the pattern needs more than {LINE_S:g} s for one line",
            hint="repetitions inside repetitions, such as (a|aa)+, are tried in all combinations: "
            "write it without, or install subagents[re2], which does not try",
            details={"field": "grep", "linesSearched": self.looked_at},
        )


# -- patterns that are none ---------------------------------------------------------------------

_MEANT: Final = {
    "unterminated character set": "missing ]",
    "unbalanced parenthesis": "there is no ( for this )",
    "multiple repeat": "this repeats a repetition",
    "min repeat greater than max repeat": "the least is more than the most",
    "bad escape (end of pattern)": "nothing follows \\",
    "bad character range": "the range ends before it begins",
    "unknown extension": "unknown kind of group",
    "invalid group reference": "there is no such group",
}


def _compile(text: str) -> Any:
    try:
        return regex.compile(text)
    except regex.error as error:
        said = str(error.msg)
        at = len(text) if error.pos is None else error.pos
        if said in {"unterminated character set", "missing )"}:
            at = _left_open(text)
        elif said.startswith(("bad escape", "incomplete escape")):
            at = text.rfind("\\", 0, at)
        _refuse(_MEANT.get(said, said), at)
    except (RecursionError, OverflowError, MemoryError):
        _refuse("it is nested too deeply, or counts too far", 0)
    except (KeyError, TypeError, ValueError) as error:
        _refuse(str(error), 0)


def _compile_linear(text: str) -> Any:
    """The same for RE2, whose time grows with the text only; None where that cannot be."""
    try:
        import re2  # type: ignore[import,unused-ignore]  # noqa: PLC0415  # an extra
    except ImportError:
        return None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error:
        return None  # look-around, back-references


def _refuse(why: str, at: int, *, hint: str | None = None) -> NoReturn:
    raise UsageError(
        f"grep: {why}, at position {at}",
        hint=hint or "put \\ before a character that is meant as it is",
        details={"field": "grep", "position": at},
    )


def _left_open(text: str) -> int:
    """Where the innermost bracket stands that is never closed."""
    opened: list[int] = []
    set_at: int | None = None
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif set_at is not None:
            first = set_at + (2 if text[set_at + 1 : set_at + 2] == "^" else 1)
            if char == "]" and at > first:
                set_at = None
        elif char == "[":
            set_at = at
        elif char == "(":
            opened.append(at)
        elif char == ")" and opened:
            opened.pop()
        at += 1
    if set_at is not None:
        return set_at
    return opened[-1] if opened else 0
