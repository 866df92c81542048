"""The transcript of each run as files: ``<state>/transcripts/<runId>/`` (``segments``).

Apart from the database, because nothing is decided by it, and because a million lines of a worker
must not share a disk queue with the commit of another one's result.

A batch of lines and the checkpoint that belongs to it are one ``write``. The oldest segment goes
when all of them are too big. Checkpoints that are no longer the last one are of no use: when they
outweigh the lines, their segment is rewritten without them.
"""

import contextlib
import itertools
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from subagents.domain.run.values import RunId
from subagents.domain.transcript.transcript_query import Checkpoint, Line, LogPage, LogQuery
from subagents.durable_files import private, sync, write_all
from subagents.errors import UsageError
from subagents.store.transcripts import segments, transcript_search
from subagents.store.transcripts.line_batch import LineBatch, checkpoint_of, encoded
from subagents.store.transcripts.segments import Part, Segment
from subagents.store.transcripts.transcript_search import Transcript

HELD_MAX: Final = 16
"""The newest segments stay open while they are read, since they may be deleted meanwhile."""
LIST_TRIES: Final = 5
"""The newest segment may go between being listed and being opened, if its writer is very quick."""


class FileTranscript(Transcript):
    """See ``transcript_search``; closes what it holds open.

    Args:
        place: Directory of the run.
    """

    def __init__(self, place: Path) -> None:
        super().__init__()
        self._place = place
        self.parts: list[Segment] = []
        self._held: dict[int, BinaryIO] = {}
        self._stack = ExitStack()
        for _ in range(LIST_TRIES):
            with suppress(FileNotFoundError):
                self._hold(segments.found_in(place))
                break

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _hold(self, found: list[Segment]) -> None:
        # The newest may have no complete batch yet; then the transcript ends with the one before.
        while found and not self.parts:
            last = found.pop()
            file = self._stack.enter_context(last.path.open("rb"))
            committed = segments.committed(file, os.fstat(file.fileno()).st_size)
            if committed is not None:
                end, mark = committed
                self.newest = mark.seq
                self._held[last.first] = file
                self.parts = [*found, last._replace(end=end)]
        for index in range(len(self.parts) - 2, max(len(self.parts) - HELD_MAX, 0) - 1, -1):
            segment = self.parts[index]
            try:
                file = self._stack.enter_context(segment.path.open("rb"))
            except FileNotFoundError:
                del self.parts[: index + 1]
                return
            self._held[segment.first] = file
            # It was listed while it still grew, perhaps.
            self.parts[index] = segment._replace(end=os.fstat(file.fileno()).st_size)

    @contextmanager
    def open(self, part: Part) -> Iterator[BinaryIO | None]:
        """See ``Transcript.open``."""
        held = self._held.get(part.first)
        if held is not None:
            yield held
            return
        try:
            file = segments.path_of(self._place, part.first).open("rb")
        except FileNotFoundError:
            self.parts = [each for each in self.parts if each.first > part.first]
            yield None
            return
        with file:
            yield file

    def is_younger(self, part: Part, since_ms: int) -> bool:
        """See ``Transcript.is_younger``."""
        with self.open(part) as file:
            if file is None:
                return False
            file.seek(0)
            line = file.read(segments.PROBE_BYTES)
        return line.startswith(b"[") and segments.ts_at(line) >= since_ms


SEGMENTS: Final = 8
"""The segments of a full transcript: an eighth of it goes at once."""
SEGMENT_BYTES_MAX: Final = 16 * 1024 * 1024
WASTE_BYTES: Final = 64 * 1024
"""How much old checkpoints may take in any case."""
KNOWN_MAX: Final = 4096
"""Runs whose files are remembered between two batches; of others they are looked at again."""

_encoder: Final = msgspec.json.Encoder()


@dataclass(slots=True)
class _Files:
    """What a writer knows of one run's segments; the newest is the last."""

    segments: list[Segment] = field(default_factory=list)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    lines_bytes: int = 0
    """The size of the newest segment, without its checkpoints."""
    mark_bytes: int = 0
    """The size of its last checkpoint."""
    unsynced: set[Path] = field(default_factory=set)
    has_new_names: bool = False
    """Its directory has names that were not synced yet."""
    number: int = 0
    """The number of its directory among the new names next to it; 0 = not among them."""


