"""Whether this machine can start workers at all; see docs/decisions/0110.

What fails for the machine's own reason (``errors.LACKS``) is counted. After some in a row it begins
nothing more, and tries by itself whether it can again.
"""

import logging
import os
import tempfile
from collections.abc import Callable
from errno import ENOSPC
from pathlib import Path
from typing import Final

from subagents.errors import LACKS, lack_of
from subagents.ports import OffLoop
from subagents.runtimes.process.launcher import LAUNCHER

log = logging.getLogger(__name__)

SICK_AFTER: Final = 3
"""Starts that fail one after the other for the machine's own reason."""
TRY_FIRST_MS: Final = 1_000
TRY_MS_MAX: Final = 15_000
"""The first and the longest wait before it is tried whether something can be started again; each is
twice the one before, until a worker was started."""
ROOM_BYTES: Final = 1024 * 1024
"""Less than so much, and nothing is started: what a start writes must not fill the disk half way.
"""
TRY_BYTES: Final = 64 * 1024


class NodeHealth:
    """What the starts of one node came to.

    Args:
        try_start: Starts something that does nothing; blocking. Raises ``OSError``.
        elapsed_ms: A clock that goes on while the machine sleeps.
    """

    def __init__(self, try_start: Callable[[], None], elapsed_ms: Callable[[], int]) -> None:
        self._try_start, self._elapsed_ms = try_start, elapsed_ms
        self._failures = 0
        self._wait_ms, self._try_at_ms = TRY_FIRST_MS, 0
        self.lack: int | None = None
        """Which of ``LACKS`` is why it begins nothing; None = it begins."""

    @property
    def problem(self) -> str | None:
        """The same in words."""
        return None if self.lack is None else LACKS[self.lack]

    def failed(self, lack: int) -> None:
        """A start failed for this one of ``LACKS``."""
        self._failures += 1
        if self._failures < SICK_AFTER:
            return
        if self.lack is None:
            log.error("nothing is started here any more: %s", LACKS[lack])
        self.lack = lack
        self._try_at_ms = self._elapsed_ms() + self._wait_ms
        self._wait_ms = min(self._wait_ms * 2, TRY_MS_MAX)

    def worked(self) -> None:
        """A worker was started."""
        self._failures, self._wait_ms = 0, TRY_FIRST_MS
        self.lack = None

    async def look(self, off_loop: OffLoop) -> str | None:
        """Try whether something can be started again, if it is time; what the problem is now."""
        if self.lack is not None and self._elapsed_ms() >= self._try_at_ms:
            try:
                await off_loop(self._try_start)
            except OSError as error:
                self.failed(lack_of(error) or self.lack)
            else:
                log.info("workers are started here again: %s no more", self.problem)
                # Not well for sure: one more that fails, and the next try is later.
                self._failures, self.lack = SICK_AFTER - 1, None
        return self.problem


def require_room(directory: Path) -> None:
    """Refuse to begin what the disk has no room for; microseconds.

    Raises:
        OSError: ``ENOSPC``.
    """
    found = os.statvfs(directory)
    # Some file systems do not say how large they are.
    if found.f_blocks and found.f_bavail * found.f_frsize < ROOM_BYTES:
        raise OSError(ENOSPC, os.strerror(ENOSPC), str(directory))


def try_start(state_dir: Path) -> None:
    """Write a file there, and start a process. Blocking.

    Raises:
        OSError: It cannot be done.
    """
    require_room(state_dir)
    with tempfile.TemporaryFile(dir=state_dir) as file:
        file.write(b"\0" * TRY_BYTES)
        file.flush()
        LAUNCHER.start([b"/bin/sh", b"-c", b":"], {}, b"/")
