"""Results too long for their runs, one file each: ``<state>/results/<runId>/<name>``.

A file is whole or not there: it is written aside, synced, and renamed. One that no run names (a
crash came before its commit) counts for nothing and goes with the next result, or with its run.
"""

import os
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from subagents.domain.run.values import RunId
from subagents.durable_files import private, sync

DRAFT: Final = ".draft"


class ResultFiles:
    """See ``ports.ResultLog``.

    Args:
        directory: Made when the first result is kept, for its owner only.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(
        self, run_id: RunId, name: str, pieces: Iterable[bytes], *, beside: Collection[str]
    ) -> int:
        """See ``ports.ResultLog.keep``."""
        folder = self._directory / run_id
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = folder / DRAFT
        try:
            with open(draft, "wb", opener=private) as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
            draft.replace(folder / name)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        # The names of file and folder, too, before anybody commits that they are there.
        for each in (folder, self._directory, self._directory.parent):
            sync(each)
        for each in folder.iterdir():
            if each.name != name and each.name not in beside:
                each.unlink(missing_ok=True)
        return size

    def read(self, run_id: RunId, name: str, offset: int, bytes_max: int) -> bytes:
        """See ``ports.ResultLog.read``."""
        with (self._directory / run_id / name).open("rb", buffering=0) as file:
            file.seek(offset)
            return file.read(bytes_max)

    def forget(self, run_id: RunId) -> None:
        """See ``ports.ResultLog.forget``."""
        shutil.rmtree(self._directory / run_id, ignore_errors=True)
