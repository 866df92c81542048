"""Transcripts in the database of a cluster."""

from typing import NoReturn

from tests.extensions.cluster.postgres.postgres_server import PostgresPlace
from tests.store.transcripts.transcript_lines import RUN

from subagents.extensions.cluster.shared.run_tables import RunTables
from subagents.extensions.cluster.shared.transcript_rows import TranscriptRows


def nowhere(key: str, offset: int, length: int) -> NoReturn:
    raise FileNotFoundError(f"nothing was moved: {key}, {offset}, {length}")


class RowPlace:
    """See ``TranscriptPlace``; ``close`` it.

    Args:
        place: A schema of its own.
    """

    def __init__(self, place: PostgresPlace) -> None:
        self.place = place
        self._made: list[RunTables] = []
        store = place.store()
        store.open("tests")
        store.close()

    def log(self) -> TranscriptRows:
        self._made.append(RunTables(self.place.url, lambda: "a node"))
        return TranscriptRows(self._made[-1], nowhere)

    def size(self) -> int:
        ((size,),) = self.place.asked(
            "SELECT coalesce(sum(size), 0)::bigint FROM transcript_part WHERE run_id = ?", RUN
        )
        return int(str(size))

    def delete(self) -> None:
        self.place.execute("DELETE FROM transcript")
        self.place.execute("DELETE FROM transcript_part")

    def close(self) -> None:
        for each in self._made:
            each.close()
