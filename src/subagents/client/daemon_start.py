"""Starts the daemon of a home: once, also when many ask at once, and says why it did not start."""

import fcntl
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from subagents.client.client import Client
from subagents.config.paths import Paths
from subagents.errors import DaemonUnreachable

if TYPE_CHECKING:
    import subprocess

START_TIMEOUT_S: Final = 10.0
START_POLL_S: Final = 0.02
LOG_TAIL_BYTES: Final = 4096

_WORKER_VARIABLES: Final = (
    "SUBAGENTS_RUN_ID",
    "SUBAGENTS_SESSION_KEY",
    "SUBAGENTS_SOCKET",
    "SUBAGENTS_TOKEN",
)
"""A daemon that a worker's command happens to start belongs to the user, not to that run."""
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
        DaemonUnreachable: It did not answer within ten seconds, or ended at once; the message has
            the end of its log.
        ConfigError: A directory cannot be made.
    """
    if answers(paths.socket):
        return False
    import threading  # noqa: PLC0415

    paths.ensure()
    due = time.monotonic() + START_TIMEOUT_S
    with _start_lock(paths, due):
        if answers(paths.socket):
            return False
        process = _start(paths, dict(os.environ if environ is None else environ))
        while not answers(paths.socket):
            # It also ends at once when there is one that is only slow to answer.
            has_ended = process.poll() is not None and not _is_owned(paths)
            if has_ended or time.monotonic() > due:
                _did_not_start(paths, process.poll())
            time.sleep(START_POLL_S)
    # Nobody asks for its exit status, but a long-lived caller must not keep it as a zombie.
    threading.Thread(target=process.wait, name="daemon-reaper", daemon=True).start()
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
                    _did_not_start(paths, None)
                time.sleep(START_POLL_S)
            else:
                break
        yield


def _start(paths: Paths, environ: dict[str, str]) -> "subprocess.Popen[bytes]":
    import subprocess  # noqa: PLC0415

    for name in _WORKER_VARIABLES:
        environ.pop(name, None)
    if environ.get("SUBAGENTS_HOME"):
        # It may be relative, and the daemon works in /.
        environ["SUBAGENTS_HOME"] = str(paths.state_dir.parent)
    try:
        log = os.open(paths.log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _cannot_start(error) from error
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "subagents", "serve", "--background-child"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=environ,
            start_new_session=True,
        )
    finally:
        os.close(log)


def _is_owned(paths: Paths) -> bool:
    """Whether a daemon holds this home. Asked only after ours ended: it tries the same lock."""
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


def _did_not_start(paths: Paths, status: int | None) -> NoReturn:
    ended = "in time" if status is None else f"and ended with status {status}"
    lines = log_tail(paths.log_file).strip().splitlines()
    said = [line for line in lines if not line.startswith(_HINT)]
    hints = [line.removeprefix(_HINT) for line in lines[-1:] if line.startswith(_HINT)]
    last = f": {log_message(said[-1]).removeprefix(_OWN_NAME)}" if said else ""
    where = f"read {paths.log_file}, or run it in the foreground: subagents serve"
    raise DaemonUnreachable(
        f"the daemon did not start {ended}{last}",
        hint=hints[0] if hints else where,
        details={"log": str(paths.log_file), "tail": lines[-10:]},
    )


def log_message(line: str) -> str:
    """What a line of the daemon's log says; what it did not log itself stands as it is."""
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError:
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
