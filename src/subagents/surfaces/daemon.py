"""The daemon's process: one per home, on one Unix socket, until it is told to stop.

In this order: lock, engine, socket, serve; and back. Whoever holds the lock may replace a socket
file that nobody answers on. Stopping leaves workers running: the next daemon adopts them.

Source: 1-product "Ways to run it"; 5-surfaces §4, §7 ("a second daemon, a stale socket").
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import socket
import stat
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from subagents.config.paths import Paths
from subagents.config.settings import Daemon
from subagents.errors import AlreadyRunning
from subagents.surfaces.call import Services
from subagents.surfaces.caller import CONNECTION, Connection
from subagents.surfaces.http import create_app
from subagents.surfaces.tcp import TcpDoor, bound, operator_token

log = logging.getLogger(__name__)

LOG_BYTES_MAX: Final = 10 * 1024 * 1024
"""At start a larger log is moved to ``daemon.log.1``, over the one before."""
LOGGERS: Final = {"subagents": logging.INFO, "uvicorn": logging.WARNING, "asyncio": logging.WARNING}
"""Not the root: an embedding program's own lines do not belong into our file."""
STOP_S: Final = 5
"""Calls under way at a stop may take so long to end; then they are cut off."""
KEEP_ALIVE_S: Final = 5
ANSWER_S: Final = 1.0
"""How long somebody on a socket that is in the way has to accept."""
_PEER: Final = struct.Struct("3i")
"""``struct ucred``: pid, uid, gid."""


NO_TCP: Final = Daemon()


async def run_daemon(
    services: Services, *, paths: Paths, log_path: Path, settings: Daemon = NO_TCP
) -> None:
    """Serve until SIGTERM, SIGINT or ``POST /v1/shutdown``.

    Args:
        services: What the calls use; its engine is started and stopped here.
        paths: The home; its directories are created.
        log_path: Lines of level INFO and above go there.
        settings: Whether and where it listens on TCP, too.

    Raises:
        AlreadyRunning: Another daemon owns this home; nothing was touched.
        CorruptState: From the engine's start; nothing is served.
        ConfigError: A directory cannot be made, or the TCP port not be had; nothing is served.
    """
    paths.ensure()
    # The lock first: a daemon that is refused must not move the log of the one that runs.
    with hold_lock(paths), log_to(log_path), stop_on_signals(services.stopping):
        await _start_and_serve(services, paths, settings, lambda: tell_service_manager("READY=1"))


async def serve_until_stopped(
    services: Services, *, paths: Paths, ready: asyncio.Event, settings: Daemon = NO_TCP
) -> None:
    """Serve inside another program until ``services.stopping`` is set.

    Signals, log files and the service manager stay that program's own.

    Args:
        services: What the calls use; its engine is started and stopped here.
        paths: The home; its directories are created.
        ready: Set once calls are answered.
        settings: Whether and where it listens on TCP, too.

    Raises:
        AlreadyRunning: Another daemon owns this home; nothing was touched.
        CorruptState: From the engine's start; nothing is served.
        ConfigError: A directory cannot be made, or the TCP port not be had; nothing is served.
    """
    paths.ensure()
    with hold_lock(paths):
        await _start_and_serve(services, paths, settings, ready.set)


async def _start_and_serve(
    services: Services, paths: Paths, settings: Daemon, when_ready: Callable[[], None]
) -> None:
    log.info("daemon %s starts, pid %s", services.info.version, os.getpid())
    # The port first: a daemon that cannot have it has touched nothing.
    with bound(settings) if settings.http_port else contextlib.nullcontext() as tcp:
        token = operator_token(paths.state_dir) if tcp is not None else ""
        await services.engine.start()
        try:
            with listening(paths.socket) as unix:
                app = create_app(services)
                doors = [(unix, _config(app, SameUserProtocol))]
                log.info("listening on %s", paths.socket)
                if tcp is not None:
                    door = TcpDoor(app, services, settings, token)
                    doors.append((tcp, _config(door, HttpToolsProtocol)))
                    log.info("listening on %s", settings.http_url)
                try:
                    await _serve(services, doors, when_ready)
                finally:
                    await app.state.mcp.stop()
            await services.refusals.flush()
        finally:
            await services.engine.stop()
            log.info("daemon stopped")


def _config(app: ASGIApp, protocol: type[HttpToolsProtocol]) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_S,
    )


