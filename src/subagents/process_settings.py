"""How processes run here: umask, nice, limits and processors.

It needs little of the standard library, since every command that spawns imports it.
"""

import contextlib
import os
import re

try:
    import resource
except ImportError:  # pragma: no cover  # not on every system
    resource = None  # type: ignore[assignment]

DEFAULT_UMASK = 0o022
LIMITS = (
    "as", "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile",
    "nproc", "rss", "rtprio", "rttime", "sigpending", "stack",
)  # fmt: skip
"""Names of ``RLIMIT_…``; a system need not have all of them."""
_UMASK_LINE = re.compile(rb"^Umask:\s*([0-7]+)$", re.MULTILINE)


def own() -> "dict[str, object]":
    """Those of this process, as a document of ``ProcessSettings``; the usual is left out."""
    found: dict[str, object] = {}
    if (umask := _umask()) != DEFAULT_UMASK:
        found["umask"] = umask
    if nice := os.getpriority(os.PRIO_PROCESS, 0):
        found["nice"] = nice
    if hasattr(os, "sched_getaffinity"):
        found["processors"] = tuple(sorted(os.sched_getaffinity(0)))
    if resource is not None:
        found["limits"] = {
            name: resource.getrlimit(number)
            for name in LIMITS
            if (number := getattr(resource, f"RLIMIT_{name.upper()}", None)) is not None
        }
    return found


def _umask() -> int:
    with contextlib.suppress(OSError), open("/proc/self/status", "rb") as status:  # noqa: PTH123  every start waits for pathlib
        if (line := _UMASK_LINE.search(status.read())) is not None:
            return int(line[1], 8)
    # Without /proc it can only be read by setting it, which other threads may see for a moment.
    umask = os.umask(DEFAULT_UMASK)
    os.umask(umask)
    return umask


def become_default() -> None:
    """Take on what a daemon has whichever client started it: umask 022, nice 0 where allowed, and
    every processor. Limits stay: what they would be otherwise is not known.
    """
    os.umask(DEFAULT_UMASK)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    if hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError, ValueError):
            os.sched_setaffinity(0, range(os.cpu_count() or 1))
