"""Tasks with an owner, which end together and loudly, and a wait on the injected clock."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from subagents.errors import Fenced
from subagents.ports import Clock

log = logging.getLogger(__name__)

AGAIN_S: Final = 1.0
"""The pause before work that never ends is started again."""

T = TypeVar("T")


class TimeLimit:
    """``asyncio.timeout`` of one length for many tasks at once, with one timer of the loop.

    It is the loop's own: one on the clock port would cost two tasks for everything it limits.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._due_s: dict[asyncio.Task[Any], float] = {}
        """When each task that is at work is due, the earliest first: all have the same limit."""
        self._late: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def of(self, work: Awaitable[T]) -> T:
        """What ``work`` comes to; not within itself.

        Raises:
            TimeoutError: It took too long, and was cancelled.
            RuntimeError: No task calls.
        """
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("only the work of a task can be limited")
        self._due_s[task] = due_s = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_at(due_s, self._cancel_late)
        cancelling = task.cancelling()
        try:
            return await work
        except asyncio.CancelledError as error:
            # Someone else may have cancelled it, too: that must not be turned into a timeout.
            if task in self._late and task.cancelling() == cancelling + 1:
                raise TimeoutError from error
            raise
        finally:
            del self._due_s[task]
            if task in self._late:
                self._late.remove(task)
                task.uncancel()

    def _cancel_late(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        for task, due_s in self._due_s.items():
            if due_s > loop.time():
                self._timer = loop.call_at(due_s, self._cancel_late)
                return
            if task not in self._late:
                self._late.add(task)
                task.cancel()


class Tasks:
    """Running tasks, oldest first; ``stop`` cancels and awaits them all."""

    def __init__(self) -> None:
        # The event loop keeps only weak references to its tasks: without this they could vanish.
        self._running: dict[asyncio.Task[Any], None] = {}

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running[task] = None
        task.add_done_callback(self._ended)
        return task

    def keep(
        self, work: Callable[[], Coroutine[Any, Any, None]], name: str, clock: Clock
    ) -> asyncio.Task[None]:
        """Start work that never ends by itself; what fails all the same is begun again.

        One mistake, or one allocation that failed, must not be the end of every deadline.
        """
        return self.start(_kept(work, name, clock), name)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._running.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            log.error("task %s failed", task.get_name(), exc_info=task.exception())

    async def finished(self) -> None:
        """Return when all that runs now has ended by itself."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def stop(self) -> None:
        # One of them may be what calls this, and a task cannot wait for itself.
        current = asyncio.current_task()
        running = [task for task in self._running if task is not current]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _kept(work: Callable[[], Coroutine[Any, Any, None]], name: str, clock: Clock) -> None:
    while True:
        try:
            return await work()
        except Fenced:
            return None  # all that is done here ends, as the renewal or the next commit says
        except Exception:
            log.exception("%s failed, again in %s s", name, AGAIN_S)
        with contextlib.suppress(MemoryError):
            await clock.sleep(AGAIN_S)


async def wait_at_most(clock: Clock, seconds: float, event: asyncio.Event) -> None:
    """Return when ``event`` is set or the time is over, whichever comes first.

    On the injected clock, so that tests and the simulator own the time.
    """
    waking = asyncio.ensure_future(event.wait())
    sleeping = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((waking, sleeping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waking.cancel()
        sleeping.cancel()
