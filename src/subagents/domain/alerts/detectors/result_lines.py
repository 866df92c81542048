"""What an output says of the result of a build or test, by the lines that tools end with.

Lines of a known form decide; words that anybody may print count only where there is none of them.
A failure that is told outweighs a success: of several programs one has failed.

Source: 4-observability §4 (``build_result``: "from known summaries second").
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from subagents.domain.alerts.detectors.result_table import PLACES, ROWS, Means
from subagents.domain.run.worker_output import OUTPUT_CHARS_MAX

LINE_CHARS_MAX: Final = 500
MATCHES_MAX: Final = 500
"""Of one row; so many errors are enough to count."""
PLACES_MAX: Final = 20

_NUMBER_FIRST: Final = re.compile(
    r"(?<![\w.])(\d{1,7}) (?:\w{1,12} )?"
    r"(passed|failed|failing|passing|failures?|errors?|fails|passes)\b",
    re.ASCII | re.IGNORECASE,
)
_WORD_FIRST: Final = re.compile(
    r"\b(failures|errors|failed|unexpected successes)[=:]? {0,8}(\d{1,7})\b",
    re.ASCII | re.IGNORECASE,
)
_GOOD: Final = ("pass",)


class Summary(NamedTuple):
    """What the output says."""

    passed: bool | None = None
    """None = nothing that is understood."""
    errors: int | None = None
    """None = they are not counted."""
    is_sure: bool = False
    """By a line of a known form."""
    places: tuple[str, ...] = ()
    """Files with errors, each once."""
    line: str = ""
    """The first that tells of a failure."""
    tests: int | None = None
    """That passed."""


class _Found(NamedTuple):
    means: Means
    line: str
    bad: int


def summary_of(output: str, *, is_test: bool) -> Summary:
    """Read an output.

    Args:
        output: Of the tool; of a long one its beginning and its end.
        is_test: Only tests were run: what looks like an error of a compiler may be one that a test
            wanted.
    """
    text = _shortened(output)
    found = list(_found(text))
    of: dict[Means, list[_Found]] = {}
    for each in found:
        of.setdefault(each.means, []).append(each)
    errors = _errors(of)
    each_is_sure = bool(of.get(Means.EACH)) and not is_test
    counted = [
        each
        for means in (Means.TALLY, Means.LAST_TALLY, Means.SAME_TALLY, Means.GROUPS)
        for each in of.get(means, ())
    ]
    failing = [each for each in counted if each.bad] + of.get(Means.FAILED, [])
    if failing or each_is_sure:
        line = (of.get(Means.EACH) or failing)[0].line
        return Summary(False, errors, True, _places(text), line, None)
    if of.get(Means.PASSED) or any(not each.bad for each in counted):
        return Summary(True, 0, True, (), "", _passed(counted))
    weak = of.get(Means.EACH, []) + of.get(Means.LOOKS_FAILED, [])
    loose = of.get(Means.LOOSE_TALLY, [])
    weak += [each for each in loose if each.bad]
    if weak:
        bad = max((each.bad for each in loose), default=0)
        return Summary(False, errors or bad or None, False, _places(text), _telling(weak), None)
    if of.get(Means.LOOKS_PASSED) or loose:
        return Summary(True, 0, False, (), "", None)
    return Summary()


def _shortened(output: str) -> str:
    """Of a long output the beginning and the end; of long lines the beginning."""
    if len(output) > OUTPUT_CHARS_MAX:
        half = OUTPUT_CHARS_MAX // 2
        output = f"{output[:half]}\n{output[-half:]}"
    if not any(len(line) > LINE_CHARS_MAX for line in output.split("\n")):
        return f"\n{output}\n"
    lines = (line[:LINE_CHARS_MAX] for line in output.split("\n"))
    return "\n".join(("", *lines, ""))


def _found(text: str) -> Iterator[_Found]:
    known: set[int] = set()
    for row in ROWS:
        if row.hint not in text:
            continue
        for number, match in enumerate(row.pattern.finditer(text)):
            if number >= MATCHES_MAX:
                break
            if row.means is Means.EACH:
                if match.start() in known:
                    continue
                known.add(match.start())
            yield _Found(row.means, _line_at(text, match.start()), _bad(row.means, match))


def _bad(means: Means, match: re.Match[str]) -> int:
    groups = match.groupdict()
    if groups.get("bad") is not None:
        return int(groups["bad"]) if groups["bad"].isdecimal() else 0
    if means in {Means.TALLY, Means.LAST_TALLY, Means.GROUPS, Means.LOOSE_TALLY}:
        return sum(count for word, count in _counts(match[0]) if not word.startswith(_GOOD))
    return 0


def _counts(line: str) -> Iterator[tuple[str, int]]:
    found = list(_WORD_FIRST.finditer(line))
    if found:
        for match in found:
            yield match[1].lower(), int(match[2])
        return
    for match in _NUMBER_FIRST.finditer(line):
        yield match[2].lower(), int(match[1])


def _errors(of: dict[Means, list[_Found]]) -> int | None:
    """What is counted in the finest way that there is."""
    total = sum(each.bad for each in of.get(Means.TALLY, ()))
    total += (of.get(Means.LAST_TALLY) or [_Found(Means.LAST_TALLY, "", 0)])[-1].bad
    total += max((each.bad for each in of.get(Means.SAME_TALLY, ())), default=0)
    groups = sum(each.bad for each in of.get(Means.GROUPS, ()))
    return total or len(of.get(Means.EACH, ())) or groups or None


def _passed(counted: list[_Found]) -> int | None:
    passed = [
        count
        for each in counted
        if each.means is not Means.GROUPS
        for word, count in _counts(each.line)
        if word.startswith(_GOOD)
    ]
    return sum(passed) or None


def _telling(weak: list[_Found]) -> str:
    """Of a traceback the last line says what it was."""
    lines = [each.line for each in weak]
    return next((line for line in lines if not line.startswith("Traceback")), lines[0])


def _line_at(text: str, start: int) -> str:
    begin = text.rfind("\n", 0, start + 1) + 1 if text[start : start + 1] != "\n" else start + 1
    end = text.find("\n", begin)
    return text[begin : end if end >= 0 else len(text)].strip()


def _places(text: str) -> tuple[str, ...]:
    for pattern in PLACES:
        names: dict[str, None] = {}
        for match in pattern.finditer(text):
            names[match[1].replace("\\", "/").rpartition("/")[2]] = None
            if len(names) >= PLACES_MAX:
                break
        if names:
            return tuple(names)
    return ()
