"""Holds up a worker that writes faster than it is read, so that its output does not fill the disk.

Its files have no reader that could block it, as a pipe's would: all its processes are stopped
(SIGSTOP) until most of what it wrote is read, and lose nothing by it. While no daemon is there
nobody holds it up; whoever adopts a worker that was being held lets it go on first.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
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
"""How far a worker may be ahead of its reader, where the disk has room for it …"""
FREE_SHARE: Final = 4
"""… and by no more than this part of what is free, which is one in so many …"""
UNREAD_BYTES_MIN: Final = 1024 * 1024
"""… and always by so much, however little is free."""
GOES_ON_AT: Final = 4
"""A held worker goes on when no more than one in so many of its allowed bytes is unread."""
RECORD: Final = "held"
"""A file in the attempt's directory while its worker is held."""


class Backpressure:
    """Of one worker, while its output is read; ``look`` is called when it may have grown.

    Args:
        marker: By which its processes are known.
        directory: Of the attempt.
        shim: Its shim, which is never stopped.
        unread: How many bytes it wrote that nobody read yet.
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
        # Where nothing can be written any more it is all the more to be held.
        with contextlib.suppress(OSError):
            (self._directory / RECORD).touch()
        while True:
            found = await self._members()
            if found <= self._stopped:
                return
            # What a process started before it was stopped is found by the next look.
            for each in found - self._stopped:
                send(each, signal.SIGSTOP)
            self._stopped |= found

    def let_go(self) -> None:
        """The worker goes on, if it was held. Idempotent."""
        if self._holding is None:
            return
        self._holding.cancel()
        self._holding = None
        for each in self._stopped:
            send(each, signal.SIGCONT)
        self._stopped.clear()
        (self._directory / RECORD).unlink(missing_ok=True)

    async def take_over(self) -> None:
        """Let a worker go on that a daemon held which is gone."""
        record = self._directory / RECORD
        if not record.exists():
            return
        for each in await self._members():
            send(each, signal.SIGCONT)
        record.unlink(missing_ok=True)

    async def _members(self) -> set[Identity]:
        found = members(await self._census.take(), self._marker, shim=self._shim())
        return {identity_of(each) for each in found}
