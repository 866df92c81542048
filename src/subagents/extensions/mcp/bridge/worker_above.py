"""Whose worker this process is, also when the program between passed no variables on.

Imported before anything is answered, so nothing is imported here that takes time.
"""

import os

# Type checkers take it for theirs; importing typing takes time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TOKEN = "SUBAGENTS_TOKEN"  # noqa: S105 - its name
SOCKET = "SUBAGENTS_SOCKET"
SERVERS = "SUBAGENTS_MCP_SERVERS"
"""The variable with the MCP servers that a worker was given, without secrets, in JSON."""
SECRET = "SUBAGENTS_MCP_SECRET_"  # noqa: S105 - the beginning of a name
NAMES = (SOCKET, "SUBAGENTS_SESSION_KEY", TOKEN)
ANCESTORS_MAX = 32


def worker_variables(environ: "Mapping[str, str]") -> "dict[str, str]":
    """``NAMES`` as the nearest process above us has them; empty when we have them ourselves.

    Agent programs start their tool servers with a few harmless variables only. A token in an
    argument or a file would lie about where others can read it; in the environment of the worker,
    which is above us, it is already. Linux only: elsewhere ``/proc`` is missing.

    Returns:
        Nothing, too, when no process above us is a worker's, or may be read.
    """
    if environ.get(TOKEN):
        return {}
    for pid in ancestors(ANCESTORS_MAX):
        found = variables_of(pid)
        if TOKEN in found:
            return {name: found[name] for name in NAMES if name in found}
    return {}


def ancestors(most: int) -> "Iterator[int]":
    """The ids of the processes above us, the nearest first; without the system's first one."""
    pid = os.getppid()
    for _ in range(most):
        if pid <= 1:
            return
        yield pid
        pid = _parent(pid)


def variables_of(pid: int) -> "dict[str, str]":
    """The environment of a process; empty when it may not be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:  # noqa: PTH123  starts faster
            pairs = (os.fsdecode(each).partition("=") for each in file.read().split(b"\0"))
            return {name: value for name, _, value in pairs if name}
    except OSError:
        return {}


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123  starts faster
            # The name in parentheses may hold anything, also ") ".
            return int(file.read().rpartition(b") ")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
