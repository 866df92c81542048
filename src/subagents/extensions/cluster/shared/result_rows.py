"""Results too long for their runs, for the nodes of a cluster: compressed rows in PostgreSQL.

A result is whole or not there: all of its rows are one transaction, which goes on while its bytes
come.
"""

import zlib
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from subagents.domain.run.values import RunId
from subagents.extensions.cluster.shared.run_tables import RunTables, data_of, number_of

PIECE_BYTES: Final = 256 * 1024


class ResultRows:
    """See ``ports.ResultLog``; every method also raises ``StoreUnavailable``.

    Args:
        tables: Where they are.
    """

    def __init__(self, tables: RunTables) -> None:
        self._tables = tables

    def keep(
        self, run_id: RunId, name: str, pieces: Iterable[bytes], *, beside: Collection[str]
    ) -> int:
        """See ``ports.ResultLog.keep``."""
        size = 0
        with self._tables.transaction() as transaction:
            transaction.ask("make_durable")
            transaction.ask("require_node", (self._tables.identity,))
            transaction.ask("delete_result", (run_id, name))
            for piece in _pieces(pieces):
                transaction.ask("put_result", (run_id, name, size, zlib.compress(piece)))
                size += len(piece)
            transaction.ask("delete_other_results", (run_id, [name, *beside]))
        return size

    def read(self, run_id: RunId, name: str, offset: int, bytes_max: int) -> bytes:
        """See ``ports.ResultLog.read``."""
        rows = self._tables.ask("select_result", (run_id, name, offset, max(bytes_max, 1)))
        if not rows:
            raise FileNotFoundError(f"result {name} of {run_id} is not there")
        begins = number_of(rows[0][0])
        try:
            text = b"".join(zlib.decompress(data_of(data)) for _, data in rows)
        except zlib.error as error:
            raise OSError(f"result {name} of {run_id} is damaged: {error}") from error
        return text[offset - begins :][:bytes_max]

    def forget(self, run_id: RunId) -> None:
        """See ``ports.ResultLog.forget``."""
        self._tables.write(("delete_results", [(run_id,)]))


def _pieces(given: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of one size, one at least; the last one may be shorter."""
    held = b""
    for each in given:
        held += each
        while len(held) > PIECE_BYTES:
            yield held[:PIECE_BYTES]
            held = held[PIECE_BYTES:]
    yield held
