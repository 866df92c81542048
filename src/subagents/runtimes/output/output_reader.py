"""What a worker wrote, as signals and items; read from files, so nothing depends on a pipe.

One reader goes through standard output once for both: events are signals (``events``), and every
line is output. Standard error is output alone. Reading never holds more than a line and a
chunk, whatever the size of the output, and every call into C is short, so that a worker that
prints a million lines leaves the interpreter to the others every few milliseconds.

Without a ``result`` event the result is the end of the plain text (``tail``).
"""

import codecs
import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from subagents.domain.redaction.redact import MARGIN_BYTES, ending
from subagents.domain.rules.evidence import most
from subagents.domain.run.signals import ProgressSeen, ResultSeen, Signal, UsageSeen
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import AttemptId, replace
from subagents.domain.run.worker_output import RESULT_BYTES_MAX, OutputBatch, OutputItem
from subagents.ports import LongResult
from subagents.runtimes.output.lines import MARK, Kind, Lines, Part
from subagents.runtimes.output.terminal_text import clean, cut_line_item, line_items
from subagents.runtimes.output.worker_events import (
    LINE_BYTES_MAX,
    ResultEvent,
    TextEvent,
    event_of,
    output_item_of,
    signal_of,
)

CHUNK_BYTES: Final = 64 * 1024
"""Read and split in one go: some 0.1 ms in which no other thread of this process runs."""
READ_BYTES_MAX: Final = 16 * CHUNK_BYTES
"""The most that one turn on a thread reads, so that one huge output does not hold up the others."""
ITEMS_MAX: Final = 2_000
"""The most items of one ``OutputBatch``; a turn ends when it has as many."""

ENDED_BYTES: Final = 64
STDERR_BYTES_MAX: Final = 4_096
OUT: Final = "out"
ERR: Final = "err"
EMPTIED: Final = ".emptied"
"""The names of the positions; with this behind it, where the worker last emptied the file."""

_SCAN_BYTES: Final = 256 * 1024
_CONTINUATION: Final = range(0x80, 0xC0)

Seen: TypeAlias = tuple[Signal | OutputBatch | LongResult, int]


class Sizes(NamedTuple):
    """How far the files are read in the end: children left behind may write for ever."""

    out: int
    err: int


@dataclass(slots=True)
class _Stream:
    """One file, read forward."""

    name: str
    path: str
    reported_until: int
    """What stands before it was yielded."""
    lines: Lines
    gone: int = 0
    """How much was read when the worker last emptied the file: offsets go on behind that."""
    ended: bytes = b""
    """The last that was read; where something else stands now, the worker has emptied the file."""

    @property
    def position(self) -> int:
        """Behind all that was yielded."""
        return max(self.lines.position, self.reported_until)

    @property
    def at(self) -> int:
        """How far the file as it is now was read."""
        return self.lines.fed - self.gone

    def read(self, *, until: int | None) -> tuple[list[Part], int]:
        """Read one chunk; returns what it completed and its size."""
        wanted = CHUNK_BYTES if until is None else max(min(CHUNK_BYTES, until - self.at), 0)
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb", buffering=0) as file:  # noqa: PTH123
            known = len(self.ended)
            data = os.pread(file.fileno(), known + wanted, self.at - known)
            if not data.startswith(self.ended):
                # By `> /dev/stderr` or `tee /dev/stdout`, say.
                self.gone, self.ended = self.lines.fed, b""
                return self.read(until=until)
            self.ended = data[-ENDED_BYTES:]
            return self.lines.feed(data[known:]), len(data) - known
        return [], 0


def _stream(name: str, path: str, begin: int, positions: Mapping[str, int]) -> _Stream:
    gone = positions.get(name + EMPTIED, 0)
    lines = Lines(begin, is_inside=_is_inside(path, begin - gone))
    return _Stream(name, path, positions.get(name, 0), lines, gone)


