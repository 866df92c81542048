"""Until when the workers of a home may live: a file next to its attempts, renewed with the lease.

A node of a cluster that can no longer renew its right must have ended its workers before another
node starts them again. What ends them is a process of its own (``watchdog``), which needs the end
of the right and nothing else of the daemon, since that may be frozen or dead. ``shim.sh`` reads the
same file right before it becomes a worker. Where there is no file, there is no end: a daemon alone.
"""

import contextlib
import os
import time
from pathlib import Path
from typing import Final, NamedTuple

from subagents.process_identity import boot_id

FILE: Final = "node.deadline"
"""The file's name in the state directory, above the attempts."""
MARGIN_S_MAX: Final = 1.5
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while the machine sleeps: the right does, too. ``/proc/uptime`` shows it to the shim."""
_TRIES: Final = 100


def margin_s(lease_s: float) -> float:
    """How long before the end of a right its workers are ended, in seconds."""
    return min(MARGIN_S_MAX, lease_s / 4)


def elapsed_ms() -> int:
    """The clock of the file, in milliseconds since the boot."""
    return time.clock_gettime_ns(_CLOCK) // 1_000_000


class Deadline(NamedTuple):
    """What the file says."""

    until_ms: int
    """The end of the lease, by ``elapsed_ms``."""
    boot: str
    pid: int
    """The daemon that renewed it last; never taken for a worker, whoever started it."""

    @property
    def left_ms(self) -> int:
        """What is left; 0 = it is over, as is one of another boot."""
        return max(self.until_ms - elapsed_ms(), 0) if self.boot == boot_id() else 0


def write(state_dir: Path, until_ms: int) -> None:
    """Replace it in place, in one write of a size that never changes.

    Raises:
        OSError: It cannot be written.
    """
    file = os.open(state_dir / FILE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    _put(file, until_ms, os.getpid())


def move_on(state_dir: Path, until_ms: int) -> None:
    """Let it come later, if there is one and it would come earlier; the daemon's pid stays.

    Raises:
        OSError: It cannot be written.
    """
    found = read(state_dir)
    if found is None or found.until_ms >= until_ms:
        return
    with contextlib.suppress(FileNotFoundError):  # removed meanwhile: there is no end any more
        _put(os.open(state_dir / FILE, os.O_WRONLY | os.O_CLOEXEC), until_ms, found.pid)


def _put(file: int, until_ms: int, pid: int) -> None:
    # The number twice: a reader that meets a write half done sees that they differ.
    text = f"{until_ms:020d} {until_ms:020d} {boot_id():<36} {pid:010d}\n"
    try:
        os.pwrite(file, text.encode(), 0)
    finally:
        os.close(file)


def read(state_dir: Path) -> Deadline | None:
    """What it says now; None = there is no end. One that cannot be understood is over.

    Raises:
        OSError: It cannot be read.
    """
    for _ in range(_TRIES):
        try:
            words = (state_dir / FILE).read_text("ascii").split()
        except FileNotFoundError:
            return None
        with contextlib.suppress(ValueError):
            until, again, boot, pid = words
            if until == again:
                return Deadline(int(until), boot, int(pid))
        time.sleep(0.001)
    return Deadline(0, "", 0)


def remove(state_dir: Path) -> None:
    """Say that there is no end any more. Idempotent."""
    (state_dir / FILE).unlink(missing_ok=True)
