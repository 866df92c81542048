"""Which lines of a run's transcript are wanted: the filters first, then the window.

Lines are numbered from 1 without gaps, so a window without a filter is found by its numbers. A
filter by time or number is a place in a part. Only type, attempt and ``grep`` look at lines.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import BinaryIO, Self

from subagents.domain.run.values import replace
from subagents.domain.transcript.transcript_query import LogPage, LogQuery
from subagents.store.transcripts import grep, segments
from subagents.store.transcripts.record_search import Found
from subagents.store.transcripts.segments import Key, Part, Row, Turns


class Transcript(ABC):
    """What is there to read now; a context in which it stays readable."""

    def __init__(self) -> None:
        self.parts: Sequence[Part] = ()
        """The parts, by number."""
        self.newest = 0
        """Number of the last line, 0 = there is none."""
        self._turns = Turns()

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    @property
    def dropped(self) -> int:
        return self.parts[0].first - 1 if self.parts else 0

    @abstractmethod
    def open(self, part: Part) -> AbstractContextManager[BinaryIO | None]:
        """Its lines; None = it went meanwhile, and with it all before it."""

    @abstractmethod
    def is_younger(self, part: Part, since_ms: int) -> bool:
        """Whether it begins with a line that is not older; False where nobody can say."""

    def slices(self, begin: Part, is_wanted: Key) -> Iterator[bytes]:
        """All from that part on, in it from about the first wanted line on."""
        for part in tuple(each for each in self.parts if each.first >= begin.first):
            with self.open(part) as file:
                if file is None:
                    continue
                start = segments.place_of(file, part.end, is_wanted) if part == begin else 0
                for data in segments.slices(file, start, part.end):
                    yield data
                    self._turns.give()

    def rows(self, begin: Part, is_wanted: Key) -> Iterator[Row]:
        """The same, decoded."""
        for data in self.slices(begin, is_wanted):
            yield from segments.rows_of(data)


def read(opened: Callable[[], Transcript], query: LogQuery) -> LogPage:
    """See ``ports.TranscriptLog.read``; opens a transcript once the question is a good one."""
    pattern = None if query.grep is None else grep.pattern(query.grep)
    with opened() as transcript:
        lowest = max(_lowest(transcript, query), transcript.dropped + 1)
        if pattern is not None or query.types or query.attempt is not None:
            search = None if pattern is None else grep.Search(pattern, query, lowest=lowest)
            page = _filtered(transcript, query, lowest, search)
            if pattern is None or not query.hits:
                return page
            return replace(page, hits=grep.hits(pattern, [each.text for each in page.lines]))
        return _window(transcript, query, lowest)


def _lowest(transcript: Transcript, query: LogQuery) -> int:
    """The first line that is new and young enough, whatever it says."""
    lowest = 1 if query.after_seq is None else query.after_seq + 1
    since = query.since_ms
    if since is None or not transcript.parts:
        return lowest

    def is_young(line: bytes) -> bool:
        return segments.ts_at(line) >= since

    # In the newest part that begins with an older line, or else in the first one.
    begin = transcript.parts[0]
    for part in reversed(transcript.parts):
        begin = part
        if not transcript.is_younger(part, since):
            break
    for row in transcript.rows(begin, is_young):
        if row.ts >= since:
            return max(lowest, row.seq)
    return transcript.newest + 1


def _window(transcript: Transcript, query: LogQuery, lowest: int) -> LogPage:
    """By numbers alone: the line with number ``base`` has offset 0."""
    newest = transcript.newest
    is_filtered = query.since_ms is not None or query.after_seq is not None
    base = lowest if is_filtered else 1
    total = max(newest - base + 1, 0)
    begin = newest - query.limit + 1 if query.offset is None else base + query.offset
    begin = max(begin, lowest)
    end = begin + query.limit - 1
    rows = _between(transcript, begin, min(end, newest))
    if rows and transcript.dropped >= begin:
        # Lines were dropped while this was read: the page begins with what is left.
        begin = rows[0].seq
    return LogPage(
        total_lines=total,
        offset=min(begin - base, total),
        lines=tuple(row.line() for row in rows),
        next_seq=min(end, newest) if query.limit else newest,
        dropped_lines=transcript.dropped,
    )


def _between(transcript: Transcript, begin: int, end: int) -> list[Row]:
    """Both included."""
    found: list[Row] = []
    if begin > end or not transcript.parts:
        return found
    holding = segments.holding(transcript.parts, begin)
    for row in transcript.rows(holding, lambda line: segments.seq_at(line) >= begin):
        if row.seq > end:
            break
        if row.seq >= begin:
            found.append(row)
    return found


def _filtered(
    transcript: Transcript, query: LogQuery, lowest: int, search: grep.Search | None
) -> LogPage:
    """Look at all lines from ``lowest`` on; ``search`` is the pattern's, if there is one."""
    newest_only, limit = query.offset is None, query.limit
    begin = query.offset or 0
    kept: deque[Found] = deque()
    total = left_out = 0
    """Lines of all, and of those before ``kept``."""
    for found in _passing(transcript, query, lowest, search):
        total += found.lines
        if newest_only:
            kept.append(found)
            # The oldest go as long as the others fill the window by themselves.
            while kept and total - left_out - kept[0].lines >= limit:
                left_out += kept.popleft().lines
        elif total <= begin:
            left_out = total
        elif total - found.lines < begin + limit:
            kept.append(found)
    begin = max(total - limit, 0) if newest_only else min(begin, total)
    rows = [row for found in kept for row in found.rows()][begin - left_out :][:limit]
    is_cut = not newest_only and rows and total > begin + len(rows)
    return LogPage(
        total_lines=total,
        offset=begin,
        lines=tuple(row.line() for row in rows),
        next_seq=rows[-1].seq if is_cut else transcript.newest,
        dropped_lines=transcript.dropped,
    )


def _passing(
    transcript: Transcript, query: LogQuery, lowest: int, search: grep.Search | None
) -> Iterator[Found]:
    if not transcript.parts:
        return
    holding = segments.holding(transcript.parts, lowest)
    for data in transcript.slices(holding, lambda line: segments.seq_at(line) >= lowest):
        if search is not None:
            yield search.find(data)
            continue
        rows = grep.fitting(segments.rows_of(data), query, lowest)
        yield Found(len(rows), partial(tuple, rows))
