"""The daemon's process: one per home, on one Unix socket, until a signal or a call stops it.

In this order: lock, engine, socket, serve; and back. The holder of the lock may replace a socket
file on which no process answers. Stopping leaves workers running: the next daemon adopts them.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, cast

import uvicorn

from subagents import extension
from subagents.api.calls.auth import CONNECTION, Connection, peer_uid
from subagents.api.calls.services import Services
from subagents.api.server import service_notices
from subagents.api.server.app import create_app
from subagents.api.server.daemon_log import writing_log
from subagents.api.server.listeners import (
    Listener,
    Serving,
    listeners_of,
    server_config,
    stop_accepting,
)
from subagents.api.server.loop_lag import LoopLag
from subagents.api.server.unix_sockets import already_running, bound_again, listening
from subagents.api.server.watched_protocol import WatchedProtocol
from subagents.config import daemon_record
from subagents.config.daemon_record import DaemonRecord
from subagents.config.former_sockets import leave_links
from subagents.config.paths import Paths
from subagents.config.settings import DaemonSettings

log = logging.getLogger(__name__)

LOG_BYTES_MAX: Final = 10 * 1024 * 1024
"""A larger log is moved to ``daemon.log.1``, over the one before."""
LOOKERS_S: Final = 2.0
"""How long a lock is asked for again whose file names no living process."""
LOOKERS_POLL_S: Final = 0.01

HELD: Final = "_SUBAGENTS_LOCK"
"""Names the descriptor of the lock, to who begins anew in this process: nobody comes between."""

NO_TCP: Final = DaemonSettings()


async def run_daemon(
    services: Services, *, paths: Paths, log_path: Path, settings: DaemonSettings = NO_TCP
) -> bool:
    """Serve until SIGTERM, SIGINT, SIGHUP or ``POST /v1/shutdown``.

    Args:
        services: What the calls use; its engine is started and stopped here.
        paths: The home; its directories are created.
        log_path: The file for lines of level INFO and above.
        settings: Whether and where it also listens on TCP.

    Returns:
        Whether it was SIGHUP: to begin anew, with what is configured by then.

    Raises:
        AlreadyRunning: Another daemon owns this home; nothing was touched.
        CorruptState: From the engine's start; nothing is served.
        ConfigError: A directory cannot be made, or the TCP port not be had; nothing is served.
        Fenced: Another process took the store over meanwhile; everything was stopped.
    """
    paths.ensure()
    # The lock first: a daemon that is refused must not move the log of the one that runs.
    async with hold_lock(paths) as lock:
        leave_links(paths, os.environ)
        with (
            writing_log(log_path, bytes_max=LOG_BYTES_MAX),
            stop_on_signals(services.stopping) as anew,
        ):
            async with service_notices.told(services.stopping, anew):
                ready = partial(service_notices.tell, service_notices.READY)
                await _start_and_serve(services, paths, settings, ready)
            if anew.is_set():
                os.set_inheritable(kept := os.dup(lock), True)
                os.environ[HELD] = str(kept)
            return anew.is_set()


async def serve_until_stopped(
    services: Services, *, paths: Paths, ready: asyncio.Event, settings: DaemonSettings = NO_TCP
) -> None:
    """As ``run_daemon`` inside another program, until ``services.stopping`` is set.

    Signals, log files and the service manager stay that program's own; ``ready`` is set once calls
    are answered.
    """
    paths.ensure()
    async with hold_lock(paths, stays_ended=False):
        await _start_and_serve(services, paths, settings, ready.set)


async def _start_and_serve(
    services: Services, paths: Paths, settings: DaemonSettings, when_ready: Callable[[], None]
) -> None:
    log.info("daemon %s starts, pid %s", services.info.version, os.getpid())
    listeners = listeners_of(services, paths, settings)
    async with contextlib.AsyncExitStack() as stack:
        for each in listeners:
            await stack.enter_async_context(each.living())
        # The addresses first: a daemon that cannot have a configured one has touched nothing.
        addresses = stack.enter_context(contextlib.ExitStack())
        for each in listeners:
            each.bind(addresses)
        # Another process has taken the store over: whatever this one answers may be wrong by now.
        services.engine.on_fenced(services.stopping.set)
        await services.engine.start()
        try:
            async with following(services):
                await _serve_all(services, paths, listeners, when_ready)
        finally:
            await services.engine.stop()
            log.info("daemon stopped")
        if services.engine.fence is not None:
            raise services.engine.fence


async def _serve_all(
    services: Services,
    paths: Paths,
    listeners: Sequence[Listener],
    when_ready: Callable[[], None],
) -> None:
    # A listener that is made later is closed, as this one, only after its server.
    with listening(paths.socket) as unix, contextlib.ExitStack() as later:
        app = create_app(services)
        lag = LoopLag(app, services.loop_lag_s)
        later.callback(lag.stop)
        services.engine.ledger.on_commit(lag.on_commit)

        try:
            async with (
                _Servers(services.stopping) as servers,
                contextlib.AsyncExitStack() as serving,
            ):

                async def serve(listener: socket.socket, config: uvicorn.Config) -> None:
                    await servers.add(listener, config).opened()

                # Before the other: who reaches that one may ask where these are.
                around = Serving(lag, paths, serve, later)
                for each in listeners:
                    await serving.enter_async_context(each.serving(around))
                first = servers.add(unix, server_config(lag, SameUserProtocol, services.info))
                log.info("listening on %s", paths.socket)
                async with bound_again(paths, paths.socket, first.listen_at, later):
                    await first.opened()
                    when_ready()
                    await servers.until_one_ends()
        finally:
            for each in app.state.endpoints:
                await each.stop()
    await services.refusals.flush()


@contextlib.asynccontextmanager
async def following(services: Services) -> AsyncIterator[None]:
    """Tell whoever follows what happened; the store is open meanwhile."""
    followers = [(by, each) for by, found in services.followers.items() for each in found]
    started = []
    try:
        for by, each in followers:
            try:
                await services.off_loop(each.start)
            except Exception:
                if by in extension.OWN:
                    raise
                log.exception("the extension %s follows nothing: it did not start", by)
                continue
            started.append(each)
            if each.state is not None:
                log.info("what runs did is sent to %s", each.state.endpoint)
        yield
    finally:
        await asyncio.gather(*(services.off_loop(each.stop) for each in started))


class _Servers:
    """One server for each listener, until the daemon stops; more may come meanwhile."""

    def __init__(self, stopping: asyncio.Event) -> None:
        self._stopping = stopping
        self._tasks: list[asyncio.Task[Any]] = [asyncio.create_task(stopping.wait(), name="stop")]

    def add(self, listener: socket.socket, config: uvicorn.Config) -> "_Server":
        """Serve on that listener, too."""
        server = _Server(config, self._stopping)
        server.serving = asyncio.create_task(server.serve(sockets=[listener]), name="serve")
        self._tasks.append(server.serving)
        return server

    async def until_one_ends(self) -> None:
        """Return when the daemon has to stop, or one cannot go on."""
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let them finish what they answer; raises what one of them failed with."""
        self._stopping.set()
        await asyncio.gather(*self._tasks)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, which are ours or those of the embedding program, and
    without looking ten times a second whether it has to stop, and then whether all has ended.
    """

    serving: "asyncio.Task[None]"

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._opened = asyncio.Event()
        self._stopping = stopping

    async def opened(self) -> None:
        """Return when it accepts connections, or has failed."""
        waiting = asyncio.create_task(self._opened.wait())
        await asyncio.wait({waiting, self.serving}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._opened.set()

    async def main_loop(self) -> None:
        # Once is enough: a tick renews the headers, and none of ours is a date.
        await self.on_tick(0)
        await self._stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await stop_accepting(self.servers)
        for listener in sockets or ():
            listener.close()
        time_s, calls = self.config.timeout_graceful_shutdown, self.server_state.tasks
        try:
            async with asyncio.timeout(time_s):
                await self._all_ended()
        except TimeoutError:
            log.warning("%s still under way %s s after the stop: cut off", len(calls), time_s)
            for call in calls:
                call.cancel()

    async def _all_ended(self) -> None:
        """Close connections: idle ones now, others once they are answered."""
        calls = self.server_state.tasks
        connections = cast("set[WatchedProtocol]", self.server_state.connections)
        while calls or connections:
            for connection in [*connections]:
                connection.shutdown()
            ends = [*calls, *(connection.lost for connection in connections)]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)

    async def listen_at(self, listener: socket.socket) -> None:
        """Accept connections there: the socket file of the old listener is gone; calls go on."""
        protocol = partial(
            cast("Callable[..., asyncio.Protocol]", self.config.http_protocol_class),
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        loop = asyncio.get_running_loop()
        again = await loop.create_server(protocol, sock=listener, backlog=self.config.backlog)
        await stop_accepting(self.servers)
        self.servers = [again]


class SameUserProtocol(WatchedProtocol):
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
        self.app_state = {**self.app_state, CONNECTION: Connection.on(connection)}
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._is_refused:
            super().connection_lost(exc)


# -- one per home -------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def hold_lock(paths: Paths, *, stays_ended: bool = True) -> AsyncIterator[int]:
    """Be the one daemon of this home; the file says who that is.

    Args:
        paths: The home; its state directory is there.
        stays_ended: Whether the file says at the end that this daemon was stopped, so that
            commands which only look start no other one.

    Raises:
        AlreadyRunning: Names the holder and the socket.
    """
    held = os.environ.pop(HELD, None)
    flags = os.O_RDWR | os.O_CREAT
    descriptor = int(held) if held else os.open(paths.lock_file, flags, 0o600)
    os.set_inheritable(descriptor, False)
    try:
        await _locked(descriptor, paths.socket)
        _write(descriptor, daemon_record.own())
        try:
            yield descriptor
        finally:
            # The file stays: removing it would let two daemons lock two different files.
            over = daemon_record.own(has_ended=HELD not in os.environ) if stays_ended else None
            _write(descriptor, over)
    finally:
        os.close(descriptor)


async def _locked(descriptor: int, path: Path) -> None:
    """Take the lock, even if another process is just looking whether it is held.

    A daemon that holds it has written its name; while no living one has, the lock is asked for
    again.
    """
    loop = asyncio.get_running_loop()
    due = loop.time() + LOOKERS_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = daemon_record.parsed(os.pread(descriptor, daemon_record.RECORD_BYTES, 0))
            is_named = holder is not None and holder.is_alive and not holder.is_over
            if is_named or loop.time() >= due:
                raise already_running(holder, path) from error
        else:
            return
        await asyncio.sleep(LOOKERS_POLL_S)


def _write(descriptor: int, record: DaemonRecord | None) -> None:
    # Over what is there, and never shorter: a full disk takes that, too. The lock needs no name.
    with contextlib.suppress(OSError):
        os.pwrite(descriptor, daemon_record.written(record), 0)


# -- around it ----------------------------------------------------------------------------------


@contextlib.contextmanager
def stop_on_signals(stopping: asyncio.Event) -> Iterator[asyncio.Event]:
    """SIGTERM, SIGINT and SIGHUP set ``stopping``, and SIGHUP before that what this yields; outside
    the main thread signals are not ours to take.
    """
    anew = asyncio.Event()
    if threading.current_thread() is not threading.main_thread():
        yield anew
        return
    loop = asyncio.get_running_loop()

    def begin_anew() -> None:
        anew.set()
        stopping.set()

    # In a terminal it says that the terminal is gone, and asks for no other daemon.
    hung_up = stopping.set if os.isatty(0) else begin_anew
    takers = {signal.SIGTERM: stopping.set, signal.SIGINT: stopping.set, signal.SIGHUP: hung_up}
    for number, taker in takers.items():
        loop.add_signal_handler(number, taker)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, takers)
    try:
        yield anew
    finally:
        for number in takers:
            loop.remove_signal_handler(number)
