"""Where transcripts are: in files of one home, or in the database of a cluster."""

from pathlib import Path
from typing import NoReturn, Protocol

from tests.store.postgres_server import PostgresPlace
from tests.store.transcripts.transcript_lines import RUN, files

from subagents.extensions.cluster.shared.run_tables import RunTables
from subagents.extensions.cluster.shared.transcript_rows import TranscriptRows
from subagents.ports import TranscriptLog
from subagents.store.transcripts.transcript_files import TranscriptFiles


class TranscriptPlace(Protocol):
    def log(self) -> TranscriptLog:
        """As another process sees it, each time."""
        ...

    def size(self) -> int:
        """Of the transcript of ``RUN`` as lines, in bytes."""
        ...

    def delete(self) -> None:
        """All of it, behind everybody's back."""
        ...


class FilePlace:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def log(self) -> TranscriptFiles:
        return TranscriptFiles(self._directory)

    def size(self) -> int:
        return sum(file.stat().st_size for file in files(self._directory))

    def delete(self) -> None:
        for file in files(self._directory):
            file.unlink()
        (self._directory / RUN).rmdir()


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
