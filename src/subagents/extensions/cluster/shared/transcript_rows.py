"""Transcripts for the nodes of a cluster: compressed parts in PostgreSQL, see docs/decisions/0080.

A batch of lines and the checkpoint that belongs to it are one statement. Small rows are joined now
and then, so that a long transcript is some hundred rows and not some ten thousand. Whoever resumed
a transcript last is its writer: what another one appends later, because it stood still while its
runs were taken over, is refused.
"""

import os
import threading
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import psycopg

from subagents.domain.run.values import RunId
from subagents.domain.transcript.transcript_query import Checkpoint, Line, LogPage, LogQuery
from subagents.extensions.cluster.shared.row_transcript import (
    ReadObject,
    RowPart,
    RowTranscript,
    parts_of,
)
from subagents.extensions.cluster.shared.run_tables import RunTables, data_of, number_of
from subagents.store.rows import Row
from subagents.store.transcripts import segments, transcript_search
from subagents.store.transcripts.line_batch import LineBatch, checkpoint_of, encoded
from subagents.store.transcripts.transcript_files import SEGMENTS

PART_BYTES: Final = 128 * 1024
"""The size of the lines in one part; as many are searched in one go (``segments.SLICE_BYTES``)."""
SMALL_MAX: Final = 32
"""How many rows are joined, if their lines are not enough before."""
KNOWN_MAX: Final = 4096
"""Runs whose parts are remembered between two batches; of others they are looked at again."""
NOT_THE_NEXT: Final = "SUB02"
"""The SQLSTATE that the function ``append_transcript`` raises."""

_encoder: Final = msgspec.json.Encoder()


@dataclass(slots=True)
class _Known:
    """What a writer knows of one run's transcript."""

    appends: int = 0
    seq: int = 0
    oldest: int = 1
    parts: list[RowPart] = field(default_factory=list)
    is_synced: bool = False

    def small_ones(self, full: int) -> list[RowPart]:
        """The newest rows, back to one that is large enough."""
        found: list[RowPart] = []
        for part in reversed(self.parts):
            if part.end >= full or not part.is_row:
                break
            found.append(part)
        return found[::-1]


