"""The records of ended attempts as lines of JSON: ``<state>/agent-performance-YYYY-MM-DD.jsonl``.

One file per UTC day of an attempt's end. Each attempt has exactly one line, whoever brings its
record how often: a day's keys are read from its file before the first line is added to it. So a
crash between a line and whatever was to remember it costs nothing, and a line needs no fsync: what
a power cut takes is brought again. Only a mark, which says that nothing from before it has to be
brought again, is written behind the lines it speaks for.
"""

import contextlib
import os
import re
import threading
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

from subagents.domain.run.values import RunId, Value, attempt_id
from subagents.durable_files import sync, write_all
from subagents.extensions.track_record.track_record import AttemptRecord

READ_BYTES: Final = 1024 * 1024
"""The size of one page; a line is less than a thousandth of it."""
LINE_BYTES_MAX: Final = 256 * 1024
"""A longer line is none of ours and is left out."""
DAYS_KNOWN_MAX: Final = 4
"""Days whose keys are held in memory: today, and those that are brought up to date."""
EPOCH: Final = date(1970, 1, 1).toordinal()
FILE_NAME: Final = re.compile(r"agent-performance-(\d{4}-\d{2}-\d{2})\.jsonl")

MARK: Final = "agent-performance.mark"

_encoder = msgspec.json.Encoder()
_decoder: Final[msgspec.json.Decoder[AttemptRecord]] = msgspec.json.Decoder(AttemptRecord)


class _Named(Value, frozen=True):
    """As much of a line as is needed to know it again."""

    run_id: str
    attempt: int


class _Mark(Value, frozen=True):
    """How far the records are kept, and how much of the newest day that is."""

    number: int
    day: int | None
    size: int


_mark_decoder: Final[msgspec.json.Decoder[_Mark]] = msgspec.json.Decoder(_Mark)
_name_decoder: Final[msgspec.json.Decoder[_Named]] = msgspec.json.Decoder(_Named)


class PerformanceFiles:
    """The records by the UTC day of their end. Blocking; one process writes, others may read.

    Args:
        directory: Made when the first line is written, for its owner only.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[int, set[int]] = {}
        """A hash of each key, by day: half of what the keys take, and one in 10⁷ days of a million
        attempts has two that are alike."""
        self._unsynced: set[int] | None = None
        """Days whose newest lines a power cut can take; None = any, from the process before."""
        self._writing = threading.Lock()

    def append(self, records: Sequence[AttemptRecord]) -> None:
        """Keep those that are not there yet, in order. Repeating is safe: each is kept once.

        Raises:
            OSError: Some may not be kept; repeat with all of them.
        """
        with self._writing:
            for day, found in groupby(records, key=lambda each: each.day):
                self._append(day, tuple(found))

    def sizes(self) -> Mapping[int, int]:
        """How many bytes there are of each day (in days since 1970); it never shrinks.

        Raises:
            OSError: Nobody knows.
        """
        found = {}
        with contextlib.suppress(FileNotFoundError), os.scandir(self._directory) as entries:
            for entry in entries:
                day = _day_of(entry.name)
                if day is not None:
                    found[day] = entry.stat().st_size
        return found

    def read(self, day: int, *, offset: int) -> tuple[Sequence[AttemptRecord], int]:
        """Some of a day's records behind ``offset``, and the offset behind them.

        What cannot be read is left out. At the end there are none.

        Raises:
            OSError: They cannot be read.
        """
        try:
            with self.file(day).open("rb") as file:
                lines, end = _lines(file.fileno(), offset)
        except FileNotFoundError:
            return (), offset
        records = []
        for line in lines:
            # Whoever edits the file may break lines of it; the others still count.
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                records.append(_decoder.decode(line))
        return records, end

    def forget(self, before_day: int) -> None:
        """Drop all days before that one. Idempotent.

        Raises:
            OSError: Some are still there.
        """
        with self._writing:
            for day in self.sizes():
                if day < before_day:
                    self.file(day).unlink(missing_ok=True)
                    self._known.pop(day, None)

    def mark(self) -> int | None:
        """What was given to ``keep_mark`` last; None = nothing, or records from before are gone.

        Raises:
            OSError: Nobody knows.
        """
        try:
            found = _mark_decoder.decode((self._directory / MARK).read_bytes())
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None  # as if there were none: more is brought again than has to be
        is_whole = found.day is None or self.sizes().get(found.day, 0) >= found.size
        return found.number if is_whole else None

    def keep_mark(self, number: int) -> None:
        """Remember a number for as long as there is what was appended until now: both durably.

        Raises:
            OSError: The mark from before may still be the one.
        """
        with self._writing:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            sizes = self.sizes()
            for day in sizes.keys() if self._unsynced is None else sizes.keys() & self._unsynced:
                sync(self.file(day))
            self._unsynced = set()
            newest = max(sizes, default=None)
            size = 0 if newest is None else sizes[newest]
            mark = _Mark(number=number, day=newest, size=size)
            draft = self._directory / f"{MARK}.new"
            draft.write_bytes(_encoder.encode(mark))
            sync(draft)
            draft.replace(self._directory / MARK)
            sync(self._directory)

    def file(self, day: int) -> Path:
        """Where a day's lines are."""
        return self._directory / f"agent-performance-{date.fromordinal(EPOCH + day)}.jsonl"

    def _append(self, day: int, records: Sequence[AttemptRecord]) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        file = os.open(self.file(day), flags, 0o600)
        try:
            known = self._keys_of(day, file)
            by_hash = {hash(each.key): each for each in records}
            new = {key: each for key, each in by_hash.items() if key not in known}
            if not new:
                return
            if self._unsynced is not None:
                self._unsynced.add(day)
            write_all(file, b"".join(_encoder.encode(each) + b"\n" for each in new.values()))
            known.update(new)
        except OSError:
            # Some lines may be whole, the last one torn: the next look at the file sees to it.
            self._known.pop(day, None)
            raise
        finally:
            os.close(file)

    def _keys_of(self, day: int, file: int) -> set[int]:
        """The attempts a day's file has; with the first look at it, a torn last line goes."""
        known = self._known.pop(day, None)
        if known is None:
            known, end = set(), 0
            while True:
                lines, behind = _lines(file, end)
                if behind == end:
                    break
                end = behind
                for line in lines:
                    with contextlib.suppress(
                        msgspec.DecodeError, UnicodeDecodeError, RecursionError
                    ):
                        named = _name_decoder.decode(line)
                        known.add(hash(attempt_id(RunId(named.run_id), named.attempt)))
            os.ftruncate(file, end)
        self._known[day] = known
        while len(self._known) > DAYS_KNOWN_MAX:
            self._known.pop(next(iter(self._known)))
        return known


def _lines(file: int, offset: int) -> tuple[list[bytes], int]:
    """Some whole lines behind ``offset``, and the offset behind them."""
    content = os.pread(file, READ_BYTES, offset)
    end = content.rfind(b"\n") + 1
    if end == 0 and len(content) == READ_BYTES:
        return [], offset + len(content)  # the middle of a line that is none of ours
    lines = content[:end].split(b"\n")[:-1]
    return [line for line in lines if len(line) <= LINE_BYTES_MAX], offset + end


def _day_of(name: str) -> int | None:
    match = FILE_NAME.fullmatch(name)
    if match is None:
        return None
    try:
        return date.fromisoformat(match[1]).toordinal() - EPOCH
    except ValueError:
        return None
