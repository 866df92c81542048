"""The daemon as the bridge sees it: where it is, who we are to it, and how it is brought back."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final

from subagents.client.transport import Absence, Gone
from subagents.errors import DaemonUnreachable

RECONNECT_POLL_S: Final = 0.05
SILENCE_S: Final = 60.0
"""How long a daemon may send nothing before it is taken for dead; it does every 15 s at least."""


class Daemon:
    """The daemon that is spoken to."""

    def __init__(
        self,
        socket_path: str,
        headers: Mapping[str, str],
        start: Callable[[], None] | None,
        limits: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """
        Args:
            socket_path: Its Unix socket.
            headers: Who calls: session, token, working directory.
            start: Starts it unless one answers; None inside a worker, whose daemon is not ours.
            limits: Headers that say what the client may do itself; asked for each call of a tool.
        """
        self.socket_path = socket_path
        self.headers = dict(headers)
        self._start = start
        self.problem = ""
        """Why the last start failed."""
        self.limits = limits

    def come_back(self, gone: Gone, absence: Absence, *, may_have_acted: bool) -> bool:
        """Have it there again, or wait a moment for it; False = away for too long, or for good.

        A daemon that was stopped on purpose (its socket is gone) is started by new calls only,
        not by those that it left unanswered.
        """
        if not absence.goes_on(was_there=gone.was_there):
            return False
        # One that was killed leaves its socket behind, one that was stopped removes it.
        was_stopped = may_have_acted and not os.path.exists(self.socket_path)  # noqa: PTH110
        if self._start is not None and not was_stopped:
            self.problem = ""
            try:
                self._start()
            except DaemonUnreachable as error:
                say(error.message)
                self.problem = error.message
                if error.is_lasting:
                    return False
        time.sleep(RECONNECT_POLL_S)
        return True


def say(text: str) -> None:
    """A note for the client's log."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"subagents mcp: {text}\n")
