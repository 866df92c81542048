"""Whose worker this process is, also when the program between did not tell us.

Imported before anything is answered, so nothing is imported here that takes time.
"""

import os

# Type checkers take it for theirs; importing typing takes time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TOKEN = "SUBAGENTS_TOKEN"  # noqa: S105 - its name
SOCKET = "SUBAGENTS_SOCKET"
NAMES = (SOCKET, "SUBAGENTS_SESSION_KEY", TOKEN)
ANCESTORS_MAX = 32


def worker_variables(environ: "Mapping[str, str]") -> "dict[str, str]":
    """``NAMES`` as the nearest process above us has them; empty when we have them ourselves.

    Agent programs start their tool servers with a few harmless variables only. A token in an
    argument or a file would lie about where others can read it; in the environment of the worker,
    which is above us, it is already. Linux only: elsewhere ``/proc`` is missing.

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


def _variables(pid: int) -> "dict[str, str]":
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
