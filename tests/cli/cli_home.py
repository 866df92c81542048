"""A home of its own for real ``subagents`` processes, and a daemon that never outlives the test."""

import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec
from tests.live_processes import carrying, is_running

from subagents.__main__ import main
from subagents.cli import connection
from subagents.cli.command_table import commands, target_of
from subagents.cli.parser import declared
from subagents.client.daemon_start import holder
from subagents.config.paths import Paths

TIMEOUT_S: Final = 60
POLL_S: Final = 0.02


@dataclass(frozen=True)
class Done:
    """How one command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        """The one document on stdout; anything beside it makes this fail."""
        return msgspec.json.decode(self.out, type=dict[str, object])

    def rows(self, name: str) -> list[dict[str, Any]]:
        """A list in that document."""
        return msgspec.convert(self.json[name], list[dict[str, Any]])


@cache
def _imported() -> None:
    """What commands import is here before they are forked."""

    for each in commands():
        declared(target_of(each))


def forked(argv: Sequence[str], stdin: bytes, cwd: Path, environ: Mapping[str, str]) -> Done:
    """Run one command to its end, in a fork of this process.

    It is a process of its own, with its own pipes, directory, environment and globals, and need
    not start an interpreter and import everything anew, which is most of what a command costs.
    How that goes is what ``Home.start`` and tests of programs try.
    """
    _imported()
    (theirs_in, ours_in), (ours_out, theirs_out), (ours_err, theirs_err) = (
        os.pipe(), os.pipe(), os.pipe(),
    )  # fmt: skip
    with warnings.catch_warnings():
        # Python 3.12 warns of forks beside threads; pytest's own hold no lock that a command needs.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        for number, end in enumerate((theirs_in, theirs_out, theirs_err)):
            os.dup2(end, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        _be_command(argv, cwd, environ)
    for end in (theirs_in, theirs_out, theirs_err):
        os.close(end)
    with ThreadPoolExecutor(3) as pool:
        writing = pool.submit(_write, ours_in, stdin)
        reading = [pool.submit(_read, end) for end in (ours_out, ours_err)]
        try:
            out, err = (each.result(TIMEOUT_S) for each in reading)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        finally:
            _, status = os.waitpid(pid, 0)
        writing.result()
    return Done(os.waitstatus_to_exitcode(status), out.decode(), err.decode())


def _write(end: int, content: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(end, "wb") as pipe:
        pipe.write(content)


def _read(end: int) -> bytes:
    with os.fdopen(end, "rb") as pipe:
        return pipe.read()


def _be_command(argv: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> NoReturn:
    """In the fork: what a new process would have of its own, and the command."""
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environ)
        time.tzset()
        sys.argv = ["subagents", *argv]
        streams = [
            os.fdopen(0, encoding="utf-8"),
            os.fdopen(1, "w", encoding="utf-8"),
            os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace"),
        ]
        # A command may replace them; these must not be closed with the object that is left then.
        sys.stdin, sys.stdout, sys.stderr = streams
        connection.READER = os.urandom(16).hex()  # type: ignore[misc]
        code = main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001  a fork never goes on as a second pytest
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


@dataclass
class Home:
    """``SUBAGENTS_HOME`` below a temporary directory, and a working directory beside it."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict)
    started: "list[subprocess.Popen[str]]" = field(default_factory=list)

    @property
    def work(self) -> Path:
        return self.root / "work"

    def env(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        kept = {name: v for name, v in os.environ.items() if not name.startswith("SUBAGENTS_")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
        mine = {"SUBAGENTS_HOME": str(self.root / "h"), "PATH": path}
        return {**kept, **mine, **self.environ, **(more or {})}

    def start(
        self, *argv: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        """A command that goes on beside the test; killed at the latest when the home ends."""
        process = subprocess.Popen(
            [sys.executable, "-m", "subagents", *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.work,
            env=self.env(env),
        )
        self.started.append(process)
        assert process.stdin is not None
        with process.stdin, suppress(BrokenPipeError):
            process.stdin.write(stdin)
        process.stdin = None
        return process

    def cli(
        self, *argv: str, stdin: str | None = None, env: Mapping[str, str] | None = None
    ) -> Done:
        """Run one command to its end."""
        environ = self.env(env)
        if environ.get("PYTHONPATH") == os.environ.get("PYTHONPATH"):
            content = (stdin or "").encode(errors="surrogateescape")
            return forked(argv, content, self.work, environ)
        # What the interpreter itself is to find is found at its start only.
        done = subprocess.run(
            [sys.executable, "-m", "subagents", *argv],
            input=stdin or "",
            capture_output=True,
            text=True,
            cwd=self.work,
            env=environ,
            timeout=TIMEOUT_S,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def ok(
        self, *argv: str, stdin: str | None = None, env: Mapping[str, str] | None = None
    ) -> Done:
        """A command that must end with 0."""
        done = self.cli(*argv, stdin=stdin, env=env)
        assert done.code == 0, done
        return done

    def spawn(self, task: str, *flags: str) -> str:
        """Spawn and return the run's id."""
        return self.ok("spawn", task, *flags).out.strip()

    def field(self, run: str, name: str) -> object:
        """One field of a run's row."""
        return self.ok("list", "--now", run, "--json").json[name]

    def pid(self) -> int:
        """The daemon's process id."""
        found = holder(Paths.resolve(self.env()))
        assert found is not None
        return found.pid

    def kill_daemon(self) -> None:
        self._end(self.pid(), signal.SIGKILL)

    def down(self) -> None:
        """Stop the daemon, if there is one."""
        found = holder(Paths.resolve(self.env()))
        if found is not None:
            self._end(found.pid, signal.SIGTERM)

    def _end(self, pid: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        until(lambda: not is_running(pid), "the daemon is gone")


@contextmanager
def temporary_home(root: Path) -> Iterator[Home]:
    """A home below ``root``; nothing of it is alive at the end: no daemon, no worker."""
    home = Home(root)
    home.work.mkdir()
    try:
        yield home
    finally:
        for process in home.started:
            # Left to the collector, it would be the failure of whichever test runs then.
            process.kill()
            process.communicate()
        home.down()
        _end_workers_of(home)


def _end_workers_of(home: Home) -> None:
    """Workers outlive their daemon on purpose; they are found by the socket they were given."""
    for pid in carrying("SUBAGENTS_SOCKET", str(Paths.resolve(home.env()).socket)):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def until(holds: Callable[[], object], what: str, *, for_s: float = 40) -> None:
    """Look again and again until it holds; fail when the time is up."""
    due = time.monotonic() + for_s
    while not holds():
        assert time.monotonic() < due, f"waited in vain: {what}"
        time.sleep(POLL_S)


def gate(name: str) -> str:
    """Shell that continues once a file is there; the test decides when."""
    return f"until test -e {name}; do sleep 0.05; done"
