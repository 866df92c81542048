"""The completion report of a worker without tools: a block of text in its last message.

    [COMPLETION REPORT]
    status: complete
    confidence: high
    summary: one or more lines
    artifacts:
    - out/results.json: the table
    blockers:
    - none
    warnings:
    [/COMPLETION REPORT]

Models write it in many ways, so reading is forgiving: any case, Markdown emphasis around marks
and keys, missing keys, wrapped list items. As in Markdown, what is indented by four spaces or more
is only text: it is no mark, no key and no fence. Of several blocks the last complete one counts,
since a worker may quote the form before it fills it in; only without any complete one is the rest
of the text taken for a block whose end was forgotten or cut off.

Every step looks at each line a fixed number of times, whatever a worker writes.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, TypeVar

from subagents.domain.run.run import Confidence, Report, ReportedArtifact, ReportStatus
from subagents.domain.run.values import Value
from subagents.text import cut

REPORT_CHARS_MAX: Final = 65_536
"""The most that all texts of a report may have together, as for a report by tool."""
WRONG_VALUE_CHARS_MAX: Final = 60
"""The most of a wrong value that the reason quotes."""

FORM: Final = """\
[COMPLETION REPORT]
status: complete | partial | failed
confidence: high | medium | low
summary: one or more lines
artifacts:
- path: description
blockers:
- none
warnings:
- none
[/COMPLETION REPORT]"""
"""The form as a worker is shown it."""

_MARK: Final = re.compile(
    r"^ {0,3}(?:#{1,6} +)?[*_`]{0,3}\[(/?)completion report\][*_`]{0,3}:?[ \t\r]*$", re.IGNORECASE
)
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.DOTALL)
_KEY: Final = re.compile(
    r"^ {0,3}[*_]{0,3}(status|confidence|summary|artifacts|blockers|warnings)"
    r"[*_]{0,3}[ \t]*:[*_]{0,3}(.*)$",
    re.IGNORECASE | re.DOTALL,
)
_OTHER_KEY: Final = re.compile(r"^[a-z][a-zA-Z_]*:(?=\s|$)")
"""Written just as a key is. "Note: …" inside a summary is none, and must not be lost."""
_ITEM: Final = re.compile(r"^ {0,3}[-*•](?:\s+(.*))?$", re.DOTALL)
_INDENT: Final = 4
_NOTHING: Final = frozenset({"", "none", "n/a"})

E = TypeVar("E", bound=StrEnum)


class Unreadable(Value, frozen=True):
    """A block was there, but it is no report; ``reason`` is for whoever asks why."""

    reason: str


def find_report(text: str) -> Report | Unreadable | None:
    """The completion report in a worker's last message; None when it wrote no block.

    Never raises, whatever the text is.
    """
    if "[completion report]" not in text.casefold():
        return None
    block = _block(text.split("\n"))
    if block is None:
        return None
    return _report(dict(_fields(block)))  # of a key given twice the last counts, as with blocks


# -- where the block is -------------------------------------------------------------------------


def _block(lines: Sequence[str]) -> Sequence[str] | None:
    """The lines between the marks of the last complete block, else after the last begin mark."""
    last_begin: int | None = None
    end: int | None = None
    # From the end: the first pair that is found is the last block.
    for number, is_end in reversed(list(_marks(lines))):
        if is_end:
            end = number
        elif end is not None:
            return lines[number + 1 : end]
        elif last_begin is None:
            last_begin = number
    return None if last_begin is None else lines[last_begin + 1 :]


def _marks(lines: Sequence[str]) -> Iterator[tuple[int, bool]]:
    """``(line, is it an end mark)`` of every mark outside fenced code."""
    fenced = _fenced(lines)
    for number, line in enumerate(lines):
        found = None if number in fenced else _MARK.match(line)
        if found is not None:
            yield number, bool(found[1])


def _fenced(lines: Sequence[str]) -> set[int]:
    """The lines of fenced code blocks, fences included.

    A fence that is never closed is none: results keep their end when they are cut, so the fence
    that opened a block may be gone, and the one that closed it must not swallow the report.
    """
    fences = [
        (number, found[1], found[2].strip())
        for number, line in enumerate(lines)
        if (found := _FENCE.match(line)) is not None
    ]
    longest = {"`": 0, "~": 0}
    closable: set[int] = set()
    for number, ticks, info in reversed(fences):
        if len(ticks) <= longest[ticks[0]] and not (ticks[0] == "`" and "`" in info):
            closable.add(number)
        if not info:
            longest[ticks[0]] = max(longest[ticks[0]], len(ticks))
    inside: set[int] = set()
    opened: tuple[int, str] | None = None
    for number, ticks, info in fences:
        if opened is None:
            opened = (number, ticks) if number in closable else None
        elif not info and ticks.startswith(opened[1]):
            inside.update(range(opened[0], number + 1))
            opened = None
    return inside


# -- what it says -------------------------------------------------------------------------------


def _fields(block: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Each known key with its lines, the first being what stands behind the colon."""
    key, lines = "", [""]
    for raw in block:
        line = raw.rstrip("\r")
        found = _KEY.match(line)
        if found is None and not _OTHER_KEY.match(line):
            lines.append(line)
            continue
        if key:
            yield key, lines
        key, lines = (found[1].lower(), [found[2]]) if found is not None else ("", [""])
    if key:
        yield key, lines