class Output:
    """Reads what one attempt writes, from where its reader stopped before.

    Blocking, for one thread at a time. Reading again from the same places gives signals with the
    same keys, and the same items.

    Args:
        out: Path of the standard output.
        err: Path of the standard error.
        attempt_id: Begins the keys of signals.
        cursor: Signals in lines before it were taken.
        positions: By ``OUT`` and ``ERR``: output before them was yielded.
    """

    def __init__(
        self,
        out: str,
        err: str,
        attempt_id: AttemptId,
        *,
        cursor: int,
        positions: Mapping[str, int],
    ) -> None:
        self._attempt_id = attempt_id
        self._cursor = cursor
        self._settled_cursor = cursor
        """The cursor that goes with output: all signals before it were returned."""
        self._reported = {name: positions.get(name, 0) for name in (OUT, ERR)}
        self.begin = min(cursor, self._reported[OUT])
        """Where reading standard output begins."""
        self._out = _stream(OUT, out, self.begin, positions)
        self._err = _stream(ERR, err, self._reported[ERR], positions)
        self._result_seen = False

    @property
    def position(self) -> int:
        """Behind all that was read of the standard output."""
        return max(self._out.lines.fed, self._cursor)

    @property
    def fed(self) -> Sizes:
        """How far both files, as they are now, were read."""
        return Sizes(out=self._out.at, err=self._err.at)

    def read(self, *, until: Sizes | None = None) -> tuple[list[Seen], bool]:
        """Read what is new, for some milliseconds; returns ``(what was seen, there may be more)``.

        Of several ``usage`` or ``progress`` events in one turn one is returned, for a worker that
        floods must not flood the journal: the last progress, and the most of each total, so that
        a worker cannot take back what it reported before somebody looked.
        """
        turn = _ReadPass(self._attempt_id, self._reported, cursor=self._cursor)
        more_out = turn.take(self._out, until=None if until is None else until.out)
        more_err = turn.take(self._err, until=None if until is None else until.err)
        return self._seen(turn), more_out or more_err

    def rest(self, *, result_before: bool) -> list[Seen]:
        """After the last ``read``: unterminated lines, and the end of the text as result.

        Args:
            result_before: Whether a ``result`` event stands before ``begin``. The end of the text
                is the result only where there is none at all.
        """
        turn = _ReadPass(self._attempt_id, self._reported, cursor=self._cursor)
        for stream in (self._out, self._err):
            turn.add(stream, stream.lines.finish())
        found = self._seen(turn)
        if not self._result_seen and not result_before:
            found.append((self._tail_as_result(), self.position))
        return found

    def _seen(self, turn: "_ReadPass") -> list[Seen]:
        """Output before signals: whoever crashes in between reads the signals again."""
        turn.close()
        self._reported = turn.positions
        self._result_seen = self._result_seen or turn.result_seen
        found: list[Seen] = [(batch, self._settled_cursor) for batch in turn.batches]
        found += newest(turn.signals)
        self._settled_cursor = max(self._settled_cursor, self._out.lines.position)
        return found

    def _tail_as_result(self) -> ResultSeen | LongResult:
        most, end = RESULT_BYTES_MAX + MARGIN_BYTES, self.position - self._out.gone
        data, size = tail(self._out.path, most, end=end)
        if size > most:
            data = _without_rest_of_event(data)
        is_long = size > RESULT_BYTES_MAX
        seen = ResultSeen(
            key=f"{self._attempt_id}:result",
            text=clean(ending(_spoken(data), RESULT_BYTES_MAX)),
            bytes_total=size if is_long else 0,
        )
        if not is_long:
            return seen
        return LongResult(seen, partial(whole_text, self._out.path, end=end))


