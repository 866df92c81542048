"""Where the daemon of one home listens.

It follows from the home alone. A login shell, cron, `su`, a batch node and an MCP client with six
variables have the same home and different runtime directories of the system, or none; and those
vanish when the last login ends, while the daemon goes on. So the sockets lie in the home.

Every command asks this first, so it works on plain strings: importing pathlib and platformdirs
takes longer than the whole answer of a daemon.
"""

import os
import sys
from collections.abc import Mapping
from typing import Final

SOCKET_NAME: Final = "subagents.sock"
SUPERVISOR_SOCKET_NAME: Final = "supervisor.sock"
"""The other socket's name in the same directory; it is the longer one, so where it fits both do."""
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
    base = xdg_base(environ, "XDG_STATE_HOME") or f"{environ.get('HOME') or '?'}/.local/state"
    if sys.platform != "linux" or not _is_plain(base):
        return None
    return socket_in(f"{base}/subagents/run")


def socket_in(runtime_dir: str) -> str:
    """The socket of a home with this runtime directory: in it, or elsewhere if that is too long.

    Whoever reaches the home over a link, or without it, comes to the same place.
    """
    real = os.path.realpath(runtime_dir)
    if not _fits(real):
        return f"{SHORT_PATHS}/subagents-{os.getuid()}-{digest(real)}/s"
    return f"{runtime_dir if _fits(runtime_dir) else real}/{SOCKET_NAME}"


def xdg_base(environ: Mapping[str, str], name: str) -> str | None:
    """The directory that a variable of the XDG specification names.

    Returns:
        None = it is unset, empty, or relative, which the specification says to ignore: a daemon
        does not work where its caller does.
    """
    found = environ.get(name, "")
    return found if found.startswith("/") else None


def digest(path: str) -> str:
    """Twelve hexadecimal digits that stand for a path."""
    import hashlib  # noqa: PLC0415  a short path saves it

    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]


def _is_plain(path: str) -> bool:
    return path.startswith("/") and os.path.normpath(path) == path


def _fits(runtime_dir: str) -> bool:
    return len(os.fsencode(f"{runtime_dir}/{SUPERVISOR_SOCKET_NAME}")) <= SOCKET_BYTES_MAX
