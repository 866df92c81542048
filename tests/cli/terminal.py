"""A command on a pseudo-terminal, which a test types into."""

import contextlib
import math
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from tests.cli.cli_home import Home

BOUND_S: Final = 90


class Terminal:
    """A command on a pseudo-terminal, typed into by hand."""

    def __init__(self, home: Home, *argv: str, env: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "subagents", *argv],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=home.work,
            env=home.env({"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30", **env}),
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def interrupt(self, *texts: str) -> None:
        """Press Ctrl-C, again after five seconds, until these are shown.

        It is no key here, for this is no process's controlling terminal. And Python's line editor
        may miss a signal between its prompt and its wait for a key.
        """
        due = time.monotonic() + BOUND_S
        pressed = -math.inf
        while not all(text in self.shown for text in texts):
            now = time.monotonic()
            assert now < due, self.shown
            if now > pressed + 5 and self._process.poll() is None:
                self._process.send_signal(signal.SIGINT)
                pressed = now
            self._read()

    def until(self, *texts: str) -> None:
        """Read on until all of these are shown."""
        due = time.monotonic() + BOUND_S
        while not all(text in self.shown for text in texts):
            assert time.monotonic() < due, self.shown
            self._read()

    def _read(self) -> bool:
        """Take what is there, or comes soon; whether there was anything."""
        ready, _, _ = select.select([self._ours], [], [], 0.1)
        if not ready:
            return False
        try:
            self.shown += os.read(self._ours, 65536).decode(errors="replace")
        except OSError:  # the other end is closed: this is how a terminal says end of file
            return False
        return True

    @property
    def lines(self) -> list[str]:
        """What was shown, without colours and cursor movements."""
        return re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", self.shown).replace("\r", "\n").split("\n")

    def code(self) -> int:
        """Its exit code, once it ended by itself."""
        due = time.monotonic() + BOUND_S
        while self._process.poll() is None:
            assert time.monotonic() < due, self.shown
            self._read()
        while self._read():
            pass
        return self._process.returncode

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)


@contextlib.contextmanager
def terminal(
    home: Home, *argv: str, env: Mapping[str, str] = MappingProxyType({"NO_COLOR": "1"})
) -> Iterator[Terminal]:
    """Run a command on one; ``env`` is set besides the size and kind of the terminal."""
    found = Terminal(home, *argv, env=env)
    try:
        yield found
    finally:
        found.close()