class _ReadPass:
    """What one turn of reading finds."""

    def __init__(self, attempt_id: AttemptId, reported: Mapping[str, int], *, cursor: int) -> None:
        self.batches: list[OutputBatch] = []
        self.signals: list[tuple[Signal, int]] = []
        self.positions = dict(reported)
        self.result_seen = False
        self._attempt_id = attempt_id
        self._reported = reported
        self._cursor = cursor
        self._output: list[OutputItem] = []
        self._count = 0

    def take(self, stream: _Stream, *, until: int | None) -> bool:
        """Read until there is no more, or enough; returns whether there may be more."""
        budget, size = READ_BYTES_MAX, 1
        while size and budget > 0 and self._count < ITEMS_MAX:
            parts, size = stream.read(until=until)
            budget -= size
            self.add(stream, parts)
        return bool(size)

    def add(self, stream: _Stream, parts: Sequence[Part]) -> None:
        if stream.gone:
            self.positions[stream.name + EMPTIED] = stream.gone
        for part in parts:
            self._add(stream, part)
        self.positions[stream.name] = stream.position

    def _add(self, stream: _Stream, part: Part) -> None:
        event = None
        if part.kind is Kind.MARKED and stream.name == OUT:
            event = event_of(part.data)
        if event is not None:
            self.result_seen = self.result_seen or isinstance(event, ResultEvent)
            signal = signal_of(event, key=f"{self._attempt_id}:out:{part.start}")
            # Signals go to the ledger and output to the transcript, which are written apart: after
            # a crash either may be behind the other, so each has a cursor of its own.
            if signal is not None and part.start >= self._cursor:
                self.signals.append((signal, part.end))
            if part.start >= stream.reported_until:
                self._add_items(stream, [output_item_of(event)], part.end)
        elif part.kind is Kind.CUT:
            if part.start >= stream.reported_until:
                output = cut_line_item(part.data, is_stderr=stream.name == ERR)
                self._add_items(stream, [output], part.end)
        elif part.end > stream.reported_until:
            skipped = max(stream.reported_until - part.start, 0)
            at = part.start + skipped
            for block in _blocks(part.data[skipped:] if skipped else part.data):
                at += len(block)
                self._add_items(
                    stream, line_items(block, is_stderr=stream.name == ERR), min(at, part.end)
                )

    def _add_items(self, stream: _Stream, output: list[OutputItem], position: int) -> None:
        if self._output and len(self._output) + len(output) > ITEMS_MAX:
            self.close()
        self._output += output
        self._count += len(output)
        self.positions[stream.name] = position

    def close(self) -> None:
        """Make one ``OutputBatch`` of what came since the last; also when only blank lines did."""
        if self._output or self.positions != self._reported:
            self._reported = dict(self.positions)
            self.batches.append(OutputBatch(items=tuple(self._output), positions=self._reported))
            self._output = []


def newest(signals: list[tuple[Signal, int]]) -> list[tuple[Signal, int]]:
    """Of progress only the last; of usage one, with the most that was reported of each field."""
    kept: list[tuple[Signal, int]] = []
    replaced: set[type[Signal]] = set()
    reported = Usage()
    for signal, _ in signals:
        if isinstance(signal, UsageSeen):
            reported = most(reported, signal.usage)
    for signal, end in reversed(signals):
        if type(signal) in replaced:
            continue
        if isinstance(signal, (UsageSeen, ProgressSeen)):
            replaced.add(type(signal))
        shown = replace(signal, usage=reported) if isinstance(signal, UsageSeen) else signal
        kept.append((shown, end))
    kept.reverse()
    return kept


def _blocks(data: bytes) -> Iterator[bytes]:
    """``data`` in blocks of at most ``ITEMS_MAX`` whole lines."""
    if data.count(b"\n") <= ITEMS_MAX:
        yield data
        return
    lines = data.split(b"\n")
    for at in range(0, len(lines), ITEMS_MAX):
        ending = b"\n" if at + ITEMS_MAX < len(lines) else b""
        yield b"\n".join(lines[at : at + ITEMS_MAX]) + ending


def _is_inside(path: str, offset: int) -> bool:
    """Whether the offset lies within a line: of one that is too long, the end is not waited for."""
    if offset == 0:
        return False
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:  # noqa: PTH123
        return os.pread(file.fileno(), 1, offset - 1) not in {b"", b"\n"}
    return False


