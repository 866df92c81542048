"""One run's transcript as it is read from its files; see ``segments``."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from subagents.store.transcripts import segments
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
