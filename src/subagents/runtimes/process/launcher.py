"""Starts shims from a small process of its own, so that each of them adopts the orphans below it.

A worker's process that lost its parent, left the session and cleaned its environment has no tie to
its attempt but one: Linux gives orphans to the nearest *child subreaper* above them. A process
becomes one by a call of its own that outlasts exec and is not inherited over fork, so the call
must come between the two. In a daemon with threads and 100 MB that is neither safe nor quick; here
it is both.

Where there are cgroups (``cgroups.py``) the shim is born in that of its attempt: a process that
wrote itself into it instead would wait for 10 to 20 ms, until all processors took notice.

Run as a program, this file reads ``(argv, environment, working directory, cgroup)`` again and
again, and answers each with a process id, or the negative number of an error. It ends with its
input, and so with the daemon. It needs the standard library only and starts without site packages.
"""

import atexit
import contextlib
import errno
import marshal
import os
import resource
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO, Final, NoReturn

REAPS_VARIABLE: Final = "SUBAGENTS_SHIM_REAPS"
"""Tells a shim that it is a subreaper; the worker does not get it."""
SETTINGS_VARIABLE: Final = "SUBAGENTS_SHIM_SETTINGS"
"""Tells us how the shim and its worker are to run (``ProcessSettings.line``)."""
UMASK_VARIABLE: Final = "SUBAGENTS_SHIM_UMASK"
FILE_BLOCKS_VARIABLE: Final = "SUBAGENTS_SHIM_FILE_BLOCKS"

_PR_SET_CHILD_SUBREAPER: Final = 36
_CLONE3: Final = 435
_CLONE_INTO_CGROUP: Final = 0x200000000
_CLONE_ARGUMENTS: Final = struct.Struct("11Q")
"""``struct clone_args``; the fifth is the signal at its end, the last one the cgroup."""
_INTERPRETER_VARIABLES: Final = ("LD_", "DYLD_", "PYTHONHOME")
_UNLIMITED: Final = -1
_BLOCK_BYTES: Final = 512
"""The unit of ``ulimit -f``."""
_ENDED: Final = (EOFError, BrokenPipeError, ValueError, TypeError)
"""What writing to, and reading from, a launcher that was killed raises."""


