"""One run's transcript as it is read from the database: parts, each a compressed row, or a piece of
an object. All of it is as it was when reading began.
"""

import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, Final, NamedTuple

import msgspec

from subagents.domain.run.values import RunId
from subagents.errors import StoreUnavailable
from subagents.extensions.cluster.shared.run_tables import RunTables, data_of, number_of
from subagents.store.rows import Row
from subagents.store.transcripts.segments import Part
from subagents.store.transcripts.transcript_search import Transcript


class RowPart(NamedTuple):
    """Lines that follow each other."""

    first: int
    """Number of its first line."""
    ts: int
    """The time of that line."""
    end: int
    """Size of the lines in bytes."""
    offset: int = -1
    """Its place in the transcript's object; -1 = it is a row."""
    length: int = 0
    """Its size in the object, compressed."""

    @property
    def is_row(self) -> bool:
        return self.offset < 0


_parts: Final = msgspec.json.Decoder(list[RowPart])

ReadObject = Callable[[str, int, int], bytes]
"""``(key, offset, length)``; raises ``OSError`` where it is not there."""


def no_objects(key: str, offset: int, length: int) -> bytes:
    """Where no object store is configured, what was moved to one before is out of reach."""
    raise FileNotFoundError(
        f"{length} bytes at {offset} of {key} are in an object store, and cluster.objects is unset"
    )


def parts_of(listed: object, rows: list[Row], oldest: int) -> list[RowPart]:
    """The parts of a transcript, by number.

    Args:
        listed: What ``transcript.parts`` has: those in the object.
        rows: Of ``select_parts``.
        oldest: Lines before it were dropped.
    """
    moved = [] if listed is None else _parts.decode(data_of(listed))
    kept = [RowPart(number_of(first), number_of(ts), number_of(size)) for first, ts, size in rows]
    return [each for each in (*moved, *kept) if each.first >= oldest]


class RowTranscript(Transcript):
    """See ``transcript_search``.

    Args:
        tables: Where it is.
        run_id: Whose.
        read_object: Reads older parts.
    """

    def __init__(self, tables: RunTables, run_id: RunId, read_object: ReadObject) -> None:
        super().__init__()
        self._run_id = run_id
        self._read_object = read_object
        self._object = ""
        self._last: tuple[int, bytes] | None = None
        with ExitStack() as stack:
            self._snapshot = stack.enter_context(tables.transaction(is_snapshot=True))
            for _, _, _, oldest, listed, seq, key in self._snapshot.ask(
                "select_transcript", (run_id,)
            ):
                rows = self._snapshot.ask("select_parts", (run_id,))
                self.parts = parts_of(listed, rows, number_of(oldest))
                self.newest = number_of(seq)
                self._object = str(key)
            self._stack = stack.pop_all()

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def open(self, part: Part) -> Iterator[BinaryIO | None]:
        """See ``Transcript.open``; never None."""
        if self._last is None or self._last[0] != part.first:
            self._last = (part.first, self._lines(part))
        yield io.BytesIO(self._last[1])

    def is_younger(self, part: Part, since_ms: int) -> bool:
        """See ``Transcript.is_younger``."""
        return isinstance(part, RowPart) and part.ts >= since_ms

    def _lines(self, part: Part) -> bytes:
        if isinstance(part, RowPart) and not part.is_row:
            packed = self._read_object(self._object, part.offset, part.length)
        else:
            found = self._snapshot.ask("select_part", (self._run_id, part.first))
            packed = data_of(found[0][0])
        try:
            return zlib.decompress(packed)
        except zlib.error as error:
            raise StoreUnavailable(
                f"the transcript of {self._run_id} is damaged from line {part.first} on: {error}"
            ) from error
