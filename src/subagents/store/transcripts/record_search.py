r"""Search many records at once, as they are written, with a regular expression of RE2's.

Decoding a line and one call of RE2 for it take ten times what looking through its letters does. So
the search goes through whole slices of ``[seq,ts,"type",attempt,"text"]``: quotes are made line
breaks (and line breaks NULs), which leaves each text in a line of its own, where ``(?m)^`` and
``$`` stand for its ends.
A text with an escape (a quote, a backslash, a control character) is not written as it is: slices
with such lines are decoded, and their texts are looked through together. A pattern that might run
over the end of a text can be searched in neither: ``rewritten`` knows the constructs that cannot,
and puts others for ``\s``, ``\W`` and ``[^a]``.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import re2  # type: ignore[import-untyped]  # it brings no types

from subagents.domain.run.worker_output import LineType
from subagents.store.transcripts.segments import Row, rows_of

PROGRAM_MAX: Final = 1_000
"""Instructions of a pattern: the slowest one of this size takes 0.1 s for a slice."""
AT_ONCE: Final = 32
"""Matches that one call of RE2 counts where there are many."""
MANY: Final = 64
"""Matches in a slice from this number on are only counted, and found once they are shown."""

_TOKEN: Final = re.compile(
    r"""
    (?P<same> [^\\\[(){}?\x00-\x1f\x7f] | \\[dwSb] | \\[!-/:-@\[-`{-~]
        | \( (?!\?) | \(\?: | \(\?[im]+[:)] | \(\?-i[:)] | \) | \? | \{\d+,?\d*\} )
    | (?P<other> \\[sDWAz] )
    | \[ (?P<negated> \^?+ )
        (?P<members> (?: [^\\\[\]\x00-\x1f\x7f] | \\[dwsS\]\[\\^.+*?()|{}$/-] )+ ) \]
    """,
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\.")
_S: Final = r"\s"
_SPACE: Final = r"\t\f\r "
_OTHERS: Final = {
    _S: f"[{_SPACE}]",
    r"\D": r"[^\d\n]",
    r"\W": r"[^\w\n]",
    r"\A": "^",
    r"\z": "$",
}


class Found(NamedTuple):
    """Lines that match."""

    lines: int
    rows: Callable[[], Sequence[Row]]
    """Makes the rows, in order; what it takes is done now."""

    def beside(self, other: "Found") -> "Found":
        """These and others of the same slice."""
        if not other.lines:
            return self
        return Found(
            self.lines + other.lines,
            lambda: sorted((*self.rows(), *other.rows()), key=lambda row: row.seq),
        )


NOTHING: Final = Found(0, tuple)


def rewritten(pattern: str) -> str | None:
    """The same for texts without line breaks, and never matching one; None = nobody knows."""
    at, parts = 0, []
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            return None
        at = token.end()
        parts.append(_rewritten(token))
    return "".join(parts)


def _rewritten(token: re.Match[str]) -> str:
    other, members = token["other"], token["members"]
    if other is not None:
        return _OTHERS[other]
    if members is None:
        return token[0]
    if token["negated"]:
        # Behind a first letter, a hyphen would make a range of it.
        return r"[^\n" + re.sub("^-", r"\\-", members) + "]"
    return f"[{re.sub(_ESCAPE, lambda each: _SPACE if each[0] == _S else each[0], members)}]"


class RecordSearch:
    """Finds lines many at a time, as they are written or decoded.

    Args:
        written: What leads from one record to the end of the next one that matches.
        text: The same among texts, each with a line break behind it.
    """

    def __init__(self, written: "_Steps", text: "_Steps") -> None:
        self._written = written
        self._text = text

    def find(self, records: bytes) -> Found:
        """Those that match among records without escapes.

        Args:
            records: Whole ones; checkpoints, and what is no record, do not match.
        """
        texts = records.replace(b"\n", b"\0").replace(b'"', b"\n")
        count = self._written.count_of_many(texts)
        if count:
            return Found(count, lambda: rows_of(b"\n".join(self._found(records, texts))))
        found = list(self._found(records, texts))
        self._written.are_many = len(found) >= MANY
        return Found(len(found), lambda: rows_of(b"\n".join(found)))

    def _found(self, records: bytes, texts: bytes) -> Iterator[bytes]:
        for end in self._written.ends(texts):
            yield records[records.rfind(b"\n", 0, end - 1) + 1 : end - 1]

    def among(self, rows: Sequence[Row]) -> Found:
        """Those that match among decoded lines of which no text has a line break."""
        texts = "".join([f"{row.text}\n" for row in rows]).encode()
        count = self._text.count_of_many(texts)
        if count:
            return Found(count, lambda: list(self._matching(rows, texts)))
        found = list(self._matching(rows, texts))
        self._text.are_many = len(found) >= MANY
        return Found(len(found), lambda: found)

    def _matching(self, rows: Sequence[Row], texts: bytes) -> Iterator[Row]:
        begun = number = 0
        for end in self._text.ends(texts):
            number += texts.count(b"\n", begun, end)
            begun = end
            yield rows[number - 1]


class _Steps:
    """Goes from match to match.

    Args:
        source: What one step matches.
        regexp: It, compiled.
    """

    def __init__(self, source: str, regexp: Any) -> None:
        self._source = source
        self._one = regexp
        self._many: Any = None
        self.are_many = False
        """Whether there were many in the slice that was searched last."""

    def count_of_many(self, texts: bytes) -> int:
        """How many there are; 0 = not so many that it is worth while to count them first."""
        if not self.are_many:
            return 0
        if self._many is None:
            self._many = _compiled(f"(?:{self._source}){{{AT_ONCE}}}") or self._one
        by = AT_ONCE if self._many is not self._one else 1
        count = at = 0
        # By groups as far as there are whole ones, then one by one.
        for regexp, step in ((self._many, by), (self._one, 1)):
            while (match := regexp.match(texts, at)) is not None:
                at = match.end()
                count += step
        return count if count >= MANY else 0

    def ends(self, texts: bytes) -> Iterator[int]:
        """The place behind each match, that is behind its line."""
        at = 0
        while (match := self._one.match(texts, at)) is not None:
            at = match.end()
            yield at


def record_search(
    pattern: str, types: Iterable[LineType], attempt: int | None
) -> RecordSearch | None:
    """Searches records for a pattern; None = it cannot be done, or would take too long.

    Args:
        pattern: One that RE2 takes.
        types: Only lines of these; none = all.
        attempt: Only its lines; None = those of all.
    """
    inner = rewritten(pattern)
    if inner is None:
        return None
    kinds = "|".join(tuple(types) or tuple(LineType))
    number = "[0-9]+" if attempt is None else attempt
    text = rf"[^\n]*?(?:{inner})[^\n]*\n"
    # What lies before it may be anything, also what is no UTF-8.
    head = rf"(?:\C*?\x00)??\[[0-9]+,[0-9]+,\n(?:{kinds})\n,{number},\n"
    steps = [
        _Steps(source, regexp)
        for source in (rf"(?m:{head}{text}\]\x00)", rf"(?m:(?:\C*?\n)??{text})")
        if (regexp := _compiled(source)) is not None and regexp.programsize <= PROGRAM_MAX
    ]
    return RecordSearch(*steps) if len(steps) == 2 else None


def _compiled(source: str) -> Any:
    """None = it is too large for RE2."""
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(source, options)
    except re2.error:
        return None
    finally:
        re2.purge()  # it would keep the last 128, with up to 8 MiB each