def has_result(path: str, *, start: int, stop: int) -> bool:
    """Whether a ``result`` event stands between the two offsets. Blocking, in bounded memory."""
    start = max(start, 0)
    if start >= stop:
        return False
    lines, found = Lines(start, is_inside=_is_inside(path, start)), False
    with contextlib.suppress(FileNotFoundError), open(path, "rb", buffering=0) as file:  # noqa: PTH123
        while not found and lines.fed < stop:
            chunk = os.pread(file.fileno(), min(_SCAN_BYTES, stop - lines.fed), lines.fed)
            found = _any_result(lines.feed(chunk))
            if not chunk:
                break
    # The offset may stand behind an unterminated last line.
    return found or _any_result(lines.finish())


def _any_result(parts: Sequence[Part]) -> bool:
    return any(
        part.kind is Kind.MARKED and isinstance(event_of(part.data), ResultEvent) for part in parts
    )


def whole_text(path: str, bytes_max: int, *, end: int) -> Iterator[str]:
    """What a worker wrote without its structured events, in blocks of whole lines. Blocking.

    Reading stops at the offset ``end``; of more than ``bytes_max`` before it the last part is read.
    Holes are skipped.
    """
    with contextlib.suppress(FileNotFoundError), open(path, "rb", buffering=0) as file:  # noqa: PTH123
        file_no, at = file.fileno(), max(end - bytes_max, 0)
        begin = _first_data(file_no, at)
        held, newlines = b"", ""
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        is_cut = begin > 0
        at = begin
        while at < end and (chunk := os.pread(file_no, min(CHUNK_BYTES, end - at), at)):
            at += len(chunk)
            if is_cut:
                # Half a line is no beginning; of one that is longer than a chunk it has to be.
                chunk, is_cut = chunk[chunk.find(b"\n") + 1 :], False
            held += chunk
            cut = held.rfind(b"\n") + 1
            if not cut and len(held) <= LINE_BYTES_MAX:
                continue
            block, held = (held[:cut], held[cut:]) if cut else (held, b"")
            # Of a line that is too long for a block, a character may go on in the next.
            text = newlines + decode(_spoken(block))
            # Only the newlines at the very end are no part of it, as of a short result.
            shown = clean(text)
            newlines = text[len(shown) :]
            if shown:
                yield shown
        last = clean(newlines + decode(_spoken(held), True))
        if last:
            yield last


def _first_data(file_no: int, at: int) -> int:
    """The first offset from there on that was not punched out of the file."""
    try:
        return os.lseek(file_no, at, os.SEEK_DATA)
    except OSError:
        return at


def _without_rest_of_event(data: bytes) -> bytes:
    """Without the end of a structured event that was cut in two: it is not meant to be read."""
    first, _, others = data.partition(b"\n")
    is_rest = b'"' in first and first.rstrip().endswith(b"}")
    return others if others and is_rest else data


def _spoken(data: bytes) -> bytes:
    """The text without structured events: they were reported, and are not meant to be read."""
    if MARK not in data:
        return data
    spoken = []
    for line in data.splitlines(keepends=True):
        match event_of(line):
            case None:
                spoken.append(line)
            case TextEvent(text=text):
                spoken.append(text.encode() + b"\n")
            case _:
                pass
    return b"".join(spoken)


def tail(path: str, bytes_max: int, *, end: int | None = None) -> tuple[bytes, int]:
    """Return the last bytes before ``end``, cut at a UTF-8 boundary, and the size up to ``end``.

    Blocking. A file that is not there is empty.
    """
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            size = os.fstat(file.fileno()).st_size
            size = size if end is None else min(size, end)
            start = max(size - bytes_max, 0)
            data = os.pread(file.fileno(), size - start, start)
    except FileNotFoundError:
        return b"", 0
    if size > bytes_max:
        cut = 0
        while cut < min(3, len(data)) and data[cut] in _CONTINUATION:
            cut += 1
        data = data[cut:]
    return data, size
