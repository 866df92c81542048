"""Reads what one turn of a conversation writes, and answers it; the I/O around a ``Dialect``.

The state is a fold over ``out``: after a restart it is folded again, from its beginning or from the
last checkpoint. What was taken before is folded in silence: only what stands behind ``cursor`` and
``positions`` is yielded. A checkpoint is made when what stands before it is to be discarded.

A checkpoint holds the dialect's state by its field names, so that a new version continues from one
that an older version wrote: a field of a state is not renamed without ``msgspec.field(name=…)``.
"""

import contextlib
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from subagents.disk_blocks import punch
from subagents.domain.run.run import Exit
from subagents.domain.run.signals import Exited, ResultSeen, Signal
from subagents.domain.run.values import Value, replace
from subagents.domain.run.worker_output import LineType, OutputBatch, OutputItem
from subagents.extensions.conversation.dialect import (
    Dialect,
    InputLine,
    Opening,
    TurnStep,
)
from subagents.extensions.conversation.worker_input import WorkerInput
from subagents.runtimes.output.lines import Kind, Lines
from subagents.runtimes.output.output_reader import (
    CHUNK_BYTES,
    ERR,
    ITEMS_MAX,
    OUT,
    READ_BYTES_MAX,
    Seen,
    Sizes,
)
from subagents.runtimes.output.output_reader import newest as newest_of
from subagents.runtimes.output.terminal_text import cut_line_item, line_items
from subagents.runtimes.process.discard import KEPT_BYTES
from subagents.runtimes.process.shim import AttemptDirectory

log = logging.getLogger(__name__)

S = TypeVar("S")

CHECKPOINT: Final = "state"
OVERDUE: Final = "overdue"
"""Written next to it before a program is ended that never began its turn: why."""
CHECKPOINT_BYTES: Final = 1024 * 1024
CHECKPOINTS_MAX: Final = 64
"""How many states, ``CHECKPOINT_BYTES`` apart, are remembered: what is discarded lags behind by one
of them."""
LINE_BYTES_MAX: Final = 16 * 1024 * 1024
"""A longer line is not decoded; programs put whole files and pictures into one."""


