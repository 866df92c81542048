"""``doctor --fix``: does what ``doctor`` suggests, where nothing can be lost by it.

Programs to install, keys to set, files to edit and processes to end are left to a person.
"""

import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from subagents.cli.doctor_check import OK, Check
from subagents.client.daemon_start import answers, ensure_daemon
from subagents.config.paths import PRIVATE, Paths
from subagents.errors import SubagentsError

OTHERS: Final = 0o077


def fixed(home: Paths, checks: Iterable[Check]) -> list[str]:
    """Do what can be done safely about what is not ok.

    Returns:
        A line for each thing done, or tried in vain.
    """
    done: list[str] = []
    for check in checks:
        mend = FIXES.get(check.name)
        if check.status == OK or mend is None:
            continue
        try:
            done += mend(home)
        except OSError as error:
            done.append(f"{check.name}: could not be fixed: {error.strerror}")
        except SubagentsError as error:
            done.append(f"{check.name}: could not be fixed: {error.message}")
    return done


def _state(home: Paths) -> list[str]:
    return _closed(home.state_dir)


def _runtime(home: Paths) -> list[str]:
    return _closed(home.socket.parent)


def _closed(directory: Path) -> list[str]:
    """Make a directory of ours usable, and private."""
    found = directory.lstat()
    is_private = stat.S_IMODE(found.st_mode) == PRIVATE
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or is_private:
        return []
    directory.chmod(PRIVATE)
    return [f"chmod 700 {directory}"]


def _daemon(home: Paths) -> list[str]:
    """Close its socket to others; start one where a crash left only the socket."""
    if not home.socket.exists():
        return []
    done = []
    if stat.S_IMODE(home.socket.stat().st_mode) & OTHERS:
        home.socket.chmod(0o600)
        done.append(f"chmod 600 {home.socket}")
    if not answers(home.socket) and ensure_daemon(home):
        done.append("subagents up: the daemon had crashed and is running again")
    return done


FIXES: Final[dict[str, Callable[[Paths], list[str]]]] = {
    "state": _state,
    "runtime": _runtime,
    "daemon": _daemon,
}
