"""What the daemon reports to systemd: sd_notify(3), for units with ``Type=notify``.

https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator
from typing import Final

log = logging.getLogger(__name__)

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
RELOADING: Final = "RELOADING=1"
ALIVE: Final = "WATCHDOG=1"


def tell(state: str) -> None:
    """Say one thing; nothing happens without NOTIFY_SOCKET."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    # A leading @ is systemd's spelling of an abstract socket.
    target = f"\0{address[1:]}" if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifier:
        notifier.setblocking(False)
        try:
            notifier.sendto(state.encode(), target)
        except OSError as error:
            log.warning("the service manager at %s does not listen: %s", address, error)


def interval_s() -> float | None:
    """How often it wants to hear that we are alive: twice in its time; None = it does not."""
    for_whom = os.environ.get("WATCHDOG_PID", "")
    if for_whom and for_whom != str(os.getpid()):
        return None
    try:
        limit_us = int(os.environ.get("WATCHDOG_USEC", ""))
    except ValueError:
        return None
    return limit_us / 2_000_000 if limit_us > 0 else None


@contextlib.asynccontextmanager
async def told(stopping: asyncio.Event, anew: asyncio.Event) -> AsyncIterator[None]:
    """Say that we are alive while the event loop turns, and that we stop, or begin ``anew``.

    From the loop itself, and not from a thread: a loop that hangs is what the watchdog is for.
    """
    async with contextlib.AsyncExitStack() as telling:
        telling.push_async_callback(_cancelled, asyncio.create_task(_say_end(stopping, anew)))
        if (every_s := interval_s()) is not None:
            telling.push_async_callback(_cancelled, asyncio.create_task(_say_alive(every_s)))
        yield


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _say_end(stopping: asyncio.Event, anew: asyncio.Event) -> None:
    await stopping.wait()
    tell(RELOADING if anew.is_set() else STOPPING)


async def _say_alive(every_s: float) -> None:
    while True:
        tell(ALIVE)
        await asyncio.sleep(every_s)