class TurnReader(Generic[S]):
    """One turn as it is read. Blocking, for one thread at a time; ``state`` may be read by others.

    Args:
        dialect: How its program speaks.
        opening: What the turn began with.
        directory: Its files.
        worker_input: Where answers go.
        cursor: Signals in lines before it were taken.
        positions: By name: output before them was taken.
        now_ms: The time.
        on_change: Called after each read, from the reading thread.
    """

    def __init__(
        self,
        dialect: Dialect[S],
        opening: Opening,
        directory: AttemptDirectory,
        worker_input: WorkerInput,
        *,
        cursor: int,
        positions: Mapping[str, int],
        now_ms: Callable[[], int],
        on_change: Callable[[], None],
    ) -> None:
        self._dialect = dialect
        self._opening = opening
        self._directory = directory
        self.worker_input = worker_input
        self._cursor = cursor
        self._settled_cursor = cursor
        """The cursor that goes with output: all signals before it were returned."""
        self._now_ms = now_ms
        self._on_change = on_change
        suffix = "" if opening.turn == 1 else f".{opening.turn}"
        self._names = {OUT: f"{OUT}{suffix}", ERR: f"{ERR}{suffix}"}
        self._kept = {
            OUT: positions.get(self._names[OUT], 0),
            ERR: positions.get(self._names[ERR], 0),
        }
        self._reported = dict(self._kept)
        first = dialect.begin(opening)
        begin = _checkpoint(directory.path / CHECKPOINT, type(first.state))
        self._out = _LongLines(0 if begin is None else begin.offset)
        self._err = Lines(self._kept[ERR])
        self.state = first.state if begin is None else begin.state
        self._checkpoints: deque[_Checkpoint[S]] = deque(maxlen=CHECKPOINTS_MAX)
        self._unsent: list[InputLine] = list(first.input_lines)
        self._is_over = False
        self._ended_unfinished = False
        """The program ended before its turn was over: what ``finish`` made of it is no good end."""

    @property
    def position(self) -> int:
        """See ``shim.AttemptReader``."""
        return max(self._out.fed, self._cursor)

    @property
    def fed(self) -> Sizes:
        """See ``shim.AttemptReader``."""
        return Sizes(out=self._out.fed, err=self._err.fed)

    @property
    def is_done(self) -> bool:
        """The turn ended as its protocol says."""
        return self._dialect.is_done(self.state)

    @property
    def is_over(self) -> bool:
        """Nothing will be read any more."""
        return self._is_over

    def read(self, *, until: Sizes | None = None) -> tuple[list[Seen], bool]:
        """See ``shim.AttemptReader``; answers are sent before it returns.

        Raises:
            OSError: An answer could not be sent; read again.
        """
        reading = _ReadPass(self._reported, self._names)
        # Before anything else is read: what a crash, or a full disk, kept from being sent.
        self._send()
        more_out = self._read_out(reading, None if until is None else until.out)
        more_err = self._read_err(reading, None if until is None else until.err)
        self._send()
        self._mark()
        seen = self._seen(reading)
        self._on_change()
        return seen, more_out or more_err

    def finish(self) -> list[Seen]:
        """See ``shim.AttemptReader``: the last unfinished line, and what an open turn came to."""
        reading = _ReadPass(self._reported, self._names)
        for start, end, line in self._out.finish():
            self._take(reading, start, end, line)
        for part in self._err.finish():
            reading.add(ERR, line_items(part.data, is_stderr=True), part.end)
        self._ended_unfinished = not self.is_done
        last = self._guarded(lambda: self._dialect.finish(self.state))
        self.state = last.state
        overdue = self._overdue()
        if overdue is not None:
            result = ResultSeen(key="", text="", is_error=True, error=overdue)
            last = last._replace(signals=(result,))
        reading.add(OUT, list(last.output), self._out.position)
        key = f"{self._opening.attempt_id}:finish"
        reading.signals += [
            (replace(each, key=f"{key}:{number}"), self.position)
            for number, each in enumerate(last.signals)
        ]
        self._is_over = True
        self._on_change()
        return self._seen(reading)

    def discard_before(self, *, cursor: int, positions: Mapping[str, int]) -> None:
        """Free the disk of what stands before these positions, behind a checkpoint. Idempotent.

        Raises:
            OSError: Not all could be discarded.
        """
        kept = min(cursor, positions.get(self._names[OUT], 0))
        found = [mark for mark in tuple(self._checkpoints) if mark.offset <= kept]
        if found:
            path = self._directory.path / CHECKPOINT
            draft = path.with_name(f".{CHECKPOINT}")
            draft.write_bytes(msgspec.json.encode(found[-1]))
            draft.replace(path)
            # After the rename: reading begins behind the checkpoint now, and not before.
            punch(self._directory.out, until=found[-1].offset)
        punch(self._directory.err, until=positions.get(self._names[ERR], 0) - KEPT_BYTES)

    def as_ended(self, seen: Exited) -> Exited:
        """How the worker ended: when its turn is over it did what it was there for.

        Programs that end badly after a good turn (or are ended, because they do not go by
        themselves) do not make it a bad one. Of one that was ended because it never began, the
        result says why.
        """
        is_good = self.is_done and not self._ended_unfinished
        is_explained = is_good or self._overdue() is not None
        return replace(seen, exit=Exit(code=0)) if is_explained else seen

    def _overdue(self) -> str | None:
        """Why it was ended before its turn had begun; None = it was not."""
        try:
            return (self._directory.path / OVERDUE).read_text()
        except FileNotFoundError:
            return None

    def _read_out(self, reading: "_ReadPass", until: int | None) -> bool:
        budget, size = READ_BYTES_MAX, 1
        while size and budget > 0 and reading.count < ITEMS_MAX:
            chunk = _chunk(self._directory.out, self._out.fed, until)
            size = len(chunk)
            budget -= size
            for start, end, line in self._out.feed(chunk):
                self._take(reading, start, end, line)
            reading.reached(OUT, max(self._out.position, self._kept[OUT]))
        return bool(size)

    def _read_err(self, reading: "_ReadPass", until: int | None) -> bool:
        budget, size = READ_BYTES_MAX, 1
        while size and budget > 0 and reading.count < ITEMS_MAX:
            chunk = _chunk(self._directory.err, self._err.fed, until)
            size = len(chunk)
            budget -= size
            for part in self._err.feed(chunk):
                is_cut = part.kind is Kind.CUT
                output = (
                    [cut_line_item(part.data, is_stderr=True)]
                    if is_cut
                    else line_items(part.data, is_stderr=True)
                )
                reading.add(ERR, output, part.end)
        return bool(size)

    def _take(self, reading: "_ReadPass", start: int, end: int, line: bytes | None) -> None:
        """One line of standard output; None = it was too long."""
        is_news = start >= self._kept[OUT]
        if line is None:
            text = f"an event of more than {LINE_BYTES_MAX // 2**20} MiB was left out"
            step: TurnStep[S] = TurnStep(
                self.state, output=(OutputItem(type=LineType.SYSTEM, text=text),)
            )
        else:
            now_ms = self._now_ms() if is_news else None
            step = self._guarded(lambda: self._dialect.read_line(self.state, line, now_ms=now_ms))
        self.state = step.state
        self._unsent += step.input_lines
        if is_news:
            reading.add(OUT, list(step.output), end)
        if start >= self._cursor:
            key = f"{self._opening.attempt_id}:{self._names[OUT]}:{start}"
            last = len(step.signals) - 1
            # Only the last one is behind its line: whoever is killed after an earlier one reads the
            # line again, where the keys tell which of its signals are known.
            reading.signals += [
                (
                    replace(each, key=f"{key}:{number}" if number else key),
                    end if number == last else start,
                )
                for number, each in enumerate(step.signals)
            ]

    def _guarded(self, ask: Callable[[], TurnStep[S]]) -> TurnStep[S]:
        """A dialect promises never to raise; one that does all the same stops no daemon."""
        try:
            return ask()
        except Exception as error:
            log.exception("%s could not read an event", self._dialect.name)
            text = f"an event could not be read: {type(error).__name__}: {error}"
            return TurnStep(self.state, output=(OutputItem(type=LineType.ERROR, text=text[:500]),))

    def _mark(self) -> None:
        """Remember the state now and then, when all that was to be sent by then was sent."""
        last = self._checkpoints[-1].offset if self._checkpoints else 0
        if self._out.position - last >= CHECKPOINT_BYTES:
            self._checkpoints.append(_Checkpoint(self._out.position, self.state))

    def _send(self) -> None:
        if self._unsent:
            # Without its input file it was never started, or is forgotten: nobody reads an answer.
            with contextlib.suppress(FileNotFoundError):
                self.worker_input.send(self._unsent)
            self._unsent = []

    def _seen(self, reading: "_ReadPass") -> list[Seen]:
        """Output before signals: whoever crashes in between reads the signals again."""
        reading.close()
        self._reported = reading.positions
        found: list[Seen] = [(batch, self._settled_cursor) for batch in reading.batches]
        found += newest_of(reading.signals)
        self._settled_cursor = max(self._settled_cursor, self._out.position)
        return found


