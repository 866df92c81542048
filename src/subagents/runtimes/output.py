"""What a worker wrote, turned into signals; read from files, so that nothing depends on a pipe.

A line of standard output that is a JSON object with the key ``"subagents"`` is a structured event:

=============  ==============================================================================
``"result"``   ``text``, ``isError``?, ``error``?: the attempt's result; the last one counts
``"report"``   ``summary``, ``status``?, ``confidence``?, ``artifacts``?, ``blockers``?,
               ``warnings``?: the worker's own claim of completion
``"usage"``    ``tokensIn``?, ``tokensOut``?, ``costUsd``?: totals of the attempt so far
``"progress"`` ``phase``, ``percentComplete``? (0 to 100)
``"tool"``     ``name``: a tool was used
``"text"``     ``text``: said in passing; no signal
=============  ==============================================================================

Anything else, also a malformed event or one longer than ``LINE_BYTES_MAX``, is plain text. Without
a ``result`` event the result is the end of the plain text (``tail``).

Reading never holds more than a line and a chunk, whatever the size of the output; chunks without
the key are neither split nor decoded, so a key written with JSON escapes is not seen.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import Iterator
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec

from subagents.domain.model import (
    Confidence,
    Progress,
    Report,
    ReportedArtifact,
    ReportStatus,
    Usage,
)
from subagents.domain.signals import (
    ProgressSeen,
    ReportSeen,
    ResultSeen,
    Signal,
    ToolSeen,
    UsageSeen,
)
from subagents.domain.values import AttemptId

MARK: Final = b'"subagents"'
LINE_BYTES_MAX: Final = 1024 * 1024
CHUNK_BYTES: Final = 256 * 1024
READ_BYTES_MAX: Final = 16 * CHUNK_BYTES
"""Per turn on a thread, so that one huge output does not hold up the others."""

RESULT_BYTES_MAX: Final = 32_768
STDERR_BYTES_MAX: Final = 4_096

POLL_MIN_S: Final = 0.05
POLL_MAX_S: Final = 1.0
_CONTINUATION: Final = range(0x80, 0xC0)
_MAY_BEGIN: Final = b"{ \t\r"
"""Bytes an event's line can begin with; the rest is not worth a look."""

_NUL_ESCAPE: Final = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
"""A NUL in a JSON string: databases and terminals choke on it, and no worker means it."""


class _Event(msgspec.Struct, frozen=True, tag_field="subagents", rename="camel"):
    """The names on the wire are those of the worker tools (3-tools)."""


_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Percent: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=100)]
_Dollars: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class _Result(_Event, frozen=True, tag="result"):
    text: str
    is_error: bool = False
    error: str | None = None


class _Report(_Event, frozen=True, tag="report"):
    summary: str
    status: ReportStatus = ReportStatus.COMPLETE
    confidence: Confidence | None = None
    artifacts: tuple[ReportedArtifact, ...] = ()
    blockers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class _Usage(_Event, frozen=True, tag="usage"):
    tokens_in: _Count | None = None
    tokens_out: _Count | None = None
    cost_usd: _Dollars | None = None


class _Progress(_Event, frozen=True, tag="progress"):
    phase: str
    percent_complete: _Percent | None = None


class _Tool(_Event, frozen=True, tag="tool"):
    name: str


class _Text(_Event, frozen=True, tag="text"):
    text: str


_AnyEvent: TypeAlias = _Result | _Report | _Usage | _Progress | _Tool | _Text
_DECODER: Final[msgspec.json.Decoder[_AnyEvent]] = msgspec.json.Decoder(_AnyEvent)


