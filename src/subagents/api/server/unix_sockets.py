"""Listening sockets of a home: the user's own, and made again when their files are removed."""

import asyncio
import contextlib
import logging
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from subagents.config.daemon_record import DaemonRecord
from subagents.config.paths import Paths
from subagents.errors import AlreadyRunning, SubagentsError

log = logging.getLogger(__name__)

LOOK_S: Final = 5.0
"""So often the socket files are looked for: one ``lstat`` each."""
ANSWER_S: Final = 1.0
"""How long somebody on a socket that is in the way has to accept."""

ListenAt: TypeAlias = Callable[[socket.socket], Awaitable[None]]
"""Accept connections on this listener instead of the one before."""


@contextlib.contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """A listening socket at ``path``, mode 0600; the file is removed again at the end.

    Raises:
        AlreadyRunning: Somebody answers there, or something other than a socket is in the way.
    """
    _clear(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        own = _identity(path)
        try:
            # No client could connect in between: it does not listen yet, and its directory is ours.
            path.chmod(0o600)
            listener.listen()
            listener.setblocking(False)
            yield listener
        finally:
            if _identity(path) == own:
                path.unlink()


@contextlib.asynccontextmanager
async def bound_again(
    paths: Paths, path: Path, listen_at: ListenAt, stack: contextlib.ExitStack
) -> AsyncIterator[None]:
    """While the block runs: make the socket file at ``path`` again whenever it is gone.

    Cleaners of temporary directories remove it, and people do; a daemon that holds the lock and has
    no socket could not be reached.

    Args:
        paths: The home; its directories are made again, too.
        path: It is bound when this begins.
        listen_at: Gets the new listener, each time.
        stack: Closes the listeners and removes the file at the end.
    """
    own, loop = _identity(path), asyncio.get_running_loop()

    async def look() -> None:
        nonlocal own
        last_problem: str | None = None
        while True:
            # At common times: all looks wake the loop together.
            await asyncio.sleep(LOOK_S - loop.time() % LOOK_S)
            if _identity(path) == own:
                continue
            try:
                paths.ensure()
                listener = stack.enter_context(listening(path))
            except (SubagentsError, OSError) as error:
                if str(error) != last_problem:
                    log.warning("the socket %s is gone and cannot be made again: %s", path, error)
                last_problem = str(error)
                continue
            log.warning("the socket %s was removed; it is there again", path)
            await listen_at(listener)
            own, last_problem = _identity(path), None

    looking = asyncio.create_task(look(), name="look for the socket")
    try:
        yield
    finally:
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking


def _clear(path: Path) -> None:
    """Remove what a killed daemon left, and nothing else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode):
        # To a daemon of a version before, which holds the home no more.
        path.unlink(missing_ok=True)
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise AlreadyRunning(
            f"{path} is in the way: it is not a socket",
            hint="look what it is, then move it away",
            details={"socket": str(path)},
        )
    # Only connecting tells: a killed daemon leaves its file, and so does one that is stopping.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(ANSWER_S)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            log.info("replacing the stale socket %s", path)
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            # Full backlog, no permission, a timeout: somebody may be there.
            raise already_running(None, path) from error
    raise already_running(None, path)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def already_running(holder: DaemonRecord | None, path: Path) -> AlreadyRunning:
    """The error that another daemon has this home; ``holder`` is None where it is not known."""
    known = None if holder is None or holder.is_over else holder
    return AlreadyRunning(
        f"a daemon is running already: {known.words if known else 'pid unknown'}, socket {path}",
        hint="use it, or stop it first: subagents down",
        details={"pid": known.pid if known else None, "socket": str(path)},
    )
