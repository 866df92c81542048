"""The progress of runs, for the nodes of a cluster: a row in PostgreSQL for each update."""

import contextlib
from collections.abc import Sequence
from typing import Final

import msgspec

from subagents.domain.run.run import Progress
from subagents.domain.run.values import RunId
from subagents.extensions.cluster.shared.run_tables import RunTables, data_of

_encoder: Final = msgspec.json.Encoder()
_decoder: Final[msgspec.json.Decoder[Progress]] = msgspec.json.Decoder(Progress)


class ProgressRows:
    """See ``ports.ProgressLog``; every method also raises ``StoreUnavailable``.

    Args:
        tables: Where they are.
    """

    def __init__(self, tables: RunTables) -> None:
        self._tables = tables

    def append(self, run_id: RunId, progress: Progress) -> None:
        """See ``ports.ProgressLog.append``."""
        row = (run_id, progress.number, _encoder.encode(progress))
        self._tables.write(("put_progress", [row]))

    def read(self, run_id: RunId) -> Sequence[Progress]:
        """See ``ports.ProgressLog.read``."""
        found = []
        for (data,) in self._tables.ask("select_progress", (run_id,)):
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                found.append(_decoder.decode(data_of(data)))
        return tuple(found)

    def forget(self, run_id: RunId) -> None:
        """See ``ports.ProgressLog.forget``."""
        self._tables.write(("delete_progress", [(run_id,)]))