class _Checkpoint(Value, Generic[S], frozen=True):
    """The state behind so many bytes of standard output."""

    offset: int
    state: S


def _checkpoint(path: Path, form: type[S]) -> _Checkpoint[S] | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Checkpoint[form])  # type: ignore[valid-type]
    except FileNotFoundError:
        return None


class _ReadPass:
    """What one call of ``read`` or ``finish`` finds."""

    def __init__(self, attempt_variables: Mapping[str, int], names: Mapping[str, str]) -> None:
        self.batches: list[OutputBatch] = []
        self.signals: list[tuple[Signal, int]] = []
        self.positions = dict(attempt_variables)
        self.count = 0
        self._reported = dict(attempt_variables)
        self._names = names
        self._output: list[OutputItem] = []

    def add(self, stream: str, output: list[OutputItem], position: int) -> None:
        if self._output and len(self._output) + len(output) > ITEMS_MAX:
            self.close()
        self._output += output
        self.count += len(output)
        self.reached(stream, position)

    def reached(self, stream: str, position: int) -> None:
        self.positions[stream] = max(position, self.positions[stream])

    def close(self) -> None:
        """Make one ``OutputBatch`` of what came since the last, also of blank output."""
        if self._output or self.positions != self._reported:
            self._reported = dict(self.positions)
            named = {self._names[stream]: at for stream, at in self._reported.items()}
            self.batches.append(OutputBatch(items=tuple(self._output), positions=named))
            self._output = []


class _LongLines:
    """Cuts standard output into lines ``(start, end, line)``; None for one that is too long."""

    def __init__(self, begin: int) -> None:
        self.position = begin
        """The position after the last whole line."""
        self._held: list[bytes] = []
        self._held_size = 0

    @property
    def fed(self) -> int:
        return self.position + self._held_size

    def feed(self, chunk: bytes) -> Iterator[tuple[int, int, bytes | None]]:
        at = 0
        while (end := chunk.find(b"\n", at)) >= 0:
            yield self._line(chunk[at:end], newline=1)
            at = end + 1
        if at < len(chunk):
            self._hold(chunk[at:])

    def finish(self) -> Iterator[tuple[int, int, bytes | None]]:
        if self._held_size:
            yield self._line(b"", newline=0)

    def _line(self, rest: bytes, *, newline: int) -> tuple[int, int, bytes | None]:
        size = self._held_size + len(rest)
        line = None if size > LINE_BYTES_MAX else b"".join([*self._held, rest])
        start, self.position = self.position, self.position + size + newline
        self._held, self._held_size = [], 0
        return start, self.position, line

    def _hold(self, part: bytes) -> None:
        self._held_size += len(part)
        if self._held_size <= LINE_BYTES_MAX:
            self._held.append(part)
        else:
            self._held = []


def _chunk(path: str, at: int, until: int | None) -> bytes:
    wanted = CHUNK_BYTES if until is None else min(CHUNK_BYTES, until - at)
    if wanted > 0:
        with contextlib.suppress(FileNotFoundError), open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return os.pread(file.fileno(), wanted, at)
    return b""
