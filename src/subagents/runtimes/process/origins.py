"""Which worker's process one is, or descends from.

Where attempts have a cgroup that says it, whatever a process did to its parents, session and
environment. Elsewhere descendants count although they carry no mark: harnesses start their tool
servers with a cleaned environment, and such a server must not pass for a person's. A process whose
parents ended before it was looked at is not known there.
"""

import errno
import os
import sys
from typing import Final

from subagents.ports import Origin
from subagents.runtimes.process import cgroups
from subagents.runtimes.process.processes import Process, look

ANCESTORS_MAX: Final = 32
SEEN_MAX: Final = 4096


class Origins:
    """Remembers what it saw: a look takes tens of microseconds for each ancestor."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._seen: dict[tuple[int, str], Origin | None] = {}

    def origin_of(self, pid: int) -> Origin | None:
        """The attempt under ``root``; None for any other process, and where there is no ``/proc``.

        Raises:
            ProcessLookupError: There is no such process any more.
            OSError: We could not look (no descriptor or memory left).
        """
        process = look(pid)
        if process is None:
            if sys.platform != "linux":
                return None
            raise ProcessLookupError(errno.ESRCH, f"process {pid} has ended")
        # Not the id alone: it is used again.
        key = (pid, process.start)
        if key not in self._seen:
            if len(self._seen) >= SEEN_MAX:
                self._seen.clear()
            self._seen[key] = self._search(process)
        return self._seen[key]

    def _search(self, process: Process) -> Origin | None:
        found = cgroups.attempt_of(process.pid, self._root)
        if found is not None:
            return Origin(found, is_certain=True)
        current: Process | None = process
        for _ in range(ANCESTORS_MAX):
            # What the daemon starts is marked; above it is whoever started the daemon.
            if current is None or current.pid in {0, 1, os.getpid()}:
                return None
            if current.marker is not None and current.marker.root == self._root:
                return Origin(current.marker.attempt_id, is_certain=False)
            current = look(current.parent)
        return None