def _report(fields: dict[str, list[str]]) -> Report | Unreadable:
    status = _choice(ReportStatus, "status", fields)
    confidence = _choice(Confidence, "confidence", fields)
    for each in (status, confidence):
        if isinstance(each, Unreadable):
            return each
    summary = _text(fields.get("summary", []))
    if not summary:
        return Unreadable(reason="the completion report in the text has no summary")
    report = Report(
        summary=summary,
        status=status if isinstance(status, ReportStatus) else ReportStatus.COMPLETE,
        confidence=confidence if isinstance(confidence, Confidence) else None,
        artifacts=tuple(
            each for each in map(_artifact, _items(fields.get("artifacts", []))) if each.path
        ),
        blockers=tuple(_items(fields.get("blockers", []))),
        warnings=tuple(_items(fields.get("warnings", []))),
    )
    size = _size(report)
    if size > REPORT_CHARS_MAX:
        return Unreadable(
            reason=f"the completion report in the text has {size} characters, at most"
            f" {REPORT_CHARS_MAX} are allowed"
        )
    return report


def _choice(kind: type[E], key: str, fields: dict[str, list[str]]) -> E | Unreadable | None:
    """One of an enum's words; None when the key is missing or empty."""
    # Another word makes the block unreadable: read as the default, "faild" would be "complete".
    word = _text(fields.get(key, [])).strip(" \t*_`.").lower()
    if not word:
        return None
    for each in kind:
        if word == each:
            return each
    shown = cut(word, WRONG_VALUE_CHARS_MAX)
    allowed = ", ".join(kind)
    return Unreadable(
        reason=f'the completion report in the text has {key} "{shown}" (allowed: {allowed})'
    )


def _text(lines: Sequence[str]) -> str:
    return "\n".join(map(_dedented, lines)).strip()


def _dedented(line: str) -> str:
    """Without the indentation that marks a line as one more of the same value."""
    spaces = min(len(line) - len(line.lstrip(" ")), _INDENT)
    return line[spaces:].rstrip()


def _items(lines: Sequence[str]) -> list[str]:
    """The entries of a list; ``- none`` is none.

    A line without a dash belongs to the item above it when it is indented, and is another item
    otherwise; after an empty line it is neither: the list is over.
    """
    items: list[list[str]] = []
    is_over = False
    for number, line in enumerate(lines):
        found = _ITEM.match(line)
        if found is not None:
            items.append([(found[1] or "").strip()])
            is_over = False
        elif not line.strip():
            is_over = is_over or number > 0
        elif is_over:
            continue
        elif items and line.startswith(("  ", "\t")):
            items[-1].append(_dedented(line))
        else:
            items.append([line.strip()])
    texts = ("\n".join(item).strip() for item in items)
    return [text for text in texts if text.rstrip(".").lower() not in _NOTHING]


def _artifact(item: str) -> ReportedArtifact:
    path, _, description = item.partition(": ")
    return ReportedArtifact(
        path=path.strip().rstrip(":").strip("*`"), description=description.strip() or None
    )


def _size(report: Report) -> int:
    texts = (report.summary, *report.blockers, *report.warnings)
    files = sum(len(each.path) + len(each.description or "") for each in report.artifacts)
    return sum(map(len, texts)) + files
