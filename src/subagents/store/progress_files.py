"""The progress of each run as lines of JSON, one file per run: ``<state>/progress/<runId>.jsonl``.

Apart from the database, because nothing is decided by it and it need not be durable: the
run itself keeps its latest progress. A line that a crash tore is skipped, and a line that was
written twice (its commit was lost) counts once.
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from subagents.domain.run.run import Progress
from subagents.domain.run.values import RunId
from subagents.durable_files import write_all

BYTES_MAX: Final = 4 * 1024 * 1024
"""How much of a file is read: far more than 100 updates can take."""

_encoder = msgspec.json.Encoder()
_decoder: Final[msgspec.json.Decoder[Progress]] = msgspec.json.Decoder(Progress)


class ProgressFiles:
    """See ``ports.ProgressLog``.

    Args:
        directory: Made when the first line is written, for its owner only.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def append(self, run_id: RunId, progress: Progress) -> None:
        """See ``ports.ProgressLog.append``."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        file = os.open(self._path(run_id), flags, 0o600)
        try:
            end = os.lseek(file, 0, os.SEEK_END)
            # A line that a crash tore is ended first, or it would take this one with it.
            is_torn = end > 0 and os.pread(file, 1, end - 1) != b"\n"
            write_all(file, b"\n" * is_torn + _encoder.encode(progress) + b"\n")
        finally:
            os.close(file)

    def read(self, run_id: RunId) -> Sequence[Progress]:
        """See ``ports.ProgressLog.read``."""
        try:
            with self._path(run_id).open("rb") as file:
                lines = file.read(BYTES_MAX).splitlines()
        except FileNotFoundError:
            return ()
        found: dict[int, Progress] = {}
        for line in lines:
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                progress = _decoder.decode(line)
                found[progress.number] = progress
        return tuple(found[number] for number in sorted(found))

    def forget(self, run_id: RunId) -> None:
        """See ``ports.ProgressLog.forget``."""
        self._path(run_id).unlink(missing_ok=True)

    def _path(self, run_id: RunId) -> Path:
        return self._directory / f"{run_id}.jsonl"
