"""Reads what one turn of a conversation writes, and answers it; the I/O around a ``Dialect``.

The state is a fold over ``out``: after a restart it is folded again, from its beginning or from the
last checkpoint. What was taken before is folded in silence: only what stands behind ``cursor`` and
``positions`` is yielded. A checkpoint is made when what stands before it is to be let go.
"""

import contextlib
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from subagents.domain.run.run import Exit
from subagents.domain.run.signals import Exited, Signal
from subagents.domain.run.values import Value, replace
from subagents.domain.run.worker_output import LineType, OutputBatch, OutputItem
from subagents.runtimes.conversation.dialect import (
    Dialect,
    InputLine,
    Opening,
    TurnStep,
)
from subagents.runtimes.conversation.worker_input import WorkerInput
from subagents.runtimes.output.lines import Kind, Lines
from subagents.runtimes.output.output_reader import (
    CHUNK_BYTES,
    ERR,
    OUT,
    PIECES_MAX,
    READ_BYTES_MAX,
    Seen,
    Sizes,
)
from subagents.runtimes.output.output_reader import newest as newest_of
from subagents.runtimes.output.terminal_text import beginning, pieces
from subagents.runtimes.process.discard import KEPT_BYTES, punch
from subagents.runtimes.process.shim import Place

log = logging.getLogger(__name__)

S = TypeVar("S")

CHECKPOINT: Final = "state"
MARK_BYTES: Final = 1024 * 1024
MARKS_MAX: Final = 64
"""So many states at places so far apart are remembered: what is let go lags behind by one."""
LINE_BYTES_MAX: Final = 16 * 1024 * 1024
"""A longer line is not decoded; programs put whole files and pictures into one."""


