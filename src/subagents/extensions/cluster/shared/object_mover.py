"""Moves what nobody writes any more out of the database, and deletes objects that nobody needs."""

import logging
import os
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import msgspec

from subagents.domain.run.values import RunId
from subagents.extensions.cluster.shared.row_transcript import RowPart, parts_of
from subagents.extensions.cluster.shared.run_tables import RunTables, data_of, number_of


class Objects(Protocol):
    """Blocking; all of it also raises ``StoreUnavailable``."""

    def put(self, key: str, data: bytes | Iterator[bytes]) -> None:
        """Store it as a whole or not at all; what its iterator raises is raised."""
        ...

    def read(self, key: str, offset: int, length: int) -> bytes:
        """As many bytes as ``length`` says from there on; ``length`` is 1 or more.

        Raises:
            FileNotFoundError: It is not there.
        """
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Idempotent."""
        ...


log = logging.getLogger(__name__)

AT_ONCE: Final = 20
ROUNDS_MAX: Final = 50
"""The most rounds of one pass; the next pass continues."""
RESERVED_S: Final = 3_600
"""An object to which nobody refers so long after it was begun never came to anything."""

_encoder: Final = msgspec.json.Encoder()


class ObjectMover:
    """Every node moves, and none the same at the same time; who dies leaves nothing behind.

    Args:
        tables: What is moved.
        objects: Where to.
    """

    def __init__(self, tables: RunTables, objects: Objects) -> None:
        self._tables = tables
        self._objects = objects

    def tidy(self) -> None:
        """One pass; blocks.

        Raises:
            StoreUnavailable: The database or the object store; the next pass goes on.
        """
        for _ in range(ROUNDS_MAX):
            claimed = [RunId(str(each)) for (each,) in self._tables.ask("claim_moves", (AT_ONCE,))]
            for run_id in claimed:
                self._move(run_id)
            if not claimed:
                break
        while gone := [str(key) for (key,) in self._tables.ask("claim_gone_objects", (AT_ONCE,))]:
            self._objects.delete(gone)
            self._tables.ask("forget_objects", (gone,))

    def _move(self, run_id: RunId) -> None:
        parts: list[RowPart] = []
        pieces: list[bytes] = []
        at = 0
        with self._tables.transaction(is_snapshot=True) as snapshot:
            head = snapshot.ask("select_transcript", (run_id,))
            if not head:
                return
            _, appends, _, oldest, listed, _, before = head[0]
            rows = snapshot.ask("select_parts", (run_id,))
            for part in parts_of(listed, rows, number_of(oldest)):
                if part.is_row:
                    ((data,),) = snapshot.ask("select_part", (run_id, part.first))
                    piece = data_of(data)
                else:
                    piece = self._objects.read(str(before), part.offset, part.length)
                parts.append(part._replace(offset=at, length=len(piece)))
                pieces.append(piece)
                at += len(piece)
        key = f"transcripts/{run_id}/{os.urandom(8).hex()}"
        self._tables.ask("reserve_object", (key, RESERVED_S))
        self._objects.put(key, b"".join(pieces))
        self._tables.ask("move_transcript", (run_id, appends, key, _encoder.encode(parts)))