def decode(line: bytes, *, key: str) -> Signal | None:
    """Return the signal that one line of standard output is, or None for plain text.

    Args:
        line: Without its newline.
        key: Becomes the signal's ``key``.
    """
    match _event(line):
        case _Result() as event:
            return ResultSeen(
                key=key,
                text=event.text,
                is_error=event.is_error,
                error=event.error,
            )
        case _Report() as event:
            return ReportSeen(
                key=key,
                report=Report(
                    summary=event.summary,
                    status=event.status,
                    confidence=event.confidence,
                    artifacts=event.artifacts,
                    blockers=event.blockers,
                    warnings=event.warnings,
                ),
            )
        case _Usage() as event:
            usage = Usage(
                tokens_in=event.tokens_in, tokens_out=event.tokens_out, cost_usd=event.cost_usd
            )
            return UsageSeen(key=key, usage=usage)
        case _Progress() as event:
            progress = Progress(phase=event.phase, percent_complete=event.percent_complete)
            return ProgressSeen(key=key, progress=progress)
        case _Tool() as event:
            return ToolSeen(key=key, name=event.name)
        case _Text() | None:
            return None


def _event(line: bytes) -> _AnyEvent | None:
    if len(line) > LINE_BYTES_MAX or not line.lstrip().startswith(b"{"):
        return None
    try:
        return _DECODER.decode(_NUL_ESCAPE.sub(rb"\1\\ufffd", line))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class Line(NamedTuple):
    start: int
    """Byte offset in the file."""
    end: int
    """Offset after it and its newline."""
    data: bytes


