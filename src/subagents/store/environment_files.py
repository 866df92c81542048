"""The variables that callers brought for their runs: ``<state>/environments/<runId>``, mode 0600.

They may be secrets, and the journal has many readers. So they are only here, as long as their run
is kept. One call's runs share one file under several names: it is written and synced once.
"""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.values import RunId
from subagents.durable_files import private, sync

CACHED_MAX: Final = 1_000
STRAY_S: Final = 3_600
"""The age at which a file that no run names is a crash's: its run was never stored."""
_decode: Final = msgspec.json.Decoder(CallerEnvironment).decode


class EnvironmentFiles:
    """See ``ports.EnvironmentLog``.

    Args:
        directory: Made when the first is kept, for its owner only.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._cached: dict[RunId, CallerEnvironment] = {}

    def keep(self, run_ids: Sequence[RunId], environment: CallerEnvironment) -> None:
        """See ``ports.EnvironmentLog.keep``."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._directory / f".{run_ids[0]}"
        try:
            with open(draft, "wb", opener=private) as file:
                file.write(msgspec.json.encode(environment))
                file.flush()
                os.fsync(file.fileno())
            # A name for each run: to forget one of them takes nothing from the others.
            for run_id in run_ids:
                (self._directory / run_id).hardlink_to(draft)
        finally:
            draft.unlink(missing_ok=True)
        sync(self._directory)
        for run_id in run_ids:
            self._remember(run_id, environment)

    def read(self, run_id: RunId) -> CallerEnvironment:
        """See ``ports.EnvironmentLog.read``."""
        found = self._cached.get(run_id)
        if found is None:
            found = _decode((self._directory / run_id).read_bytes())
            self._remember(run_id, found)
        return found

    def forget(self, run_id: RunId) -> None:
        """See ``ports.EnvironmentLog.forget``."""
        self._cached.pop(run_id, None)
        (self._directory / run_id).unlink(missing_ok=True)

    def forget_strays(self, is_known: Callable[[RunId], bool]) -> None:
        """See ``ports.EnvironmentLog.forget_strays``."""
        if not self._directory.is_dir():
            return
        before = time.time() - STRAY_S
        for file in self._directory.iterdir():
            name = RunId(file.name.removeprefix("."))
            with suppress(FileNotFoundError):  # a spawn's, or it is being pruned
                is_old = file.stat().st_mtime < before
                if is_old and (file.name.startswith(".") or not is_known(name)):
                    file.unlink()

    def _remember(self, run_id: RunId, environment: CallerEnvironment) -> None:
        if len(self._cached) >= CACHED_MAX:
            self._cached.clear()
        self._cached[run_id] = environment
