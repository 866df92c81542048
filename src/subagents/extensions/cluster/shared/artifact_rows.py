"""Copies of files that passed a contract, by what is in them: rows of the cluster's database, or
objects, where there is a store for them. Equal files of many runs are stored once.
"""

import hashlib
import os
import zlib
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Final

from subagents.domain.run.values import RunId
from subagents.errors import StoreUnavailable
from subagents.extensions.cluster.shared.object_mover import RESERVED_S, Objects
from subagents.extensions.cluster.shared.run_tables import (
    RunTables,
    Transaction,
    data_of,
    number_of,
)

PIECE_BYTES: Final = 256 * 1024
"""A file that is not larger is always kept in the database."""
ROW_BYTES_MAX: Final = 16 * 1024 * 1024
"""The largest file that is kept in the database; as much as one answer brings."""
OBJECT_BYTES_MAX: Final = 1024 * 1024 * 1024


class ArtifactRows:
    """See ``ports.ArtifactLog``.

    Args:
        tables: Where they are.
        objects: Where the larger ones are; None = all are in the database.
    """

    def __init__(self, tables: RunTables, objects: Objects | None) -> None:
        self._tables = tables
        self._objects = objects
        self._bytes_max = ROW_BYTES_MAX if objects is None else OBJECT_BYTES_MAX

    def keep(self, run_id: RunId, path: str, file: BinaryIO) -> bool:
        """See ``ports.ArtifactLog.keep``."""
        if os.fstat(file.fileno()).st_size > self._bytes_max:
            return False
        content = _Content(file)
        with self._tables.transaction() as transaction:
            self._begin(transaction)
            if transaction.ask("lock_artifact", (content.sha256,)):
                transaction.ask("put_run_artifact", (run_id, path, content.sha256))
                return True
        key = None
        if self._objects is not None and content.size > PIECE_BYTES:
            key = f"artifacts/{content.sha256}/{os.urandom(8).hex()}"
            self._tables.ask("reserve_object", (key, RESERVED_S))
            self._objects.put(key, content.pieces())
        with self._tables.transaction() as transaction:
            self._begin(transaction)
            self._put(transaction, content, key)
            transaction.ask("put_run_artifact", (run_id, path, content.sha256))
        return True

    def sizes(self, run_id: RunId) -> Mapping[str, int]:
        """See ``ports.ArtifactLog.sizes``."""
        rows = self._tables.ask("select_artifacts", (run_id,))
        return {str(path): number_of(size) for path, size in rows}

    def read(self, run_id: RunId, path: str, offset: int, bytes_max: int) -> bytes:
        """See ``ports.ArtifactLog.read``."""
        found = self._tables.ask("select_artifact", (run_id, path))
        if not found:
            raise FileNotFoundError(f"no copy of {path} of {run_id} is kept")
        sha256, size, key = found[0]
        length = min(bytes_max, number_of(size) - offset)
        if length <= 0:
            return b""
        if key is not None:
            if self._objects is None:
                raise FileNotFoundError(
                    f"{key} is in an object store, and cluster.objects is unset"
                )
            return self._objects.read(str(key), offset, length)
        rows = self._tables.ask("select_artifact_pieces", (sha256, offset, length))
        try:
            text = b"".join(zlib.decompress(data_of(data)) for _, data in rows)
        except zlib.error as error:
            raise OSError(f"the copy of {path} of {run_id} is damaged: {error}") from error
        return text[offset - number_of(rows[0][0]) :][:length] if rows else b""

    def forget(self, run_id: RunId) -> None:
        """See ``ports.ArtifactLog.forget``."""
        self._tables.ask("forget_artifacts", (run_id,))

    def _begin(self, transaction: Transaction) -> None:
        transaction.ask("make_durable")
        transaction.ask("require_node", (self._tables.identity,))

    def _put(self, transaction: Transaction, content: "_Content", key: str | None) -> None:
        if not transaction.ask("insert_artifact", (content.sha256, content.size, key)):
            return  # somebody else was first; what we stored goes as an object of nobody
        if key is None:
            begins = 0
            for piece in content.pieces():
                row = (content.sha256, begins, zlib.compress(piece))
                transaction.ask("insert_artifact_piece", row)
                begins += len(piece)
        elif not transaction.ask("take_object", (key,))[0][0]:
            raise StoreUnavailable(f"{key} took longer than {RESERVED_S} s to be stored")


class _Content:
    """What is in a file.

    Args:
        file: Read twice.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.sha256, self.size = "", 0
        for piece in self._read():
            self.size += len(piece)

    def pieces(self) -> Iterator[bytes]:
        """All of it.

        Raises:
            OSError: It is something else than it was.
        """
        before = self.sha256
        yield from self._read()
        if self.sha256 != before:
            raise OSError("it was changed while it was stored")

    def _read(self) -> Iterator[bytes]:
        digest = hashlib.sha256()
        self._file.seek(0)
        while piece := self._file.read(PIECE_BYTES):
            digest.update(piece)
            yield piece
        self.sha256 = digest.hexdigest()