class TranscriptRows:
    """See ``ports.TranscriptLog``; where it raises ``OSError``, also ``StoreUnavailable`` for a
    database that cannot be asked: nothing is lost by that, and the same is tried again.

    Args:
        tables: Where they are.
        read_object: Reads what was moved out of the database.
    """

    def __init__(self, tables: RunTables, read_object: ReadObject) -> None:
        self._tables = tables
        self._read_object = read_object
        self._writer = os.urandom(16).hex()
        self._known: OrderedDict[RunId, _Known] = OrderedDict()
        self._lock = threading.Lock()

    # -- writing ---------------------------------------------------------------------------

    def resume(self, run_id: RunId) -> Checkpoint:
        """See ``ports.TranscriptLog.resume``; makes this the transcript's only writer."""
        ((appends, written, oldest, listed),) = self._tables.ask(
            "claim_transcript", (self._tables.identity, run_id, self._writer)
        )
        known, checkpoint = self._found(run_id, appends, written, oldest, listed)
        self._remember(run_id, known)
        return checkpoint

    def append(
        self, run_id: RunId, lines: Sequence[Line], checkpoint: Checkpoint, *, bytes_max: int
    ) -> None:
        """See ``ports.TranscriptLog.append``."""
        batch = LineBatch(
            lines[0].seq if lines else None, encoded(lines), _encoder.encode(checkpoint)
        )
        known = self._recall(run_id) or self._looked_up(run_id)
        if batch.first is not None and batch.first <= known.seq:
            self._remember(run_id, known)
            raise OSError(
                f"line {batch.first} is there already: the transcript of {run_id} continues behind"
                f" {known.seq}"
            )
        if not self._put(run_id, known, batch, checkpoint.seq, bytes_max):
            # Somebody deleted it under us.
            self.resume(run_id)
            known = self._recall(run_id) or _Known()
            if not self._put(run_id, known, batch, checkpoint.seq, bytes_max):
                raise OSError(f"the transcript of {run_id} goes as soon as it is there")
        self._remember(run_id, known)

    def sync(self, run_id: RunId) -> None:
        """See ``ports.TranscriptLog.sync``."""
        with self._lock:
            known = self._known.get(run_id)
        if known is not None and known.is_synced:
            return
        self._tables.ask("sync_transcript", (run_id,))
        if known is not None:
            known.is_synced = True

    def close(self, run_id: RunId) -> None:
        """See ``ports.TranscriptLog.close``."""
        self._recall(run_id)

    def forget(self, run_id: RunId) -> None:
        """See ``ports.TranscriptLog.forget``."""
        self.close(run_id)
        self._tables.ask("forget_transcript", (run_id,))

    def _put(
        self, run_id: RunId, known: _Known, batch: LineBatch, seq: int, bytes_max: int
    ) -> bool:
        """Write it, and change what is known; False = there is no transcript.

        Raises:
            OSError: Another one writes it.
        """
        full = min(PART_BYTES, bytes_max // SEGMENTS)
        cut = batch.end(bytes_max // 2)
        parts = [] if cut is not batch else list(known.parts)
        joined_from, added, data = None, None, None
        if cut.first is not None:
            small = [] if cut is not batch else known.small_ones(full)
            size = sum(each.end for each in small) + len(cut.lines)
            added, text = RowPart(cut.first, segments.ts_at(cut.lines), size), cut.lines
            if small and (len(small) >= SMALL_MAX or size >= full):
                text = self._joined(run_id, small) + text
                added = RowPart(small[0].first, small[0].ts, size)
                joined_from = added.first
                del parts[-len(small) :]
            else:
                added = added._replace(end=len(cut.lines))
            data = zlib.compress(text)
            parts.append(added)
        while len(parts) > 1 and sum(each.end for each in parts) > bytes_max:
            parts.pop(0)
        oldest = parts[0].first if parts else known.oldest
        row: Row = (None, None, None) if added is None else (added.first, added.ts, added.end)
        number = known.appends + 1
        said = (number, seq, oldest, batch.mark, joined_from, *row, data)
        if not self._is_put(run_id, said):
            return False
        known.appends, known.seq, known.oldest = number, seq, oldest
        known.parts, known.is_synced = parts, False
        return True

    def _is_put(self, run_id: RunId, said: Row) -> bool:
        try:
            self._tables.ask(
                "append_transcript", (self._tables.identity, run_id, self._writer, *said)
            )
        except psycopg.Error as error:
            if error.sqlstate != NOT_THE_NEXT:
                raise
            # It may have been made, and the connection was lost before the answer.
            head = self._tables.ask("select_transcript", (run_id,))
            if not head:
                return False
            if head[0][:2] != (self._writer, said[0]):
                raise OSError(f"another node writes the transcript of {run_id}") from error
        return True

    def _joined(self, run_id: RunId, small: Sequence[RowPart]) -> bytes:
        rows = self._tables.ask("select_parts_from", (run_id, small[0].first))
        text = b"".join(zlib.decompress(data_of(data)) for (data,) in rows)
        if len(text) != sum(each.end for each in small):
            raise OSError(f"another node writes the transcript of {run_id}")
        return text

    # -- reading ---------------------------------------------------------------------------

    def read(self, run_id: RunId, query: LogQuery) -> LogPage:
        """See ``ports.TranscriptLog.read``."""
        return transcript_search.read(
            lambda: RowTranscript(self._tables, run_id, self._read_object), query
        )

    # -- what is known ---------------------------------------------------------------------

    def _looked_up(self, run_id: RunId) -> _Known:
        """What was forgotten here, and nobody wrote since; what was never there is begun."""
        head = self._tables.ask("select_transcript", (run_id,))
        if not head:
            self.resume(run_id)
            return self._recall(run_id) or _Known()
        writer, appends, written, oldest, listed, _, _ = head[0]
        if writer != self._writer:
            raise OSError(f"another node writes the transcript of {run_id}")
        return self._found(run_id, appends, written, oldest, listed)[0]

    def _found(
        self, run_id: RunId, appends: object, written: object, oldest: object, listed: object
    ) -> tuple[_Known, Checkpoint]:
        record = data_of(written)
        checkpoint = checkpoint_of(record) if record else Checkpoint()
        rows = self._tables.ask("select_parts", (run_id,))
        parts = parts_of(listed, rows, number_of(oldest))
        known = _Known(number_of(appends), checkpoint.seq, number_of(oldest), parts)
        return known, checkpoint

    def _recall(self, run_id: RunId) -> _Known | None:
        """Out of memory while it is changed: what fails half-way is looked at again."""
        with self._lock:
            return self._known.pop(run_id, None)

    def _remember(self, run_id: RunId, known: _Known) -> None:
        with self._lock:
            self._known[run_id] = known
            if len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)
