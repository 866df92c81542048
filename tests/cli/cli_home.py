"""A home of its own for real ``subagents`` processes, and a daemon that never outlives the test."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.live_processes import carrying, is_running

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


@dataclass
class Home:
    """``SUBAGENTS_HOME`` below a temporary directory, and a working directory beside it."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        return self.root / "work"

    def env(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        kept = {name: v for name, v in os.environ.items() if not name.startswith("SUBAGENTS_")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
        mine = {"SUBAGENTS_HOME": str(self.root / "h"), "PATH": path}
        return {**kept, **mine, **self.environ, **(more or {})}

    def start(self, *argv: str, env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "subagents", *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.work,
            env=self.env(env),
        )

    def cli(
        self, *argv: str, stdin: str | None = None, env: Mapping[str, str] | None = None
    ) -> Done:
        """Run one command to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "subagents", *argv],
            input=stdin or "",
            capture_output=True,
            text=True,
            cwd=self.work,
            env=self.env(env),
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
        return self.ok("status", run, "--json").json[name]

    def pid(self) -> int:
        """The daemon's process id."""
        found = holder(Paths.resolve(self.env()))
        assert found is not None
        return found

    def kill_daemon(self) -> None:
        self._end(self.pid(), signal.SIGKILL)

    def down(self) -> None:
        """Stop the daemon, if there is one."""
        pid = holder(Paths.resolve(self.env()))
        if pid is not None:
            self._end(pid, signal.SIGTERM)

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
