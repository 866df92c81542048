"""Starts the daemon of a home: once, also when many ask at once, and says why it did not start.

Hosts end what they started: by walking from parents to children (opencode at its exit), by process
group or session, or by a variable that every process of theirs carries (Jenkins). The daemon is
none of theirs. A process that ends at once starts it, so that it has no parent among them; it leads
a session of its own; its environment comes through a pipe, so that ``/proc`` shows no variable by
which anybody would take it for theirs; and where systemd manages the user's session it gets a scope
of its own, so that the end of a service or a login does not end it.
"""

import fcntl
import os
import select
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NoReturn, Self

import msgspec

from subagents.client.client import Client
from subagents.config import daemon_record
from subagents.config.daemon_record import DaemonRecord
from subagents.config.former_sockets import former_sockets, link
from subagents.config.paths import Paths
from subagents.errors import DaemonUnreachable
from subagents.process_identity import UNKNOWN

START_TIMEOUT_S: Final = 30.0
START_POLL_S: Final = 0.02
ELSEWHERE_S: Final = 6.0
"""How long a daemon in another container of this machine may take to answer: one whose socket was
removed makes it again within five seconds."""
LOG_TAIL_BYTES: Final = 4096

_WORKER_VARIABLES: Final = (
    "SUBAGENTS_ATTEMPT",
    "SUBAGENTS_ATTEMPTS_DIR",
    "SUBAGENTS_RUN_ID",
    "SUBAGENTS_SESSION_KEY",
    "SUBAGENTS_SOCKET",
    "SUBAGENTS_TOKEN",
    "SUBAGENTS_TURN",
)
"""Variables that a daemon is started without: one that a worker's command happens to start belongs
to the user, not to that run."""
_STARTER: Final = (
    "import os, sys; os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, setsid=True)"
)
"""What the process between us and the daemon does."""
_SEEN: Final = (
    "HOME", "LANG", "LC_", "LD_", "DYLD_", "PATH", "PYTHON", "TZ",
    "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "SUBAGENTS_HOME",
)  # fmt: skip
"""Prefixes of what the interpreter and systemd look at before the environment is handed over."""
_SCOPE: Final = (
    *("systemd-run", "--user", "--scope", "--quiet", "--collect"),
    "--property=Delegate=yes",
)
"""Delegated: each worker gets a cgroup of its own below."""
_SCOPE_TIMEOUT_S: Final = 3.0
_OWN_NAME: Final = "subagents: "
_HINT: Final = "  hint: "
"""How the command line ends its last words about an error."""


def answers(socket_path: Path | str) -> bool:
    """Whether a daemon answers there now; waits two seconds at most."""
    with Client(socket_path, timeout_s=2.0) as client:
        try:
            client.get("/healthz")
        except DaemonUnreachable:
            return False
        return True


def ensure_daemon(paths: Paths, environ: Mapping[str, str] | None = None) -> bool:
    """Start the daemon of this home unless one answers; many at once start one.

    Args:
        paths: The home; its directories are created.
        environ: For the daemon, the process's own when None; less what makes a worker of it.

    Returns:
        Whether this call started it.

    Raises:
        DaemonUnreachable: It did not answer within 30 seconds, or ended at once; the message has
            the end of its log. Or it is at work elsewhere, on the same directories.
        ConfigError: A directory cannot be made.
    """
    if answers(paths.socket) or finds_former(paths):
        return False
    paths.ensure()
    begun = time.monotonic()
    due = begun + START_TIMEOUT_S
    with _start_lock(paths, due):
        while not answers(paths.socket):
            # One whose socket file was removed makes it again by itself; a second could not start.
            found = holder(paths)
            if found is None:
                break
            _require_in_reach(paths, found, waited_s=time.monotonic() - begun)
            if time.monotonic() > due:
                _does_not_answer(found)
            time.sleep(START_POLL_S)
        else:
            return False
        with _start(paths, dict(os.environ if environ is None else environ)) as daemon:
            while not answers(paths.socket):
                # It also ends at once when there is one that is only slow to answer.
                has_ended = daemon.has_ended() and not _is_owned(paths)
                if has_ended or time.monotonic() > due:
                    _did_not_start(paths, has_ended=has_ended)
                time.sleep(START_POLL_S)
    return True


