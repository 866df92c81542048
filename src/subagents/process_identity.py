"""What distinguishes a process from every other that had, has or will have its number.

A process id alone says nothing: it is used again, and in a container or on another machine that
shares a directory it is somebody else. With the start time, the boot and the pid namespace it names
one process.
"""

import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

UNKNOWN: Final = "-"
"""What stands for something that the system does not tell."""

_DEAD: Final = frozenset({b"Z", b"X", b"x"})


class Stat(NamedTuple):
    """What ``/proc/PID/stat`` says."""

    dead: bool
    """It has ended, and its parent has not asked how yet."""
    parent: int
    session: int
    start: str
    """When it started, in ticks since the boot."""


def parsed(data: bytes) -> Stat:
    """The fields of a ``/proc/PID/stat``."""
    # The name in parentheses may hold anything, also ") "; what follows the last one is numbers.
    fields = data[data.rfind(b") ") + 2 :].split(b" ", 20)
    # A leader that ended before its other threads shows as a zombie too, but its threads work on.
    dead = fields[0] in _DEAD and int(fields[17]) <= 1
    return Stat(dead, int(fields[1]), int(fields[3]), fields[19].decode())


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Changes with every boot; ``-`` where the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return UNKNOWN


def pid_namespace() -> str:
    """Within which process ids mean something; ``-`` where the system does not tell."""
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115  a name, not a path
    except OSError:
        return UNKNOWN


def start_of(pid: int) -> str | None:
    """When that process started, in ticks since the boot.

    Returns:
        None = no such process is alive; ``-`` = one is, and the system does not tell when it
        started.

    Raises:
        OSError: We could not look (no descriptor or memory left).
    """
    try:
        data = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        # Without /proc, as on macOS, only a signal shows whether it is alive.
        return None if _has_proc() or not answers_signals(pid) else UNKNOWN
    found = parsed(data)
    return None if found.dead else found.start


def _has_proc() -> bool:
    return sys.platform == "linux" and os.path.exists("/proc/self/stat")  # noqa: PTH110


def answers_signals(pid: int) -> bool:
    """Whether there is a process of that number, whosever; a zombie counts."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
