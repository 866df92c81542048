"""How far the write-ahead log went with the newest commit, kept next to it.

SQLite ends the log at its first damaged frame, as after a power cut, and takes the commits behind
it as never made. A mark distinguishes the two: it is written after each commit, so it never claims
more than was acknowledged, and less only after a power cut.
"""

import contextlib
import os
import struct
import zlib
from pathlib import Path
from typing import Final

# https://sqlite.org/walformat.html, "The WAL-Index File Format": `mxFrame` at byte 16 of its header
# and `aSalt` at 32, in the byte order of the machine.
_INDEX: Final = struct.Struct("=16xI12xII")
"""The frames of the log and the two salts of its header, in the ``-shm`` file."""
_HEADER_BYTES: Final = 32
"""The size of the header of the ``-wal`` file; its last two words are a checksum over the
others."""
_MARK: Final = struct.Struct("=IIII")
"""Frames, salts, CRC-32."""


class WalMark:
    """The mark of one database, in a file of its own that stays open."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._index: int | None = None

    def note(self) -> None:
        """Call it after a commit. Losing it only means that less is noticed."""
        with contextlib.suppress(OSError, struct.error):
            mark = _MARK.pack(*self._reach(), 0)
            # One write over the last mark: one that a power cut tears has a wrong checksum.
            os.pwrite(self._descriptor, mark[:12] + struct.pack("=I", zlib.crc32(mark)), 0)

    def close(self) -> None:
        """Only when no connection is open: it would drop SQLite's locks on that file."""
        if self._index is not None:
            os.close(self._index)
            self._index = None

    def lost(self) -> int:
        """How many frames with acknowledged commits are gone; ask while a connection is open."""
        try:
            *noted, written = _MARK.unpack(os.pread(self._descriptor, _MARK.size, 0))
            with Path(f"{self._path}-wal").open("rb") as log:
                header = log.read(_HEADER_BYTES)
            frames, *salts = self._reach()
        except (OSError, struct.error):
            return 0
        if written != zlib.crc32(_MARK.pack(*noted, 0)) or len(header) < _HEADER_BYTES:
            return 0
        acknowledged = int(noted[0])
        if noted[1:] == salts:
            return max(acknowledged - frames, 0)
        # Another log than then: begun again, which SQLite does when all of the old one is in the
        # database, or one whose header is damaged, and which it takes for empty.
        return 0 if _is_whole(header) else acknowledged

    def _reach(self) -> tuple[int, ...]:
        """Frames of the log and its salts, which name it: SQLite draws new ones for each log."""
        if self._index is None:
            self._index = os.open(f"{self._path}-shm", os.O_RDONLY)
        return _INDEX.unpack(os.pread(self._index, _INDEX.size, 0))


def _is_whole(header: bytes) -> bool:
    """Whether the log's header has its checksum, which SQLite describes under "WAL Format"."""
    order = ">" if header[3] & 1 else "<"
    first = second = 0
    words = struct.unpack(f"{order}6I", header[:24])
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return struct.unpack(">2I", header[24:32]) == (first, second)