@contextmanager
def _start_lock(paths: Paths, due: float) -> Iterator[None]:
    try:
        lock = (paths.state_dir / "start.lock").open("ab")
    except OSError as error:
        raise _cannot_start(error) from error
    with lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # Whoever holds it is starting one; two seconds more, so that it fails first.
                if time.monotonic() > due + 2:
                    _did_not_start(paths, has_ended=False)
                time.sleep(START_POLL_S)
            else:
                break
        yield


class _Starting:
    """A daemon that was started and is not our child: its standard input shows when it ended.

    Args:
        pipe: The end to write to; closed by ``__exit__``.
    """

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._poll = select.poll()
        self._poll.register(pipe, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._pipe)

    def has_ended(self) -> bool:
        """Whether the other end is closed: no process reads it any more."""
        return bool(self._poll.poll(0))

    def hand_over(self, environ: Mapping[str, str]) -> None:
        """Write the environment; a daemon that ended meanwhile takes none."""
        variables = (os.fsencode(f"{name}={value}") for name, value in environ.items())
        with suppress(BrokenPipeError), os.fdopen(self._pipe, "wb", closefd=False) as pipe:
            pipe.write(b"".join(each + b"\0" for each in variables) + b"\0")


def _start(paths: Paths, environ: dict[str, str]) -> _Starting:
    import subprocess  # noqa: PLC0415

    for name in _WORKER_VARIABLES:
        environ.pop(name, None)
    if environ.get("SUBAGENTS_HOME"):
        # It may be relative, and the daemon works in /.
        environ["SUBAGENTS_HOME"] = str(paths.state_dir.parent)
    seen = {name: value for name, value in environ.items() if name.startswith(_SEEN)}
    daemon = [sys.executable, "-m", "subagents", "serve", "--background-child"]
    try:
        log = os.open(paths.log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _cannot_start(error) from error
    theirs, ours = os.pipe()
    try:
        for scope in _scopes(environ):
            # Where systemd does not do it in time, the next way is tried, at last without systemd.
            with suppress(OSError, subprocess.TimeoutExpired):
                done = subprocess.run(
                    [*scope, sys.executable, "-S", "-c", _STARTER, *daemon],
                    check=False,
                    stdin=theirs,
                    stdout=log,
                    stderr=log,
                    cwd="/",  # or it would keep the file system of its caller's directory busy
                    env=seen,
                    start_new_session=True,
                    timeout=_SCOPE_TIMEOUT_S if scope else None,
                )
                if done.returncode == 0:
                    break
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
        os.close(log)
    starting = _Starting(ours)
    starting.hand_over(environ)
    return starting


def _scopes(environ: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """What to put before the command, the best first; at last nothing."""
    if Path(environ.get("XDG_RUNTIME_DIR") or "/nowhere", "systemd", "private").exists():
        # One worker without memory must not stop them all; before systemd 253 it never did.
        yield (*_SCOPE, "--property=OOMPolicy=continue")
        yield _SCOPE
    yield ()


def take_environment() -> None:
    """In a daemon that was started here: read its environment from standard input.

    One that was started otherwise finds nothing there, and keeps what it has.

    Raises:
        DaemonUnreachable: Whoever started it was killed before all of it was written.
    """
    read = b""
    # Each variable ends with a NUL, and all of them with one more (`_Starting.hand_over`).
    while not (read == b"\0" or read.endswith(b"\0\0")):
        more = os.read(0, 65536)
        if not more and not read:
            return
        if not more:
            raise DaemonUnreachable(
                "whoever started this daemon was killed meanwhile", hint="start it: subagents up"
            )
        read += more
    os.environ.clear()
    for each in filter(None, read.split(b"\0")):
        name, _, value = each.partition(b"=")
        os.environb[name] = value


def revive(paths: Paths, environ: Mapping[str, str] | None = None) -> bool:
    """Start the daemon of this home again if it crashed; one that was told to stop stays so.

    Args:
        paths: The home.
        environ: See ``ensure_daemon``.

    Returns:
        Whether one answers now.

    Raises:
        DaemonUnreachable: As ``ensure_daemon``.
    """
    # One that was asked to stop removes its socket first, and holds its home for a moment more.
    if not paths.socket.exists():
        return False
    ensure_daemon(paths, environ)
    return True


def holder(paths: Paths) -> DaemonRecord | None:
    """The daemon that holds this home, answering or not, here or elsewhere; None = there is none.

    Only one that ``is_alive`` may be signalled by its number.
    """
    found = daemon_record.read(paths.lock_file)
    return found if found is not None and not found.is_over and _is_owned(paths) else None


def finds_former(paths: Paths) -> bool:
    """Whether a daemon of a version up to 0.2 answers where it listened; from now on it is found
    where it should be.
    """
    found = daemon_record.read(paths.lock_file)
    if found is None or found.boot != UNKNOWN:
        return False
    for place in former_sockets(paths, os.environ):
        if not paths.socket.exists() and answers(place):
            paths.ensure()
            link(paths.socket, place)
            return True
    return False


def was_told_to_stop(paths: Paths) -> bool:
    """Whether the last daemon of this home was told to stop, since this machine was started."""
    found = daemon_record.read(paths.lock_file)
    return found is not None and found.has_ended and found.is_here


def was_killed(paths: Paths) -> bool:
    """Whether the last daemon of this home ended without being told to, since this boot."""
    found = daemon_record.read(paths.lock_file)
    return found is not None and not found.has_ended and found.is_here and not found.is_alive


def _require_in_reach(paths: Paths, found: DaemonRecord, *, waited_s: float) -> None:
    """Refuse to wait for a daemon that cannot be reached from here.

    Raises:
        DaemonUnreachable: Another machine has it, or a container that shares the state directory
            and not the socket.
    """
    is_known = found.boot != UNKNOWN  # an earlier version does not say where it is
    may_come = not found.is_on_other_machine and waited_s < ELSEWHERE_S
    if found.is_here or may_come or not is_known:
        return
    raise DaemonUnreachable(
        f"the daemon of this home is at work elsewhere ({found.words}) and cannot be reached here",
        hint="run the command there, stop it there (subagents down), or set SUBAGENTS_HOME to a"
        " directory that is not shared",
        details={"socket": str(paths.socket), "pid": found.pid, "host": found.host},
        is_lasting=True,
    )


def _does_not_answer(found: DaemonRecord) -> NoReturn:
    raise DaemonUnreachable(
        f"the daemon ({found.words}) holds this home and has not answered for"
        f" {START_TIMEOUT_S:.0f} s",
        hint="see what it does: subagents doctor; stop it: subagents down",
        details={"pid": found.pid},
    )


def _is_owned(paths: Paths) -> bool:
    """Whether somebody holds this home.

    It tries the same lock, for a moment: a daemon that starts then asks for it again.
    """
    try:
        lock = paths.lock_file.open("rb")
    except OSError:
        return False
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _cannot_start(error: OSError) -> DaemonUnreachable:
    return DaemonUnreachable(
        f"the daemon cannot be started: {error.filename}: {error.strerror}",
        hint="make room or set SUBAGENTS_HOME to a directory you can write to",
    )


def _did_not_start(paths: Paths, *, has_ended: bool) -> NoReturn:
    so_far = "ended at its start" if has_ended else f"has not started after {START_TIMEOUT_S:.0f} s"
    lines = log_tail(paths.log_file).strip().splitlines()
    messages = [line for line in lines if not line.startswith(_HINT)]
    hints = [line.removeprefix(_HINT) for line in lines[-1:] if line.startswith(_HINT)]
    said = ": " if has_ended else "; the last it said: "
    last = f"{said}{log_message(messages[-1]).removeprefix(_OWN_NAME)}" if messages else ""
    where = f"read {paths.log_file}, or run it in the foreground: subagents serve"
    raise DaemonUnreachable(
        f"the daemon {so_far}{last}",
        hint=hints[0] if hints else where,
        details={"log": str(paths.log_file), "tail": lines[-10:]},
    )


def log_message(line: str) -> str:
    """What a line of the daemon's log says; what it did not log itself stands as it is."""
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return line
    return str(found["message"]) if isinstance(found, dict) and "message" in found else line


def log_tail(file: Path) -> str:
    """The last 4 KiB of a log, "" when there is none."""
    try:
        with file.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - LOG_TAIL_BYTES))
            return log.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
