"""Where the daemon of one home listens.

Every command asks this first, so it is told in plain strings: pathlib and platformdirs take longer
to import than the whole answer of a daemon.
"""

import os
import stat
import sys
from collections.abc import Mapping
from typing import Final

SOCKET_NAME: Final = "subagents.sock"
SUPERVISOR_SOCKET_NAME: Final = "supervisor.sock"
"""Beside the other; it is the longer name, so where it fits both do."""
SOCKET_BYTES_MAX: Final = 107 if sys.platform == "linux" else 103
"""`sun_path` less its NUL; macOS has four bytes fewer than Linux."""
SHORT_PATHS: Final = "/tmp"  # noqa: S108  not TMPDIR: daemon and clients must agree on it; ownership is checked


def socket_path(environ: Mapping[str, str]) -> str | None:
    """The socket that `Paths.resolve` would come to, where that is plain to see; touches nothing.

    Args:
        environ: As `Paths.resolve` takes it.

    Returns:
        Absolute; None where the home must be worked out: it is relative, has a `~`, or the
        directories of this system are not those of Linux.
    """
    home = environ.get("SUBAGENTS_HOME", "")
    if home:
        return socket_in(f"{home}/run") if _is_plain(home) else None
    base = environ.get("XDG_STATE_HOME") or f"{environ.get('HOME')}/.local/state"
    if sys.platform != "linux" or not _is_plain(base):
        return None
    state_dir = f"{base}/subagents"
    return socket_in(system_runtime_dir(environ, state_dir) or f"{state_dir}/run")


def socket_in(runtime_dir: str) -> str:
    """The socket of a home with this runtime directory: in it, or elsewhere if that is too long."""
    if len(os.fsencode(f"{runtime_dir}/{SUPERVISOR_SOCKET_NAME}")) <= SOCKET_BYTES_MAX:
        return f"{runtime_dir}/{SOCKET_NAME}"
    return f"{SHORT_PATHS}/subagents-{os.getuid()}-{digest(runtime_dir)}/s"


def system_runtime_dir(environ: Mapping[str, str], state_dir: str) -> str | None:
    """A directory of our own below the system's runtime directory, None when it has none for us.

    It is named after the state directory: another HOME with the same runtime directory (a test,
    a second profile) is another home and must not meet this one's daemon.
    """
    for base in (environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{os.getuid()}"):
        if base.startswith("/") and _is_ours(base):
            return f"{base.rstrip('/')}/subagents/{digest(state_dir)}"
    return None


def digest(path: str) -> str:
    """Twelve hexadecimal digits that stand for a path."""
    import hashlib  # noqa: PLC0415  a set SUBAGENTS_HOME saves it

    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]


def _is_plain(path: str) -> bool:
    return path.startswith("/") and os.path.normpath(path) == path


def _is_ours(directory: str) -> bool:
    try:
        found = os.lstat(directory)
    except OSError:
        # Not there, or not for us: the next candidate is asked.
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