async def _serve(
    services: Services,
    doors: Sequence[tuple[socket.socket, uvicorn.Config]],
    when_ready: Callable[[], None],
) -> None:
    """Serve at every door until ``services.stopping``; ready when the last one is open."""
    closed = len(doors)

    def opened() -> None:
        nonlocal closed
        closed -= 1
        if not closed:
            when_ready()

    servers = [(_Server(config, opened), listener) for listener, config in doors]
    serving = [
        asyncio.create_task(server.serve(sockets=[listener]), name="serve")
        for server, listener in servers
    ]
    stopping = asyncio.create_task(_until(services.stopping), name="stop")
    try:
        await asyncio.wait({*serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        services.stopping.set()
        for server, _ in servers:
            server.should_exit = True
        await asyncio.gather(*serving, stopping)


async def _until(event: asyncio.Event) -> None:
    await event.wait()


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, which are ours or those of the embedding program."""

    def __init__(self, config: uvicorn.Config, when_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._when_ready = when_ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._when_ready()


class SameUserProtocol(HttpToolsProtocol):
    """Serves only processes of our own user.

    The socket is 0600 in a 0700 directory already; this also holds when somebody changed that. On
    systems without SO_PEERCRED (macOS) the file modes alone protect it.
    """

    _is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        connection = transport.get_extra_info("socket")
        uid = peer_uid(connection)
        if uid is not None and uid != os.getuid():
            log.warning("refused a connection of user %s", uid)
            self._is_refused = True
            transport.abort()
            return
        pid = peer_pid(connection)
        end = Connection("" if pid is None else f"pid {pid}", pid)
        self.app_state = {**self.app_state, CONNECTION: end}
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._is_refused:
            super().connection_lost(exc)


def peer_uid(connection: socket.socket) -> int | None:
    """The user at the other end, None where the system does not say."""
    return None if sys.platform != "linux" else _peer(connection)[1]


def peer_pid(connection: socket.socket) -> int | None:
    """The process that connected, None where the system does not say."""
    # 0: it lives in another pid namespace.
    return None if sys.platform != "linux" else _peer(connection)[0] or None


def _peer(connection: socket.socket) -> tuple[int, int, int]:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    pid, uid, gid = _PEER.unpack(raw)
    return int(pid), int(uid), int(gid)


# -- one per home -------------------------------------------------------------------------------


@contextlib.contextmanager
def hold_lock(paths: Paths) -> Iterator[None]:
    """Be the one daemon of this home; the file names the holder.

    Raises:
        AlreadyRunning: Names the pid and the socket.
    """
    descriptor = os.open(paths.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+", encoding="ascii", errors="replace") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid = lock.read(32).strip() or "unknown"
            raise _already_running(pid, paths.socket) from error
        _write(lock, f"{os.getpid()}\n")
        try:
            yield
        finally:
            # The file stays: removing it would let two daemons lock two different files.
            _write(lock, "")


def _write(file: IO[str], text: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(text)
    file.flush()


def _already_running(pid: str, path: Path) -> AlreadyRunning:
    return AlreadyRunning(
        f"a daemon is running already: pid {pid}, socket {path}",
        hint="use it, or stop it first: subagents down",
        details={"pid": int(pid) if pid.isdecimal() else None, "socket": str(path)},
    )


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
            # Nobody could connect in between: it does not listen yet, and its directory is ours.
            path.chmod(0o600)
            listener.listen()
            listener.setblocking(False)
            yield listener
        finally:
            if _identity(path) == own:
                path.unlink()


def _clear(path: Path) -> None:
    """Remove what a killed daemon left, and nothing else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise AlreadyRunning(
            f"{path} is in the way: it is not a socket",
            hint="look what it is, then move it away",
            details={"socket": str(path)},
        )
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
            raise _already_running("unknown", path) from error
    raise _already_running("unknown", path)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


# -- around it ----------------------------------------------------------------------------------


@contextlib.contextmanager
def stop_on_signals(stopping: asyncio.Event) -> Iterator[None]:
    """SIGTERM and SIGINT set ``stopping``; outside the main thread signals are not ours to take."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Write log lines to ``path``, mode 0600, after moving a large old one aside."""
    _rotate(path)
    handler = logging.StreamHandler(_open_log(path))
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    before: list[tuple[logging.Logger, int]] = []
    for name, level in LOGGERS.items():
        logger = logging.getLogger(name)
        before.append((logger, logger.level))
        logger.setLevel(level)
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, level in before:
            logger.removeHandler(handler)
            logger.setLevel(level)
        handler.close()
        handler.stream.close()


def _open_log(path: Path) -> IO[str]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8", errors="backslashreplace")


def _rotate(path: Path) -> None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return
    if found.st_size <= LOG_BYTES_MAX:
        return
    path.replace(path.with_name(f"{path.name}.1"))
    with _open_log(path) as fresh:
        # Whoever started us sent our standard output and error to the file just moved away.
        for descriptor in (1, 2):
            own = os.fstat(descriptor)
            if (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino):
                os.dup2(fresh.fileno(), descriptor)


def tell_service_manager(state: str) -> None:
    """systemd's ``sd_notify``; nothing happens without NOTIFY_SOCKET."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    # A leading @ is systemd's spelling of an abstract socket.
    target = f"\0{address[1:]}" if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifier:
        try:
            notifier.sendto(state.encode(), target)
        except OSError as error:
            log.warning("the service manager at %s does not listen: %s", address, error)
