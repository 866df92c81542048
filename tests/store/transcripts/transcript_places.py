"""Where transcripts are: in files of one home; see also `RowPlace` of the cluster's tests."""

from pathlib import Path
from typing import Protocol

from tests.store.transcripts.transcript_lines import RUN, files

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
