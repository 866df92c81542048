"""What the user allows agents without being asked: ``<state>/allowed-calls.json``."""

import threading
from collections.abc import Mapping
from typing import Final

from subagents.config.paths import Paths
from subagents.config.state_file import read_entries, write_entries

AGENTS_MAX: Final = 10_000
HINT: Final = "remove it: then nothing is allowed any more"


class AllowedCallFile:
    """See ``ports.AllowedCallLog``."""

    def __init__(self, paths: Paths) -> None:
        self._paths, self._file = paths, paths.state_dir / "allowed-calls.json"
        self._writing = threading.Lock()

    def read(self) -> Mapping[str, tuple[str, ...]]:
        """See ``ports.AllowedCallLog.read``."""
        return read_entries(self._file, tuple[str, ...], hint=HINT)

    def change(self, agent_id: str, call: str, *, allow: bool) -> None:
        """See ``ports.AllowedCallLog.change``."""
        with self._writing:
            known = dict(self.read())
            others = tuple(each for each in known.get(agent_id, ()) if each != call)
            known[agent_id] = (*others, call) if allow else others
            write_entries(self._paths, self._file, known, entries_max=AGENTS_MAX)
