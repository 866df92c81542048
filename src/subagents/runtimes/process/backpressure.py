"""Holds up a worker that writes faster than it is read, so that its output does not fill the disk.

No reader of its files could block it, as a pipe's would: all its processes are stopped (SIGSTOP)
until most of what it wrote is read, and lose nothing by it. Without a daemon nothing holds it up; a
daemon that adopts a worker that was being held lets it continue first.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from subagents.runtimes.process.processes import (
    Census,
    Identity,
    Marker,
    identity_of,
    members,
    send,
)

UNREAD_BYTES_MAX: Final = 64 * 1024 * 1024
"""How far a worker may be ahead of its reader where the disk has room for it."""
FREE_SHARE: Final = 4
"""The divisor of what is free: a worker may be ahead by no more than that part of it."""
UNREAD_BYTES_MIN: Final = 1024 * 1024
"""How far ahead it may always be, however little is free."""
GOES_ON_AT: Final = 4
"""The divisor of what it is allowed: a held worker continues when no more than that is unread."""
HELD: Final = "held"
"""A file in the attempt's directory while its worker is held."""
FROZEN: Final = "frozen"
"""The same while somebody else has stopped it: it goes on when neither is there."""


class Backpressure:
    """Holds up one worker while its output is read; ``look`` is called when that may have grown.

    Args:
        marker: Marks its processes.
        directory: The directory of the attempt.
        shim: Its shim, which is never stopped.
        unread: How many bytes it wrote that were not read yet.
        census: Looks at all processes.
    """

    def __init__(
        self,
        marker: Marker,
        directory: Path,
        shim: Callable[[], Identity | None],
        unread: Callable[[], int],
        census: Census,
    ) -> None:
        self._marker, self._directory, self._shim = marker, directory, shim
        self._unread, self._census = unread, census
        self._stopped: set[Identity] = set()
        self._holding: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Hold the worker up, or let it go on, as its unread output asks for. Microseconds."""
        unread = self._unread()
        if self._holding is None:
            if unread > UNREAD_BYTES_MIN and unread > self._allowed():
                self._holding = asyncio.get_running_loop().create_task(self._hold())
        elif self._holding.done() and unread <= self._allowed() // GOES_ON_AT:
            self.let_go()

    def _allowed(self) -> int:
        found = os.statvfs(self._directory)
        share = found.f_bavail * found.f_frsize // FREE_SHARE
        return max(min(UNREAD_BYTES_MAX, share), UNREAD_BYTES_MIN)

    async def _hold(self) -> None:
        # Without the record where nothing can be written any more: that is when holding counts.
        with contextlib.suppress(OSError):
            (self._directory / HELD).touch()
        while True:
            found = await self._members()
            if found <= self._stopped:
                return
            # What a process started before it was stopped is found by the next look.
            for each in found - self._stopped:
                send(each, signal.SIGSTOP)
            self._stopped |= found

    def let_go(self) -> None:
        """Let the worker continue, if it was held. Idempotent."""
        if self._holding is None:
            return
        self._holding.cancel()
        self._holding = None
        self._go_on(self._stopped)
        self._stopped.clear()

    async def take_over(self) -> None:
        """Let a worker continue that an earlier daemon held."""
        if (self._directory / HELD).exists():
            self._go_on(await self._members())

    def _go_on(self, stopped: Iterable[Identity]) -> None:
        if not (self._directory / FROZEN).exists():
            for each in stopped:
                send(each, signal.SIGCONT)
        (self._directory / HELD).unlink(missing_ok=True)

    async def _members(self) -> set[Identity]:
        found = members(await self._census.take(), self._marker, shim=self._shim())
        return {identity_of(each) for each in found}