class _Names:
    """A directory, synced once for all the names that were made in it before."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._made = 0
        """Names with this number, or a lower one, are there."""
        self._synced = 0

    def made(self) -> int:
        """Number one that is there now, and may not be on the disk."""
        # Of two at once the lower number may win: then its directory is synced once too often.
        self._made = number = next(self._numbers)
        return number

    def sync(self, number: int) -> None:
        """Return when that one outlives a power cut.

        Raises:
            OSError: It may not.
        """
        with self._lock:
            if self._synced < number:
                # Read before the sync: a name that is made during it may not be in it.
                made = self._made
                sync(self._directory)
                self._synced = made


class TranscriptFiles:
    """See ``ports.TranscriptLog``.

    Args:
        directory: Made when the first line is written, for its owner only.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._runs = _Names(directory)
        self._state = _Names(directory.parent)
        # A process before this one may have made it, and been killed.
        self._number = self._state.made()
        self._known: OrderedDict[RunId, _Files] = OrderedDict()
        self._lock = threading.Lock()

    # -- writing ---------------------------------------------------------------------------

    def resume(self, run_id: RunId) -> Checkpoint:
        """See ``ports.TranscriptLog.resume``; what a crash left of a batch is cut off."""
        files = self._load(self._place(run_id))
        self._remember(run_id, files)
        return files.checkpoint

    def append(
        self, run_id: RunId, lines: Sequence[Line], checkpoint: Checkpoint, *, bytes_max: int
    ) -> None:
        """See ``ports.TranscriptLog.append``."""
        place = self._place(run_id)
        first = lines[0].seq if lines else None
        batch = LineBatch(first, encoded(lines), _encoder.encode(checkpoint) + b"\n")
        files = self._recall(run_id) or self._load(place)
        try:
            self._keep(place, files, batch, bytes_max)
        except FileNotFoundError:
            # Somebody deleted them under us.
            files = self._load(place)
            self._keep(place, files, batch, bytes_max)
        files.checkpoint = checkpoint
        _drop(files, bytes_max)
        self._remember(run_id, files)

    def sync(self, run_id: RunId) -> None:
        """See ``ports.TranscriptLog.sync``."""
        place = self._place(run_id)
        with self._lock:
            files = self._known.get(run_id)
        if files is None:
            newest = segments.found_in(place)[-1:]
            files = self._found(_Files(unsynced={each.path for each in newest}))
        unsynced = [path for path in files.unsynced if path.exists()]
        if not unsynced:
            return
        for path in unsynced:
            sync(path)
        # The names of the files and of both folders, too: its worker's own copy goes next.
        if files.has_new_names:
            sync(place)
        self._runs.sync(files.number)
        self._state.sync(self._number)
        files.unsynced.difference_update(unsynced)
        files.has_new_names = False

    def close(self, run_id: RunId) -> None:
        """See ``ports.TranscriptLog.close``."""
        self._recall(run_id)

    def forget(self, run_id: RunId) -> None:
        """See ``ports.TranscriptLog.forget``."""
        self.close(run_id)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._place(run_id))
        with contextlib.suppress(FileNotFoundError):
            # A name whose going is not on the disk comes back when the power is cut. Also when
            # nothing is there: an earlier call may have failed here, behind the deletion.
            sync(self._directory)

    def _keep(self, place: Path, files: _Files, batch: LineBatch, bytes_max: int) -> None:
        if batch.first is not None and batch.first <= files.checkpoint.seq:
            raise OSError(
                f"line {batch.first} is there already: {place} continues "
                f"behind {files.checkpoint.seq}"
            )
        size_max = min(bytes_max // SEGMENTS, SEGMENT_BYTES_MAX)
        last = files.segments[-1] if files.segments else None
        if last is None or (batch.lines and last.end + batch.size > size_max):
            # One that alone is too much: only its end is kept, and nothing of before.
            part = batch.end(bytes_max // 2)
            self._begin(place, files, part)
            _drop(files, bytes_max if part is batch else 0)
        elif _is_wasteful(files, last, size_max):
            _replace(files, last, batch)
        else:
            _extend(files, last, batch)

    def _begin(self, place: Path, files: _Files, batch: LineBatch) -> None:
        try:
            is_new = _made(place)
        except FileNotFoundError:  # the first run of all
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._number = self._state.made()
            is_new = _made(place)
        if is_new:
            files.number = self._runs.made()
        files.has_new_names = True
        first = files.checkpoint.seq + 1 if batch.first is None else batch.first
        path = segments.path_of(place, first)
        _create(path, batch.lines + batch.mark)
        files.segments.append(Segment(first, path, batch.size))
        files.lines_bytes, files.mark_bytes = len(batch.lines), len(batch.mark)
        files.unsynced.add(path)

    # -- reading ---------------------------------------------------------------------------

    def read(self, run_id: RunId, query: LogQuery) -> LogPage:
        """See ``ports.TranscriptLog.read``."""
        place = self._place(run_id)
        return transcript_search.read(lambda: FileTranscript(place), query)

    # -- what is known ---------------------------------------------------------------------

    def _load(self, place: Path) -> _Files:
        """Look at the files of a run; what a crash left behind is cut off or deleted.

        Raises:
            OSError: They cannot be read or cut.
        """
        found = segments.found_in(place)
        while found:
            last = found.pop()
            data = _sound(last.path.read_bytes())
            if not data:
                last.path.unlink()
                continue
            if len(data) < last.end:
                os.truncate(last.path, len(data))
            record = data[data.rfind(b"\n", 0, -1) + 1 : -1]
            return self._found(
                _Files(
                    segments=[*found, last._replace(end=len(data))],
                    checkpoint=checkpoint_of(record),
                    lines_bytes=len(segments.without_marks(data)),
                    mark_bytes=len(record) + 1,
                    unsynced={each.path for each in (*found, last)},
                )
            )
        return self._found(_Files())

    def _found(self, files: _Files) -> _Files:
        """Whoever made them, and the directory that they are in, may not have synced the names."""
        files.has_new_names, files.number = True, self._runs.made()
        return files

    def _place(self, run_id: RunId) -> Path:
        if not run_id or "/" in run_id or run_id.startswith("."):
            raise UsageError(f"run id {run_id!r} cannot name a directory")
        return self._directory / run_id

    def _recall(self, run_id: RunId) -> _Files | None:
        """Out of memory while it is changed: what fails half-way is looked at again."""
        with self._lock:
            return self._known.pop(run_id, None)

    def _remember(self, run_id: RunId, files: _Files) -> None:
        with self._lock:
            self._known[run_id] = files
            if len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)


# -- files --------------------------------------------------------------------------------------


def _made(directory: Path) -> bool:
    """Make it; False = it was there already.

    Raises:
        OSError: It cannot be made.
    """
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        return False
    return True


def _sound(data: bytes) -> bytes:
    """All up to the last complete checkpoint; after a power cut, before the first hole."""
    # A file system may keep a file's new length without its data, as zeros; JSON has none.
    before_hole, _, _ = data.partition(b"\0")
    found = segments.last_mark(before_hole)
    return b"" if found is None else data[: found[0]]


def _create(path: Path, data: bytes) -> None:
    """A whole file, or none."""
    file = private(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_all(file, data)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)


def _extend(files: _Files, last: Segment, batch: LineBatch) -> None:
    """Append a batch; one that fails half-way is not read, and cut off at the next look."""
    file = os.open(last.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        write_all(file, batch.lines + batch.mark)
    finally:
        os.close(file)
    files.segments[-1] = last._replace(end=last.end + batch.size)
    files.lines_bytes += len(batch.lines)
    files.mark_bytes = len(batch.mark)
    files.unsynced.add(last.path)


def _is_wasteful(files: _Files, last: Segment, size_max: int) -> bool:
    waste = last.end - files.lines_bytes - files.mark_bytes
    return waste > files.lines_bytes + min(WASTE_BYTES, size_max // 4)


def _replace(files: _Files, last: Segment, batch: LineBatch) -> None:
    """Append a batch and drop all checkpoints before it; readers go on with the old file."""
    lines = segments.without_marks(last.path.read_bytes()[: last.end])
    lines += b"\n" if lines and not lines.endswith(b"\n") else b""
    data = lines + batch.lines + batch.mark
    draft = last.path.with_suffix(".new")
    _create(draft, data)
    sync(draft)
    # Synced before it is renamed: a power cut leaves the old file or all of the new one.
    draft.replace(last.path)
    files.segments[-1] = last._replace(end=len(data))
    files.lines_bytes = len(lines) + len(batch.lines)
    files.mark_bytes = len(batch.mark)
    files.unsynced.add(last.path)
    files.has_new_names = True


def _drop(files: _Files, bytes_max: int) -> None:
    """The oldest segments, as long as all are too big."""
    while len(files.segments) > 1 and sum(each.end for each in files.segments) > bytes_max:
        with contextlib.suppress(OSError):
            files.segments[0].path.unlink(missing_ok=True)
        files.segments.pop(0)
