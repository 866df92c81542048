"""Bubblewrap around a worker that sees nothing of its user's but where it works.

``sandbox`` takes away from a file system that is there; here it is built up from nothing: the
system's programs and settings, the directories on the search path of whoever spawned it and of the
daemon, this installation, the attempt's own directory and the one of the daemon's socket, all
read-only; a home and a ``/tmp`` of its own, both empty; and the working directory.

Nothing that an agent's table says is shown: a worker could write such a table into the project's
``subagents.toml``, and spawn what it names.
"""

import contextlib
import os
import pwd
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from subagents.domain.rules.ceilings import is_within
from subagents.domain.run.values import Value
from subagents.errors import UsageError

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc")
SECRETS: Final = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-")
"""A worker of root's could read them."""
RESOLVER: Final = "/etc/resolv.conf"
"""Often a link to where a service of the system writes it, which is not seen."""
SOCKET_VARIABLES: Final = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")
"""They name sockets of the user's, which are not there."""
PACKAGE: Final = Path(__file__).parents[2]
NO_HOME: Final = "/home/worker"
TMP: Final = "/tmp"  # noqa: S108  an empty one, for the worker alone
VAR_TMP: Final = "/var/tmp"  # noqa: S108  an empty one, for the worker alone
_FIELD: Final = {"field": "isolation"}


class Seclusion(Value, frozen=True):
    """What is there besides the system and the working directory; absolute paths."""

    home: str
    """Empty, and the worker's own."""
    visible: tuple[str, ...] = ()
    """Read-only, also where they lie in the home."""


def of_worker(
    env: Mapping[str, str],
    *,
    search: Iterable[str],
    socket: str | None,
    attempt: Path,
    state_dir: Path,
) -> Seclusion:
    """What is there for one worker. Blocking.

    Args:
        env: The worker's.
        search: Values of ``PATH``, of the daemon and of whoever spawned it.
        socket: The daemon's, where the worker may call it.
        attempt: The attempt's directory, where its task is.
        state_dir: Of this installation.
    """
    shown = [str(PACKAGE), sys.prefix, sys.base_prefix]
    shown += map(os.path.realpath, list(shown))
    for entry in (each for path in search for each in path.split(os.pathsep)):
        if os.path.isabs(entry):  # noqa: PTH117
            shown += _of_search(Path(os.path.normpath(entry)))
    private = (*_homes(), str(state_dir))
    shown = [
        each
        for each in shown
        # What its user cannot reach, bubblewrap cannot show.
        if os.access(each, os.R_OK | os.X_OK) and not any(is_within(own, each) for own in private)
    ]
    if socket:
        # Not the socket alone: the next daemon makes another one.
        shown.append(str(Path(socket).parent))
    home = env.get("HOME", "")
    has_home = os.path.isabs(home) and os.path.normpath(home) != "/"  # noqa: PTH117
    return Seclusion(
        home=os.path.normpath(home) if has_home else NO_HOME,
        visible=tuple(dict.fromkeys((*shown, str(attempt)))),
    )


def check(work: str, state_dir: Path) -> None:
    """Refuse a working directory with which nothing would be kept from the worker.

    Raises:
        UsageError: The home directory or the daemon's state lies in it, or it became a link.
    """
    for own in (*_homes(), str(state_dir)):
        if is_within(own, work):
            raise UsageError(
                f'isolation "sandbox" in {work} would show {own}',
                hint="name a directory of the work alone (--cwd DIR)",
                details=_FIELD,
            )
    if os.path.realpath(work) != work:
        raise UsageError(
            f'isolation "sandbox": {work} is or lies behind a symbolic link now', details=_FIELD
        )


def mounts(work: str, seclusion: Seclusion, *, may_write: bool, is_offline: bool) -> list[str]:
    """Arguments that build the file system up, but for the root, which is to be closed after them.

    Args:
        work: The one directory of the user's that is there, without symbolic links.
        seclusion: What is there besides it.
        may_write: Whether the worker may write in ``work``.
        is_offline: Whether it needs no names resolved.
    """
    built = []
    for place in SYSTEM:
        if os.path.islink(place):  # noqa: PTH114
            built += ["--symlink", os.readlink(place), place]  # noqa: PTH115
        else:
            built += ["--ro-bind-try", place, place]
    built += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", TMP, "--tmpfs", VAR_TMP]
    for place in SECRETS:
        if os.path.exists(place):  # noqa: PTH110
            built += ["--ro-bind", "/dev/null", place]
    resolver = os.path.realpath(RESOLVER)
    if not is_offline and not _is_of_system(resolver):
        built += ["--ro-bind-try", resolver, resolver]
    placed = {seclusion.home: ["--tmpfs", seclusion.home]}
    for place in seclusion.visible:
        # What is the system's or the work's is there already, as writable as it is.
        if not _is_of_system(place) and not is_within(place, work):
            placed[place] = ["--ro-bind-try", place, place]
    placed[work] = ["--bind" if may_write else "--ro-bind", work, work]
    # What lies within another place is mounted after it, or it would be covered.
    for place in sorted(placed, key=lambda place: len(Path(place).parts)):
        built += placed[place]
    return built


def variables(seclusion: Seclusion) -> list[str]:
    """Arguments that set the variables which name a place."""
    unset = [word for name in SOCKET_VARIABLES for word in ("--unsetenv", name)]
    return ["--setenv", "HOME", seclusion.home, "--setenv", "TMPDIR", TMP, *unset]


def shows(place: str, work: str, seclusion: Seclusion) -> bool:
    """Whether a program at ``place`` is there for the worker."""
    seen = (*SYSTEM, *seclusion.visible, work)
    return any(is_within(os.path.realpath(place), each) for each in map(os.path.realpath, seen))


def _homes() -> tuple[str, ...]:
    """Of whose files the worker sees none."""
    found = [os.environ.get("HOME", "")]
    with contextlib.suppress(KeyError):  # a container's user need not be in the list of users
        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    return tuple(os.path.realpath(each) for each in found if os.path.isabs(each))  # noqa: PTH117


def _of_search(entry: Path) -> list[str]:
    """A directory on the search path, and what its programs need besides it: of a virtual
    environment and its Python, and of a version manager (pyenv, asdf, mise).

    A link is not followed: in a directory where some worker works, it may be that worker's.
    """
    found = [entry]
    if entry.name == "shims" or (entry.parent / "pyvenv.cfg").is_file():
        found.append(entry.parent)
    shown = [str(each) for each in found if os.path.realpath(each) == _with_real_home(each)]
    python = Path(os.path.realpath(entry / "python"))
    base = python.parent.parent
    # But for one that leads to a Python: nothing else has a library of that name.
    if python.is_file() and any(base.glob("lib/python3*/os.py")):
        shown.append(str(base))
    return shown


def _with_real_home(place: Path) -> str:
    """The home directory itself may be reached by a link: no worker could make that."""
    home = Path.home()
    if place.is_relative_to(home):
        return str(Path(os.path.realpath(home), place.relative_to(home)))
    return str(place)


def _is_of_system(place: str) -> bool:
    return any(is_within(place, each) for each in SYSTEM)
