r"""Search many records at once, as they are written, with a regular expression of RE2's.

Decoding a line and one call of RE2 for it take ten times what looking through its letters does. So
the search goes through whole slices of ``[seq,ts,"type",attempt,"text"]``: quotes are made line
breaks (and line breaks NULs), which leaves each text in a line of its own, where ``(?m)^`` and
``$`` stand for its ends.
A text with an escape (a quote, a backslash, a control character) is not written as it is: its
record is left to whoever decodes it. So is a pattern that might run over the end of a text:
``rewritten`` knows the constructs that cannot, and puts others for ``\s``, ``\W`` and ``[^a]``.
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
"""So many matches in a slice are counted first, and looked for when somebody wants to see them."""

_TOKEN: Final = re.compile(
    r"""
    (?P<same> [^\\\[\](){}?"\x00-\x1f\x7f] | \\[dwSb] | \\[!-/:-@\[-`{-~]
        | \( (?!\?) | \(\?: | \(\?[im]+[:)] | \(\?-i[:)] | \) | \? | \{\d+,?\d*\} )
    | (?P<other> \\[sDWAz] )
    | \[ (?P<negated> \^?+ )
        (?P<members> (?: [^\\\[\]"\x00-\x1f\x7f] | \\[dwsS\]\[\\^.+*?()|{}$/-] )+ ) \]
    """,
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\.")
_OTHERS: Final = {
    r"\s": " ",  # the only one that is written as it is
    r"\D": r"[^\d\n]",
    r"\W": r"[^\w\n]",
    r"\A": "^",
    r"\z": "$",
}


class Found(NamedTuple):
    """Lines that match."""

    lines: int
    rows: Callable[[], Sequence[Row]]
    """In order; what it takes is done now."""

    def beside(self, other: "Found") -> "Found":
        """These and others of the same slice."""
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
    return f"[{re.sub(_ESCAPE, lambda each: _OTHERS.get(each[0], each[0]), members)}]"


class RecordSearch:
    """Finds records without decoding them.

    Args:
        source: What leads from a place to the end of the next record that matches.
        regexp: It, compiled.
    """

    def __init__(self, source: str, regexp: Any) -> None:
        self._source = source
        self._next = regexp
        self._many: Any = None
        self._are_many = False

    def find(self, records: bytes) -> Found:
        """Those that match among records without escapes.

        Args:
            records: Whole ones; checkpoints, and what is no record, do not match.
        """
        texts = records.replace(b"\n", b"\0").replace(b'"', b"\n")
        count = self._counted(texts) if self._are_many else 0
        if count >= MANY:
            return Found(count, lambda: rows_of(b"\n".join(self._found(records, texts))))
        found = list(self._found(records, texts))
        self._are_many = len(found) >= MANY
        return Found(len(found), lambda: rows_of(b"\n".join(found)))

    def _counted(self, texts: bytes) -> int:
        if self._many is None:
            self._many = _compiled(f"(?:{self._source}){{{AT_ONCE}}}") or self._next
        by = AT_ONCE if self._many is not self._next else 1
        count = at = 0
        for regexp, step in ((self._many, by), (self._next, 1)):
            while (match := regexp.match(texts, at)) is not None:
                at = match.end()
                count += step
        return count

    def _found(self, records: bytes, texts: bytes) -> Iterator[bytes]:
        at = 0
        while (match := self._next.match(texts, at)) is not None:
            at = match.end()
            yield records[records.rfind(b"\n", 0, at - 1) + 1 : at - 1]


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
    # What lies before it may be anything, also what is no UTF-8.
    source = (
        rf"(?m:(?:\C*?\x00)??\[[0-9]+,[0-9]+,\n(?:{kinds})\n,{number},\n"
        rf"[^\n]*?(?:{inner})[^\n]*\n\]\x00)"
    )
    regexp = _compiled(source)
    is_small = regexp is not None and regexp.programsize <= PROGRAM_MAX
    return RecordSearch(source, regexp) if is_small else None


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