class Launcher:
    """The process that starts shims, started when it is first needed. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def start(
        self,
        argv: Sequence[bytes],
        env: Mapping[bytes, bytes],
        cwd: bytes,
        *,
        cgroup: bytes | None = None,
    ) -> int:
        """Start a program as leader of a session, and subreaper where there are any; its pid.

        It may be started twice when the launcher was killed meanwhile. It need not be waited for.

        Args:
            argv: The program, an absolute path, and its arguments.
            env: Its whole environment.
            cwd: The directory in which it works.
            cgroup: The directory of the cgroup that it is in from its first moment; None = ours.

        Raises:
            OSError: It cannot be started, or not there, or no launcher.
        """
        request = marshal.dumps((list(argv), dict(env), cwd, cgroup))
        with self._lock:
            try:
                answer = self._ask(request)
            except _ENDED:
                self._close()
                try:
                    answer = self._ask(request)
                except _ENDED as error:
                    self._close()
                    raise OSError(errno.ECHILD, "the process that starts them ended") from error
        if answer < 0:
            raise OSError(-answer, os.strerror(-answer))
        return answer

    def close(self) -> None:
        """End the launcher; what it started goes on. The next start starts another one."""
        with self._lock:
            self._close()

    def _ask(self, request: bytes) -> int:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-S", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={k: v for k, v in os.environ.items() if k.startswith(_INTERPRETER_VARIABLES)},
                cwd="/",
                start_new_session=True,
            )
        requests, answers = self._process.stdin, self._process.stdout
        if requests is None or answers is None:
            raise EOFError
        requests.write(request)
        requests.flush()
        return int(marshal.load(answers))  # noqa: S302  both ends are this file

    def _close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(BrokenPipeError):
            process.communicate()


LAUNCHER: Final = Launcher()
"""One for all runtimes of a daemon."""


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    libc = _libc()
    make_subreaper = _subreaper(libc)
    # Nobody waits for shims: their exit is in their files.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        try:
            argv, env, cwd, cgroup = marshal.load(requests)  # noqa: S302
        except EOFError:
            return
        marshal.dump(_start(argv, env, cwd, make_subreaper, partial(_fork, libc, cgroup)), answers)
        answers.flush()


def _start(
    argv: list[bytes],
    env: dict[bytes, bytes],
    cwd: bytes,
    make_subreaper: Callable[[], bool],
    fork: Callable[[], int],
) -> int:
    read_end, write_end = os.pipe()
    try:
        pid = fork()
    except OSError as error:
        os.close(write_end)
        os.close(read_end)
        return -(error.errno or errno.EAGAIN)
    if pid == 0:
        _become(argv, env, cwd, make_subreaper, write_end)
    os.close(write_end)
    # It closes with the exec; before that only an error is written.
    failed = os.read(read_end, 16)
    os.close(read_end)
    return -int(failed) if failed else pid


def _become(
    argv: list[bytes],
    env: dict[bytes, bytes],
    cwd: bytes,
    make_subreaper: Callable[[], bool],
    tell: int,
) -> NoReturn:
    try:
        # Those that Python ignores, and those that whoever started the daemon did (nohup).
        for number in signal.valid_signals():
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        # What ends the daemon's group passes it by, and its number finds its processes.
        os.setsid()
        if make_subreaper():
            env[REAPS_VARIABLE.encode()] = b"1"
        settings = env.pop(SETTINGS_VARIABLE.encode(), None)
        if settings is not None:
            left = _take_on(settings.decode())
            env.update((name.encode(), value.encode()) for name, value in left.items())
        os.chdir(cwd)
        null = os.open("/dev/null", os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        os.execve(argv[0], argv, env)  # noqa: S606
    except OSError as error:
        os.write(tell, str(error.errno or errno.EIO).encode())
    finally:
        os._exit(127)


def _take_on(text: str) -> dict[str, str]:
    """Make this process run by ``ProcessSettings.line``, as far as it may.

    Returns:
        What a shim must do itself, as its variables: it writes files that we read, and has to
        record the end of a worker that may write no more.
    """
    given = dict(word.split("=", 1) for word in text.split())
    left = {UMASK_VARIABLE: given.pop("umask")}
    with contextlib.suppress(OSError, ValueError):
        os.setpriority(os.PRIO_PROCESS, 0, int(given.pop("priority")))
    processors = given.pop("processors", "")
    if processors and hasattr(os, "sched_setaffinity"):
        # None of them may be here: another machine, or another cgroup.
        with contextlib.suppress(OSError, ValueError):
            os.sched_setaffinity(0, map(int, processors.split(",")))
    for name, pair in given.items():
        soft, hard = (int(each) for each in pair.split(":"))
        if name != "fsize":
            _limit(name, soft, hard)
        elif soft != _UNLIMITED:
            left[FILE_BLOCKS_VARIABLE] = str(soft // _BLOCK_BYTES)
    return left


def _limit(name: str, soft: int, hard: int) -> None:
    number = getattr(resource, f"RLIMIT_{name.upper()}", None)
    if number is None:
        return
    with contextlib.suppress(OSError, ValueError):
        _, most = resource.getrlimit(number)
        try:
            resource.setrlimit(number, (soft, hard))
        except (OSError, ValueError):
            lower = _lower(hard, most)
            resource.setrlimit(number, (_lower(soft, lower), lower))


def _lower(one: int, other: int) -> int:
    return min((each for each in (one, other) if each != _UNLIMITED), default=_UNLIMITED)


def _fork(libc: Any, cgroup: bytes | None) -> int:
    """As ``os.fork``, into that cgroup.

    Raises:
        OSError: Also when it cannot be entered.
    """
    if cgroup is None:
        return os.fork()
    if libc is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    directory = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        packed = _CLONE_ARGUMENTS.pack(
            _CLONE_INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, directory
        )
        # There is no second thread here, whose locks the child would find held for ever.
        pid = int(libc.syscall(_CLONE3, packed, len(packed)))
    finally:
        os.close(directory)
    if pid < 0:
        number = _errno()
        raise OSError(number, os.strerror(number))
    return pid


def _libc() -> Any:
    """The C library, by functions that keep the interpreter's lock; None = not to be had."""
    with contextlib.suppress(ImportError, OSError):
        import ctypes  # noqa: PLC0415  only here, and not in every Python

        return ctypes.PyDLL(None, use_errno=True)
    return None


def _errno() -> int:
    import ctypes  # noqa: PLC0415

    return ctypes.get_errno()


def _subreaper(libc: Any) -> Callable[[], bool]:
    """What makes the calling process adopt the orphans below it, and says whether it does."""
    prctl = getattr(libc, "prctl", None) if sys.platform == "linux" else None
    if prctl is None:
        return lambda: False
    return lambda: bool(prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