class TurnReader(Generic[S]):
    """One turn as it is read. Blocking, for one thread at a time; ``state`` may be read by others.

    Args:
        dialect: How its program speaks.
        opening: What the turn began with.
        place: Its files.
        post: Where answers go.
        cursor: Signals in lines before it were taken.
        positions: By name: what stands before was heard.
        now_ms: The time.
        on_change: Called after each read, from the reading thread.
    """

    def __init__(
        self,
        dialect: Dialect[S],
        opening: Opening,
        place: Place,
        post: WorkerInput,
        *,
        cursor: int,
        positions: Mapping[str, int],
        now_ms: Callable[[], int],
        on_change: Callable[[], None],
    ) -> None:
        self._dialect = dialect
        self._opening = opening
        self._place = place
        self.post = post
        self._cursor = cursor
        self._given = cursor
        """The cursor that goes with pieces: all signals before it were returned."""
        self._now_ms = now_ms
        self._on_change = on_change
        suffix = "" if opening.turn == 1 else f".{opening.turn}"
        self._names = {OUT: f"{OUT}{suffix}", ERR: f"{ERR}{suffix}"}
        self._kept = {
            OUT: positions.get(self._names[OUT], 0),
            ERR: positions.get(self._names[ERR], 0),
        }
        self._told = dict(self._kept)
        first = dialect.begin(opening)
        begin = _checkpoint(place.path / CHECKPOINT, type(first.state))
        self._out = _LongLines(0 if begin is None else begin.offset)
        self._err = Lines(self._kept[ERR])
        self.state = first.state if begin is None else begin.state
        self._marks: deque[_Checkpoint[S]] = deque(maxlen=MARKS_MAX)
        self._unsent: list[InputLine] = list(first.input_lines)
        self._is_over = False

    @property
    def position(self) -> int:
        """See ``shim.Reader``."""
        return max(self._out.fed, self._cursor)

    @property
    def is_done(self) -> bool:
        """The turn ended as its protocol says."""
        return self._dialect.is_done(self.state)

    @property
    def is_over(self) -> bool:
        """Nothing will be read any more."""
        return self._is_over

    def read(self, *, until: Sizes | None = None) -> tuple[list[Seen], bool]:
        """See ``shim.Reader``; answers are sent before it returns.

        Raises:
            OSError: An answer could not be sent; reading again goes on.
        """
        turn = _Turn(self._told, self._names)
        # Before anything else is read: what a crash, or a full disk, kept from being sent.
        self._send()
        more_out = self._read_out(turn, None if until is None else until.out)
        more_err = self._read_err(turn, None if until is None else until.err)
        self._send()
        self._mark()
        seen = self._seen(turn)
        self._on_change()
        return seen, more_out or more_err

    def finish(self) -> list[Seen]:
        """See ``shim.Reader``: the last unfinished line, and what an open turn came to."""
        turn = _Turn(self._told, self._names)
        for start, end, line in self._out.finish():
            self._take(turn, start, end, line)
        for part in self._err.finish():
            turn.hear(ERR, pieces(part.data, is_stderr=True), part.end)
        last = self._guarded(lambda: self._dialect.finish(self.state))
        self.state = last.state
        turn.hear(OUT, list(last.output), self._out.position)
        key = f"{self._opening.attempt_id}:finish"
        turn.signals += [
            (replace(each, key=f"{key}:{number}"), self.position)
            for number, each in enumerate(last.signals)
        ]
        self._is_over = True
        self._on_change()
        return self._seen(turn)

    def let_go(self, *, cursor: int, positions: Mapping[str, int]) -> None:
        """Free the disk of what stands before these positions, behind a checkpoint. Idempotent.

        Raises:
            OSError: Not all could be let go.
        """
        kept = min(cursor, positions.get(self._names[OUT], 0))
        found = [mark for mark in tuple(self._marks) if mark.offset <= kept]
        if found:
            path = self._place.path / CHECKPOINT
            draft = path.with_name(f".{CHECKPOINT}")
            draft.write_bytes(msgspec.json.encode(found[-1]))
            draft.replace(path)
            punch(self._place.out, until=found[-1].offset)
        punch(self._place.err, until=positions.get(self._names[ERR], 0) - KEPT_BYTES)

    def judged(self, seen: Exited) -> Exited:
        """How the worker ended: when its turn is over it did what it was there for.

        Programs that end badly after a good turn (or are ended, because they do not go by
        themselves) do not make it a bad one.
        """
        return replace(seen, exit=Exit(code=0)) if self.is_done else seen

    def _read_out(self, turn: "_Turn", until: int | None) -> bool:
        budget, size = READ_BYTES_MAX, 1
        while size and budget > 0 and turn.count < PIECES_MAX:
            chunk = _chunk(self._place.out, self._out.fed, until)
            size = len(chunk)
            budget -= size
            for start, end, line in self._out.feed(chunk):
                self._take(turn, start, end, line)
            turn.reached(OUT, max(self._out.position, self._kept[OUT]))
        return bool(size)

    def _read_err(self, turn: "_Turn", until: int | None) -> bool:
        budget, size = READ_BYTES_MAX, 1
        while size and budget > 0 and turn.count < PIECES_MAX:
            chunk = _chunk(self._place.err, self._err.fed, until)
            size = len(chunk)
            budget -= size
            for part in self._err.feed(chunk):
                is_cut = part.kind is Kind.CUT
                output = (
                    [beginning(part.data, is_stderr=True)]
                    if is_cut
                    else pieces(part.data, is_stderr=True)
                )
                turn.hear(ERR, output, part.end)
        return bool(size)

    def _take(self, turn: "_Turn", start: int, end: int, line: bytes | None) -> None:
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
            turn.hear(OUT, list(step.output), end)
        if start >= self._cursor:
            key = f"{self._opening.attempt_id}:{self._names[OUT]}:{start}"
            last = len(step.signals) - 1
            # Only the last one is behind its line: whoever is killed after an earlier one reads the
            # line again, where the keys tell which of its signals are known.
            turn.signals += [
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
        """Remember the state at a place, now and then: all that was to be sent by then was sent."""
        last = self._marks[-1].offset if self._marks else 0
        if self._out.position - last >= MARK_BYTES:
            self._marks.append(_Checkpoint(self._out.position, self.state))

    def _send(self) -> None:
        if self._unsent:
            # Without its input it was never started, or is forgotten: nobody is there to answer.
            with contextlib.suppress(FileNotFoundError):
                self.post.send(self._unsent)
            self._unsent = []

    def _seen(self, turn: "_Turn") -> list[Seen]:
        """Pieces before signals: whoever crashes in between reads the signals again."""
        turn.close()
        self._told = turn.positions
        found: list[Seen] = [(batch, self._given) for batch in turn.batches]
        found += newest_of(turn.signals)
        self._given = max(self._given, self._out.position)
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


class _Turn:
    """What one turn of reading finds."""

    def __init__(self, told: Mapping[str, int], names: Mapping[str, str]) -> None:
        self.batches: list[OutputBatch] = []
        self.signals: list[tuple[Signal, int]] = []
        self.positions = dict(told)
        self.count = 0
        self._told = dict(told)
        self._names = names
        self._output: list[OutputItem] = []

    def hear(self, stream: str, output: list[OutputItem], position: int) -> None:
        if self._output and len(self._output) + len(output) > PIECES_MAX:
            self.close()
        self._output += output
        self.count += len(output)
        self.reached(stream, position)

    def reached(self, stream: str, position: int) -> None:
        self.positions[stream] = max(position, self.positions[stream])

    def close(self) -> None:
        """Make one ``OutputBatch`` of what came since the last, also of blank output."""
        if self._output or self.positions != self._told:
            self._told = dict(self.positions)
            named = {self._names[stream]: at for stream, at in self._told.items()}
            self.batches.append(OutputBatch(items=tuple(self._output), positions=named))
            self._output = []


class _LongLines:
    """Cuts standard output into lines ``(start, end, line)``; None for one that is too long."""

    def __init__(self, begin: int) -> None:
        self.position = begin
        """Behind the last whole line."""
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
