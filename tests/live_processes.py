"""Which processes are alive, asked of the kernel."""

from contextlib import suppress
from pathlib import Path

from subagents.process_identity import start_of


def carrying(name: str, value: str) -> list[int]:
    """Live processes with this variable in their environment."""
    wanted = f"{name}={value}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def is_running(pid: int) -> bool:
    """False when there is no such process, or only its remains (a zombie).

    One whose other threads are still ending holds its sockets: a caller would be let in by it.
    """
    return start_of(pid) is not None


def dead_children(pid: int) -> list[int]:
    """Its children that ended, and for which it did not wait."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(each) for task in tasks for each in task.read_text().split()]
    return [each for each in children if _state(each) == "Z"]


def is_stopped(pid: int) -> bool:
    """Whether it stands still after a SIGSTOP."""
    return _state(pid) == "T"


def _state(pid: int) -> str:
    """The kernel's letter; empty when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[0]
