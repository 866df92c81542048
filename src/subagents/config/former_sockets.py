"""Where versions up to 0.2 listened: in the runtime directory of whoever started them.

Workers and bridges that were started then know no other place; so the daemon leaves links there.
And a command may meet such a daemon before it is started again. Kept until 0.4.0.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from subagents.config.paths import Paths
from subagents.config.socket_path import SOCKET_NAME, SUPERVISOR_SOCKET_NAME, digest


def former_sockets(paths: Paths, environ: Mapping[str, str]) -> Iterator[Path]:
    """The sockets that may be there, by this environment; none of a home with SUBAGENTS_HOME."""
    if environ.get("SUBAGENTS_HOME"):
        return
    for base in (environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{os.getuid()}"):
        place = Path(base, "subagents", digest(str(paths.state_dir)), SOCKET_NAME)
        if base.startswith("/") and _is_ours(place.parent):
            yield place


def leave_links(paths: Paths, environ: Mapping[str, str]) -> None:
    """Leave links there to this home's sockets; only its one daemon does."""
    for place in former_sockets(paths, environ):
        link(place, paths.socket)
        link(place.with_name(SUPERVISOR_SOCKET_NAME), paths.supervisor_socket)


def link(place: Path, target: Path) -> None:
    """Make ``place`` a link to ``target``; a file system that has none stays as it is."""
    new = place.with_name(f".{place.name}.{os.getpid()}")
    with suppress(OSError):
        # Renamed into place, so that there is always a socket for whoever connects.
        new.symlink_to(target)
        new.replace(place)


def _is_ours(directory: Path) -> bool:
    try:
        found = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
