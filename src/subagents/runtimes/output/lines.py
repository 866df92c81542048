"""Cuts a stream of bytes into lines: plain ones in blocks, those that may be events one by one."""

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from subagents.runtimes.output.worker_events import LINE_BYTES_MAX

MARK: Final = b'"subagents"'
BEGINNING_BYTES: Final = 64 * 1024
"""Kept of a line that is too long."""
_MAY_BEGIN: Final = b"{ \t\r"
"""Bytes an event's line can begin with; the rest is not worth a look."""


class Kind(Enum):
    PLAIN = auto()
    """Whole lines, none of which can be an event."""
    MARKED = auto()
    """One line, without its newline, that may be an event."""
    CUT = auto()
    """The beginning of a line longer than ``LINE_BYTES_MAX``."""


class Part(NamedTuple):
    kind: Kind
    start: int
    """Byte offset in the file."""
    end: int
    """Offset behind it, its last newline included; of ``CUT`` maybe in the middle of the line."""
    data: bytes


class Lines:
    """Holds at most one unfinished line, ``LINE_BYTES_MAX`` and a chunk, whatever comes.

    Args:
        offset: Where reading begins.
        is_inside: In the middle of a line: what is left of it is skipped.
    """

    def __init__(self, offset: int, *, is_inside: bool = False) -> None:
        self._offset = offset
        self._held = b""
        self._skipping = is_inside

    @property
    def position(self) -> int:
        """Offset behind the last line that was complete, or too long: reading may continue here."""
        return self._offset

    @property
    def fed(self) -> int:
        """Offset behind all bytes fed so far."""
        return self._offset + len(self._held)

    def feed(self, chunk: bytes) -> list[Part]:
        """Return what ``chunk`` completes.

        However the bytes are cut into chunks, the same lines come out, in one block or several.
        """
        if self._skipping:
            cut = chunk.find(b"\n") + 1
            self._offset += cut or len(chunk)
            if not cut:
                return []
            chunk, self._skipping = chunk[cut:], False
        data = self._held + chunk if self._held else chunk
        end = data.rfind(b"\n") + 1
        parts = list(self._parts(data, end))
        self._offset += end
        self._held = data[end:]
        if len(self._held) > LINE_BYTES_MAX:
            parts.append(self._cut(self._held, 0, len(self._held)))
            self._offset += len(self._held)
            self._held, self._skipping = b"", True
        return parts

    def finish(self) -> list[Part]:
        """Return the last line when it has no newline; nothing comes after it."""
        held, start = self._held, self._offset
        self._offset, self._held = self.fed, b""
        if not held:
            return []
        kind = Kind.MARKED if MARK in held and held[0] in _MAY_BEGIN else Kind.PLAIN
        return [Part(kind, start, self._offset, held)]

    def _parts(self, data: bytes, end: int) -> Iterator[Part]:
        at = 0
        while end - at > LINE_BYTES_MAX:
            stop = data.find(b"\n", at) + 1
            if stop - 1 - at > LINE_BYTES_MAX:
                yield self._cut(data, at, stop)
            else:
                yield from self._whole(data, at, stop)
            at = stop
        yield from self._whole(data, at, end)

    def _whole(self, data: bytes, at: int, end: int) -> Iterator[Part]:
        plain = at
        mark = data.find(MARK, at, end)
        while mark >= 0:
            start = max(data.rfind(b"\n", at, mark) + 1, at)
            stop = data.find(b"\n", mark, end)
            if data[start] in _MAY_BEGIN:
                if start > plain:
                    yield self._part(Kind.PLAIN, data, plain, start)
                line = data[start:stop]
                yield Part(Kind.MARKED, self._offset + start, self._offset + stop + 1, line)
                plain = stop + 1
            at = stop + 1
            mark = data.find(MARK, at, end)
        if end > plain:
            yield self._part(Kind.PLAIN, data, plain, end)

    def _part(self, kind: Kind, data: bytes, start: int, end: int) -> Part:
        whole = data if end - start == len(data) else data[start:end]
        return Part(kind, self._offset + start, self._offset + end, whole)

    def _cut(self, data: bytes, start: int, end: int) -> Part:
        beginning = data[start : min(end, start + BEGINNING_BYTES)]
        return Part(Kind.CUT, self._offset + start, self._offset + end, beginning)
