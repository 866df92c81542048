"""One run's transcript on disk: segments of lines, each batch closed by its checkpoint.

``<directory>/<seq of its first line>.jsonl``. A line is a JSON array, ``[seq,ts,"type",attempt,
"text"]``; a checkpoint is a JSON object, and all before it was kept together with it. What stands
behind the last checkpoint of the last segment is an incomplete batch: it is not read, and the next
writer cuts it off.

Reading holds one slice of a segment at a time, and never locks: segments only grow, are replaced
whole, or go, so that what was opened stays as it is.
"""

import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from subagents.domain.run.worker_output import LineType
from subagents.domain.transcript.transcript_query import Line

SUFFIX: Final = ".jsonl"
SLICE_BYTES: Final = 128 * 1024
"""Decoded in one go: about half a millisecond in which no other thread of Python's runs."""
PROBE_BYTES: Final = 4096
TURN_S: Final = 0.001
PAUSE_S: Final = 0.0001

Key: TypeAlias = Callable[[bytes], bool]


class Row(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A line as it is written."""

    seq: int
    ts: int
    type: LineType
    attempt: int
    text: str

    def line(self) -> Line:
        return Line(seq=self.seq, ts=self.ts, type=self.type, text=self.text, attempt=self.attempt)


class Mark(msgspec.Struct, frozen=True):
    """What any version can read of a checkpoint."""

    seq: int = 0
    ts: int = 0


class Part(Protocol):
    """Lines that follow each other, as they are written."""

    @property
    def first(self) -> int:
        """At most the number of its first line, and more than any of the part before."""
        ...

    @property
    def end(self) -> int:
        """Bytes that may be read."""
        ...


class Segment(NamedTuple):
    """A part in a file."""

    first: int
    path: Path
    end: int


class Turns:
    """Lets other Python threads run now and then: all this is done off the event loop.

    A thread that wants to run must wait 5 ms before it may ask one that computes to stop, and an
    answer of the daemon wants to run several times.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()

    def give(self) -> None:
        """Cheap; pauses when it is time."""
        if time.monotonic() - self._began > TURN_S:
            time.sleep(PAUSE_S)
            self._began = time.monotonic()


_rows: Final = msgspec.json.Decoder(Row)
_marks: Final = msgspec.json.Decoder(Mark)


def path_of(directory: Path, first: int) -> Path:
    """Padded, so that they also sort by name."""
    return directory / f"{first:010d}{SUFFIX}"


def found_in(directory: Path) -> list[Segment]:
    """The segments by number, each with its whole size; none where there is no directory.

    Raises:
        OSError: They cannot be listed.
    """
    segments = []
    try:
        entries = os.scandir(directory)
    except FileNotFoundError:
        return []
    with entries:
        for entry in entries:
            stem, suffix = os.path.splitext(entry.name)  # noqa: PTH122  # no Path for each entry
            if suffix == SUFFIX and stem.isdecimal():
                with suppress(FileNotFoundError):  # it went meanwhile
                    segments.append(Segment(int(stem), Path(entry.path), entry.stat().st_size))
    return sorted(segments)


def committed(file: BinaryIO, size: int) -> tuple[int, Mark] | None:
    """Where the last complete batch of a segment ends, and its checkpoint; None = there is none."""
    # From the end, in steps that double: a batch that was torn may be larger than a slice.
    start, held = size, b""
    step = SLICE_BYTES
    while start > 0:
        begun = max(start - step, 0)
        file.seek(begun)
        held = file.read(start - begun) + held
        start, step = begun, step * 2
        found = last_mark(held, is_whole=start == 0)
        if found is not None:
            end, mark = found
            return start + end, mark
    return None


def last_mark(data: bytes, *, is_whole: bool = True) -> tuple[int, Mark] | None:
    """The last complete checkpoint, and where the line that it is ends; None = there is none.

    Args:
        data: Records; the last may be torn, and so may the first where they are not the whole.
        is_whole: A record begins where they begin.
    """
    end = len(data)
    while end > 0:
        before = data.rfind(b"\n{", 0, end)
        if before < 0 and not (is_whole and data.startswith(b"{")):
            return None
        stop = data.find(b"\n", before + 1)
        if stop >= 0:
            mark = mark_of(data[before + 1 : stop])
            if mark is not None:
                return stop + 1, mark
        end = before + 1
    return None


def mark_of(record: bytes) -> Mark | None:
    """None = it is no complete checkpoint."""
    try:
        return _marks.decode(record)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def slices(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """Whole records between two places at which records begin."""
    file.seek(start)
    at = start
    while at < end:
        data = file.read(min(SLICE_BYTES, end - at))
        if at + len(data) < end:
            data += file.readline()  # the rest of the record that the size cut
        if not data:
            return
        at += len(data)
        yield data


def rows_of(data: bytes) -> list[Row]:
    """The lines among these records; one that cannot be read is left out."""
    lines = without_marks(data)
    try:
        return _rows.decode_lines(lines)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [row for line in lines.splitlines() if (row := _row_of(line)) is not None]


def _row_of(line: bytes) -> Row | None:
    try:
        return _rows.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def without_marks(data: bytes) -> bytes:
    """The lines alone."""
    if data.startswith(b"{"):
        data = b"\n" + data
    first, *others = data.split(b"\n{")
    rests = (each.partition(b"\n")[2] for each in others)
    return b"\n".join(piece for piece in (first, *rests) if piece)


def place_of(file: BinaryIO, end: int, is_wanted: Key) -> int:
    """Where a record begins that is at most a slice before the first wanted line.

    Args:
        file: A segment.
        end: Its readable size.
        is_wanted: False for all lines up to somewhere and true behind; it gets a line's beginning.
    """
    # By places in the file: lines have no fixed length, and their numbers no fixed distance.
    low, high = 0, end
    while high - low > SLICE_BYTES:
        middle = (low + high) // 2
        at, line = _line_after(file, middle, high)
        if line is None or is_wanted(line):
            high = middle
        else:
            low = at
    return low


def _line_after(file: BinaryIO, start: int, end: int) -> tuple[int, bytes | None]:
    """The first line that begins between the two, and its place."""
    at, held = start, b""
    while at < end:
        file.seek(at)
        chunk = file.read(PROBE_BYTES)
        if not chunk:
            break
        held = held[-1:] + chunk  # a line break may have ended the chunk before
        found = held.find(b"\n[")
        if found >= 0:
            place = at + len(chunk) - len(held) + found + 1
            if place >= end:
                break
            file.seek(place)
            return place, file.read(PROBE_BYTES)
        at += len(chunk)
    return end, None


def seq_at(line: bytes) -> int:
    """The number in the beginning of a line."""
    return int(line[1 : line.index(b",")])


def first_seq(data: bytes) -> int | None:
    """The number of the first line among these records; None = it cannot be read, or none."""
    begun = 0 if data.startswith(b"[") else data.find(b"\n[") + 1
    with suppress(ValueError):
        return seq_at(data[begun : begun + PROBE_BYTES])
    return None


def ts_at(line: bytes) -> int:
    """The time in the beginning of a line."""
    begun = line.index(b",") + 1
    return int(line[begun : line.index(b",", begun)])


def holding(parts: Sequence[Part], seq: int) -> Part:
    """The part that holds that line, if any does; the first one for older lines."""
    return parts[max(bisect_right(parts, seq, key=lambda each: each.first) - 1, 0)]
