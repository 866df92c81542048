"""Whose worker we belong to, when the program that started us cleaned our environment.

Agent programs start their tool servers with a few harmless variables only. A token in an argument
or a file instead would lie about where others can read it; in the environment of the worker it is
already, and that worker is above us. Linux only: elsewhere ``/proc`` is missing.

Source: 3-tools "Who is calling"; docs/decisions/0014.
"""

import os
from collections.abc import Mapping
from typing import Final

TOKEN: Final = "SUBAGENTS_TOKEN"  # noqa: S105 - its name
NAMES: Final = ("SUBAGENTS_SOCKET", "SUBAGENTS_SESSION_KEY", TOKEN)
ANCESTORS_MAX: Final = 32


def worker_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """``NAMES`` as the nearest process above us has them; empty when we have them ourselves.

    Returns:
        Nothing, too, when nobody above us is a worker, or may not be read.
    """
    if environ.get(TOKEN):
        return {}
    pid = os.getppid()
    for _ in range(ANCESTORS_MAX):
        if pid <= 1:
            break
        found = _variables(pid)
        if TOKEN in found:
            return found
        pid = _parent(pid)
    return {}


def _variables(pid: int) -> dict[str, str]:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:  # noqa: PTH123  starts faster
            pairs = (os.fsdecode(each).partition("=") for each in file.read().split(b"\0"))
            return {name: value for name, _, value in pairs if name in NAMES}
    except OSError:
        return {}


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123  starts faster
            # The name in parentheses may hold anything, also ") ".
            return int(file.read().rpartition(b") ")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
