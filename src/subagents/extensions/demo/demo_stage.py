"""The stage of every demo: where its story is told, its own daemon, and its end."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from subagents.cli import output
from subagents.cli.show import render
from subagents.client.client import Client
from subagents.client.daemon_start import ensure_daemon
from subagents.errors import DaemonUnreachable
from subagents.extensions.demo.demo_fleet import DemoDirectory
from subagents.process_identity import start_of

STOP_S: Final = 10.0


class Voice:
    """Where the story is told: stdout, or stderr when the document is on stdout."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._write = output.note if as_json else output.line

    def __call__(self, text: str = "") -> None:
        self._write(text)

    def heading(self, text: str) -> None:
        self("")
        if self.as_json:
            self(text)
        else:
            output.styled_line("", text, "bold")

    def mark(self, text: str, *, state: str) -> None:
        if self.as_json:
            self(f"  {render.icon(state)} {text}")
        else:
            output.styled_line(f" {text}", f"  {render.icon(state)}", state)


@contextmanager
def interruptible() -> Iterator[None]:
    """A closed terminal or a TERM ends the demo like Ctrl-C: with its daemon and its directory."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {each: signal.signal(each, interrupt) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def own_daemon(directory: DemoDirectory, *, keeps_running: bool) -> Iterator[Client]:
    """A daemon for this directory only; afterwards it is gone, whatever happened."""
    ensure_daemon(directory.paths, directory.environ(os.environ))
    with Client(directory.paths.socket) as client:
        try:
            yield client
        finally:
            if not keeps_running:
                _stop(client)


def _stop(client: Client) -> None:
    client.close()
    try:
        pid = client.get("/version").get("pid")
        client.post("/v1/shutdown")
    except DaemonUnreachable as error:
        output.note(f"subagents: the demo's daemon is gone already: {error.message}")
        return
    if isinstance(pid, int) and not await_end(pid):
        os.kill(pid, signal.SIGKILL)


def await_end(pid: int) -> bool:
    """Whether the process is gone within ten seconds."""
    due = time.monotonic() + STOP_S
    while start_of(pid) is not None:
        if time.monotonic() > due:
            return False
        time.sleep(0.02)
    return True
