"""Shuts a contract's command in, where bubblewrap can: no network, only its directory to write.

The command is the operator's, what it runs is the worker's (a test file, a build script). Without
walls it could do what the worker itself may not: reach the network, write elsewhere, or call the
daemon on its socket in the operator's name. So the state directory and the places where sockets
lie are empty in there.
"""

import os
import shutil
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from subagents.domain.rules.ceilings import is_within
from subagents.process_group import run
from subagents.text import one_line

PROGRAM: Final = "bwrap"
PROBE_S: Final = 10.0
SANDBOXED: Final = "sandboxed: no network, read-only but for the work directory"
_HIDDEN: Final = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108  made empty, not used
_BASE: Final = (
    *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
    *("--cap-drop", "ALL", "--die-with-parent", "--ro-bind", "/", "/"),
    *("--dev", "/dev", "--proc", "/proc"),
)


class Walls(NamedTuple):
    """What stands before a command, and what a verdict says of it."""

    argv: tuple[str, ...]
    said: str


class CommandSandbox:
    """Builds the walls around commands.

    Args:
        hidden: The daemon's directories, which no command may see.
        is_on: Off = commands run as they are.
    """

    def __init__(self, hidden: Sequence[Path] = (), *, is_on: bool = True) -> None:
        self._hidden = hidden
        self._is_on = is_on
        self._lock = threading.Lock()
        self._stands = False

    def around(self, workspace: Path) -> Walls:
        """The walls for commands in this directory; blocking until they stood once.

        Args:
            workspace: Absolute; what may be written.
        """
        if not self._is_on:
            return Walls((), "unsandboxed: verification.sandbox is off")
        missing = self._why_not()
        if missing is not None:
            return Walls((), f"unsandboxed: {missing}")
        root = os.path.realpath(workspace)
        open_to_all = [each for each in _HIDDEN if Path(each).is_dir()]
        ours = [str(each) for each in self._hidden if each.is_dir()]
        hidden = [os.path.realpath(each) for each in (*open_to_all, *ours)]
        argv = [PROGRAM, *_BASE]
        for each in hidden:
            if not is_within(each, root):
                argv += ["--tmpfs", each]
        # After the directories that hide them: bubblewrap takes its arguments in order.
        for each in _programs(hidden[: len(open_to_all)]):
            argv += ["--ro-bind-try", each, each]
        argv += ["--bind", root, root]
        # A workspace around a hidden directory would uncover it again.
        for each in hidden:
            if is_within(each, root) and each != root:
                argv += ["--tmpfs", each]
        return Walls((*argv, "--chdir", root, "--"), SANDBOXED)

    def _why_not(self) -> str | None:
        with self._lock:  # checks run on several threads, and a probe starts a program
            # A failure may be of the moment: later commands must not be without walls for it.
            missing = None if self._stands else _probe()
            self._stands = missing is None
        return missing


def _probe() -> str | None:
    """Why there can be no walls here; None = they stand."""
    if shutil.which(PROGRAM) is None:
        return "bubblewrap is not installed"
    try:
        tried = run([PROGRAM, *_BASE, "--", "/bin/sh", "-c", ":"], timeout_s=PROBE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap cannot be started: {one_line(str(error), 200)}"
    if tried.returncode == 0:
        return None
    return f"bubblewrap does not work here: {one_line(tried.stderr.decode(errors='replace'), 200)}"


def _programs(hidden: Sequence[str]) -> list[str]:
    """Where programs of the search path lie in a hidden place: a virtual environment in /tmp."""
    found = []
    for entry in os.environ.get("PATH", "").split(os.pathsep):
        if any(is_within(os.path.realpath(entry), each) for each in hidden):
            place = Path(entry)
            found.append(str(place.parent if place.name == "bin" else place))
    return list(dict.fromkeys(found))
