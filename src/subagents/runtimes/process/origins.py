"""Which worker's process one is, or descends from.

Descendants count although they carry no mark: harnesses start their tool servers with a cleaned
environment, and such a server must not pass for a person's. A process whose parents ended before it
was looked at is not known.
"""

import os
from typing import Final

from subagents.domain.run.values import AttemptId
from subagents.runtimes.process.processes import Process, look

ANCESTORS_MAX: Final = 32
SEEN_MAX: Final = 4096


class Origins:
    """Remembers what it saw: a look takes tens of microseconds for each ancestor.

    Args:
        root: As in ``processes.Marker``.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._seen: dict[tuple[int, str], AttemptId | None] = {}

    def attempt_of(self, pid: int) -> AttemptId | None:
        """The attempt under ``root``; None for any other process, and where there is no ``/proc``.

        Raises:
            OSError: We could not look (no descriptor or memory left).
        """
        process = look(pid)
        if process is None:
            return None
        # Not the id alone: it is used again.
        key = (pid, process.start)
        if key not in self._seen:
            if len(self._seen) >= SEEN_MAX:
                self._seen.clear()
            self._seen[key] = self._search(process)
        return self._seen[key]

    def _search(self, process: Process) -> AttemptId | None:
        current: Process | None = process
        for _ in range(ANCESTORS_MAX):
            # What the daemon starts is marked; above it is whoever started the daemon.
            if current is None or current.pid in {0, 1, os.getpid()}:
                return None
            if current.marker is not None and current.marker.root == self._root:
                return current.marker.attempt_id
            current = look(current.parent)
        return None
