"""Starts shims from a small process of its own, so that each of them adopts the orphans below it.

A worker's process that lost its parent, left the session and cleaned its environment has no tie to
its attempt but one: Linux gives orphans to the nearest *child subreaper* above them. A process
becomes one by a call of its own that outlasts exec and is not inherited over fork, so the call
must come between the two. In a daemon with threads and 100 MB that is neither safe nor quick; here
it is both.

Run as a program, this file reads ``(argv, environment, working directory)`` again and again, and
answers each with a process id, or the negative number of an error. It ends with its input, and so
with the daemon. It needs the standard library only and starts without site packages.
"""

import atexit
import contextlib
import errno
import marshal
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO, Final, NoReturn

REAPS_VARIABLE: Final = "SUBAGENTS_SHIM_REAPS"
"""Tells a shim that it is a subreaper; the worker does not get it."""

_PR_SET_CHILD_SUBREAPER: Final = 36
_INTERPRETER_VARIABLES: Final = ("LD_", "DYLD_", "PYTHONHOME")
_ENDED: Final = (EOFError, BrokenPipeError, ValueError, TypeError)
"""What writing to, and reading from, a launcher that was killed raises."""


class Launcher:
    """The process that starts shims, started when it is first needed. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def start(self, argv: Sequence[bytes], env: Mapping[bytes, bytes], cwd: bytes) -> int:
        """Start a program in a session of its own, a subreaper where there are any; its pid.

        It may be started twice when the launcher was killed meanwhile. Nobody needs to wait for it.

        Raises:
            OSError: It cannot be started, or no launcher.
        """
        request = marshal.dumps((list(argv), dict(env), cwd))
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


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    make_subreaper = _subreaper()
    # Nobody waits for shims: their exit is in their files.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        try:
            argv, env, cwd = marshal.load(requests)  # noqa: S302
        except EOFError:
            return
        marshal.dump(_start(argv, env, cwd, make_subreaper), answers)
        answers.flush()


def _start(
    argv: list[bytes], env: dict[bytes, bytes], cwd: bytes, make_subreaper: Callable[[], bool]
) -> int:
    read_end, write_end = os.pipe()
    try:
        pid = os.fork()
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
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        # What ends the daemon's group passes it by, and its number finds its processes.
        os.setsid()
        if make_subreaper():
            env[REAPS_VARIABLE.encode()] = b"1"
        os.chdir(cwd)
        null = os.open("/dev/null", os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        os.execve(argv[0], argv, env)  # noqa: S606
    except OSError as error:
        os.write(tell, str(error.errno or errno.EIO).encode())
    finally:
        os._exit(127)


def _subreaper() -> Callable[[], bool]:
    """What makes the calling process adopt the orphans below it, and says whether it does."""
    try:
        import ctypes  # noqa: PLC0415  only here, and not in every Python

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return lambda: False
    return lambda: sys.platform == "linux" and prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