class Lines:
    """Cuts a stream of bytes into the lines that may be events; the others are only counted."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self._held = b""
        self._skipping = False

    @property
    def position(self) -> int:
        """Offset after all bytes fed so far."""
        return self._offset + len(self._held)

    def feed(self, chunk: bytes) -> list[Line]:
        """Return the complete lines that ``chunk`` ends; at most ``LINE_BYTES_MAX`` each."""
        if self._skipping:
            cut = chunk.find(b"\n") + 1
            self._offset += cut or len(chunk)
            if not cut:
                return []
            chunk, self._skipping = chunk[cut:], False
        data = self._held + chunk
        end = data.rfind(b"\n") + 1
        found = list(self._marked(data, end))
        self._offset += end
        self._held = data[end:]
        if len(self._held) > LINE_BYTES_MAX:
            self._offset += len(self._held)
            self._held, self._skipping = b"", True
        return found

    def finish(self) -> list[Line]:
        """Return the last line when it has no newline; nothing comes after it."""
        if MARK not in self._held:
            return []
        return [Line(self._offset, self.position, self._held)]

    def _marked(self, data: bytes, end: int) -> Iterator[Line]:
        at = data.find(MARK, 0, end)
        while at >= 0:
            start = data.rfind(b"\n", 0, at) + 1
            stop = data.find(b"\n", at)
            if stop - start <= LINE_BYTES_MAX and data[start] in _MAY_BEGIN:
                yield Line(self._offset + start, self._offset + stop + 1, data[start:stop])
            at = data.find(MARK, stop, end)


class Output:
    """Reads one attempt's standard output as signals, from ``cursor`` on.

    Blocking, for one thread at a time. Reading again from the same cursor gives signals with the
    same keys.
    """

    def __init__(self, path: str, attempt_id: AttemptId, *, cursor: int) -> None:
        self.path = path
        self._attempt_id = attempt_id
        self._cursor = cursor
        self._lines = Lines(cursor)
        self._result_seen = False

    @property
    def position(self) -> int:
        return self._lines.position

    def read(self, *, until: int | None = None) -> tuple[list[tuple[Signal, int]], bool]:
        """Read what is new, ``READ_BYTES_MAX`` at most; returns ``(signals, there may be more)``.

        Of several ``usage`` or ``progress`` events in one turn only the last is returned: each
        replaces the one before, and a worker that floods must not flood the journal.
        """
        lines: list[Line] = []
        budget = READ_BYTES_MAX
        more = True
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb", buffering=0) as file:  # noqa: PTH123
            file.seek(self.position)
            while more and budget > 0:
                wanted = CHUNK_BYTES if until is None else min(CHUNK_BYTES, until - self.position)
                chunk = file.read(wanted) if wanted > 0 else b""
                lines += self._lines.feed(chunk)
                more = bool(chunk)
                budget -= len(chunk)
            return self._signals(lines), more
        return [], False

    def finish(self) -> list[tuple[Signal, int]]:
        """After the last ``read``: the unterminated line, and the end of the text as result.

        The latter only when no ``result`` event was seen since the beginning of the file.
        """
        signals = self._signals(self._lines.finish())
        if not self._result_seen and not self._result_before_cursor():
            signals.append((self._tail_as_result(), self.position))
        return signals

    def _signals(self, lines: list[Line]) -> list[tuple[Signal, int]]:
        signals: list[tuple[Signal, int]] = []
        replaced: set[type[Signal]] = set()
        for line in reversed(lines):
            signal = decode(line.data, key=f"{self._attempt_id}:out:{line.start}")
            if signal is None or type(signal) in replaced:
                continue
            if isinstance(signal, (UsageSeen, ProgressSeen)):
                replaced.add(type(signal))
            self._result_seen = self._result_seen or isinstance(signal, ResultSeen)
            signals.append((signal, line.end))
        signals.reverse()
        return signals

    def _result_before_cursor(self) -> bool:
        if self._cursor == 0:
            return False
        before = Output(self.path, self._attempt_id, cursor=0)
        more = True
        while more and not before._result_seen:
            _, more = before.read(until=self._cursor)
        # The cursor may stand after an unterminated last line.
        before._signals(before._lines.finish())
        return before._result_seen

    def _tail_as_result(self) -> ResultSeen:
        data, size = tail(self.path, RESULT_BYTES_MAX, end=self.position)
        return ResultSeen(
            key=f"{self._attempt_id}:result",
            text=clean(_spoken(data)),
            bytes_total=size if size > RESULT_BYTES_MAX else 0,
        )


def _spoken(data: bytes) -> bytes:
    """The text without structured events: they were reported, and are not meant to be read."""
    if MARK not in data:
        return data
    spoken = []
    for line in data.splitlines(keepends=True):
        match _event(line):
            case None:
                spoken.append(line)
            case _Text(text=text):
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
            file.seek(max(0, size - bytes_max))
            data = file.read(min(size, bytes_max))
    except FileNotFoundError:
        return b"", 0
    if size > bytes_max:
        cut = 0
        while cut < min(3, len(data)) and data[cut] in _CONTINUATION:
            cut += 1
        data = data[cut:]
    return data, size


def clean(data: bytes) -> str:
    """Text for people and databases: invalid UTF-8 and NUL replaced, trailing newlines stripped."""
    text = data.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.rstrip("\n")


class Poller:
    """Tells when followed files grow: one timer for all of them, and one ``stat`` per look.

    A file with news is looked at every ``POLL_MIN_S``, a quiet one less and less often, down to
    every ``POLL_MAX_S``; looks fall together, so that 200 quiet files wake the loop a few times per
    second. ``stat`` is called on the loop: attempt directories are expected on a local disk.
    """

    def __init__(self) -> None:
        self._followed: set[_Followed] = set()
        self._timer: asyncio.TimerHandle | None = None

    @contextlib.contextmanager
    def follow(self, path: str, news: asyncio.Event) -> Iterator[None]:
        """Set ``news`` whenever the file's size changed, while the context lasts."""
        followed = _Followed(path, news)
        self._followed.add(followed)
        self._arm()
        try:
            yield
        finally:
            self._followed.discard(followed)
            self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._followed:
            due = min(each.due for each in self._followed)
            self._timer = asyncio.get_running_loop().call_at(due, self._look)

    def _look(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for each in self._followed:
            if each.due <= now:
                each.look(now)
        self._arm()


class _Followed:
    def __init__(self, path: str, news: asyncio.Event) -> None:
        self.path = path
        self.news = news
        self.size = -1
        self.pause_s = POLL_MIN_S
        self.due = 0.0

    def look(self, now: float) -> None:
        try:
            size = os.stat(self.path).st_size  # noqa: PTH116  # hot: once per file and look
        except OSError:
            size = -1
        if size == self.size:
            self.pause_s = min(self.pause_s * 1.5, POLL_MAX_S)
        else:
            self.size, self.pause_s = size, POLL_MIN_S
            self.news.set()
        # Rounded up to a common grid: what is due at about the same time is looked at together.
        grid_s = POLL_MIN_S if self.pause_s < POLL_MAX_S / 2 else POLL_MAX_S / 4
        self.due = ((now + self.pause_s) // grid_s + 1) * grid_s
