"""Lines as they are written, whichever adapter keeps them; see ``segments`` for the format."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from subagents.domain.transcript.transcript_query import Checkpoint, Line
from subagents.store.transcripts import segments

LINES_AT_ONCE: Final = 2_000
"""Encoded in one go, see ``segments.SLICE_BYTES``."""

_encoder: Final = msgspec.json.Encoder()
_checkpoints: Final = msgspec.json.Decoder(Checkpoint)


class LineBatch(NamedTuple):
    """What one ``append`` writes."""

    first: int | None
    """Number of its first line; None = it has none."""
    lines: bytes
    mark: bytes

    @property
    def size(self) -> int:
        return len(self.lines) + len(self.mark)

    def end(self, bytes_max: int) -> "LineBatch":
        """Its newest lines, as many as fit; itself when all do."""
        if len(self.lines) <= bytes_max or self.first is None:
            return self
        # Behind the first line break in the part that fits: a line is kept whole or not at all.
        at = self.lines.find(b"\n", len(self.lines) - bytes_max - 1) + 1
        cut = self.lines.count(b"\n", 0, at)
        return self._replace(first=self.first + cut, lines=self.lines[at:])


def encoded(lines: Sequence[Line]) -> bytes:
    """The lines as they are written."""
    parts = [lines[start : start + LINES_AT_ONCE] for start in range(0, len(lines), LINES_AT_ONCE)]
    return b"".join(map(_encoded_part, parts))


def _encoded_part(lines: Sequence[Line]) -> bytes:
    try:
        return _encoder.encode_lines([(x.seq, x.ts, x.type, x.attempt, x.text) for x in lines])
    except UnicodeEncodeError:  # half a surrogate pair, which no file can hold
        texts = [each.text.encode("utf-8", "replace").decode() for each in lines]
        pairs = zip(lines, texts, strict=True)
        return _encoder.encode_lines([(x.seq, x.ts, x.type, x.attempt, t) for x, t in pairs])


def checkpoint_of(record: bytes) -> Checkpoint:
    """What any version wrote, as far as this one reads it."""
    try:
        return _checkpoints.decode(record)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Of another version: numbers go on, and everything else begins at zero.
        mark = segments.mark_of(record) or segments.Mark()
        return Checkpoint(seq=mark.seq, ts=mark.ts)
