"""Which lines of a run's segments are wanted: the filters first, then the window.

Lines are numbered from 1 without gaps, so a window without a filter is found by its numbers. A
filter by time or number is a place in the file. Only type, attempt and ``grep`` look at lines.
"""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, Self

from subagents.domain.run.values import replace
from subagents.domain.transcript.transcript_query import LogPage, LogQuery
from subagents.store.transcripts import grep, segments
from subagents.store.transcripts.record_search import Found
from subagents.store.transcripts.segments import (
    Key,
    Row,
    Segment,
    Turns,
)

HELD_MAX: Final = 16
"""So many of the newest segments stay open while they are read: they may be deleted meanwhile."""
LIST_TRIES: Final = 5
"""The newest segment may go between being listed and being opened, if its writer is very quick."""


class _Transcript:
    """What is there to read now; closes what it holds open.

    Args:
        place: Directory of the run.
    """

    def __init__(self, place: Path) -> None:
        self.segments: list[Segment] = []
        self.newest = 0
        """Number of the last line, 0 = there is none."""
        self._held: dict[int, BinaryIO] = {}
        self._stack = ExitStack()
        self._turns = Turns()
        for _ in range(LIST_TRIES):
            with suppress(FileNotFoundError):
                self._hold(segments.found_in(place))
                break

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _hold(self, found: list[Segment]) -> None:
        while found and not self.segments:
            last = found.pop()
            file = self._stack.enter_context(last.path.open("rb"))
            ending = segments.committed(file, os.fstat(file.fileno()).st_size)
            if ending is not None:
                self.newest = ending.mark.seq
                self._held[last.first] = file
                self.segments = [*found, last._replace(end=ending.end)]
        for index in range(len(self.segments) - 2, max(len(self.segments) - HELD_MAX, 0) - 1, -1):
            segment = self.segments[index]
            try:
                file = self._stack.enter_context(segment.path.open("rb"))
            except FileNotFoundError:
                del self.segments[: index + 1]
                return
            self._held[segment.first] = file
            # It was listed while it still grew, perhaps.
            self.segments[index] = segment._replace(end=os.fstat(file.fileno()).st_size)

    @property
    def dropped(self) -> int:
        return self.segments[0].first - 1 if self.segments else 0

    @contextmanager
    def open(self, segment: Segment) -> Iterator[BinaryIO | None]:
        """None = it went meanwhile, and with it all before it."""
        held = self._held.get(segment.first)
        if held is not None:
            yield held
            return
        try:
            file = segment.path.open("rb")
        except FileNotFoundError:
            self.segments = [each for each in self.segments if each.first > segment.first]
            yield None
            return
        with file:
            yield file

    def slices(self, begin: Segment, is_wanted: Key) -> Iterator[bytes]:
        """All from that segment on, in it from about the first wanted line on."""
        for segment in tuple(each for each in self.segments if each.first >= begin.first):
            with self.open(segment) as file:
                if file is None:
                    continue
                start = segments.place_of(file, segment.end, is_wanted) if segment == begin else 0
                for data in segments.slices(file, start, segment.end):
                    yield data
                    self._turns.give()

    def rows(self, begin: Segment, is_wanted: Key) -> Iterator[Row]:
        """The same, decoded."""
        for data in self.slices(begin, is_wanted):
            yield from segments.rows_of(data)


def read(place: Path, query: LogQuery) -> LogPage:
    """See ``ports.TranscriptLog.read``."""
    pattern = None if query.grep is None else grep.pattern(query.grep)
    with _Transcript(place) as transcript:
        lowest = max(_lowest(transcript, query), transcript.dropped + 1)
        if pattern is not None or query.types or query.attempt is not None:
            search = None if pattern is None else grep.Search(pattern, query, lowest=lowest)
            page = _filtered(transcript, query, lowest, search)
            if pattern is None or not query.hits:
                return page
            return replace(page, hits=grep.hits(pattern, [each.text for each in page.lines]))
        return _window(transcript, query, lowest)


def _lowest(transcript: _Transcript, query: LogQuery) -> int:
    """The first line that is new and young enough, whatever it says."""
    lowest = 1 if query.after_seq is None else query.after_seq + 1
    since = query.since_ms
    if since is None or not transcript.segments:
        return lowest

    def is_young(line: bytes) -> bool:
        return segments.ts_at(line) >= since

    # In the newest segment that begins with an older line, or else in the first one.
    begin = transcript.segments[0]
    for segment in reversed(transcript.segments):
        begin = segment
        if not _begins_with(transcript, segment, is_young):
            break
    for row in transcript.rows(begin, is_young):
        if row.ts >= since:
            return max(lowest, row.seq)
    return transcript.newest + 1


def _begins_with(transcript: _Transcript, segment: Segment, is_wanted: Key) -> bool:
    with transcript.open(segment) as file:
        if file is None:
            return False
        file.seek(0)
        line = file.read(segments.PROBE_BYTES)
    return line.startswith(b"[") and is_wanted(line)


def _window(transcript: _Transcript, query: LogQuery, lowest: int) -> LogPage:
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
        begin = rows[0].seq
    return LogPage(
        total_lines=total,
        offset=min(begin - base, total),
        lines=tuple(row.line() for row in rows),
        next_seq=min(end, newest) if query.limit else newest,
        dropped_lines=transcript.dropped,
    )


def _between(transcript: _Transcript, begin: int, end: int) -> list[Row]:
    """Both included."""
    found: list[Row] = []
    if begin > end or not transcript.segments:
        return found
    holding = segments.holding(transcript.segments, begin)
    for row in transcript.rows(holding, lambda line: segments.seq_at(line) >= begin):
        if row.seq > end:
            break
        if row.seq >= begin:
            found.append(row)
    return found


def _filtered(
    transcript: _Transcript, query: LogQuery, lowest: int, search: grep.Search | None
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
    transcript: _Transcript, query: LogQuery, lowest: int, search: grep.Search | None
) -> Iterator[Found]:
    if not transcript.segments:
        return
    holding = segments.holding(transcript.segments, lowest)
    for data in transcript.slices(holding, lambda line: segments.seq_at(line) >= lowest):
        if search is not None:
            yield search.find(data)
            continue
        rows = grep.fitting(segments.rows_of(data), query, lowest)
        yield Found(len(rows), partial(tuple, rows))
