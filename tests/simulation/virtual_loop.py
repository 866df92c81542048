"""An event loop in virtual time, in an order drawn from a seed.

- When nothing is ready the time jumps to the next timer: hours pass in milliseconds.
- Of everything that is ready, a seeded random one runs next. asyncio promises an order for nothing
  but the callbacks of one future, and nothing here may depend on more.
- Callbacks belong to a ``Process`` (or to the outside world). When it dies, none of them ever runs
  again: no ``finally``, no last write, as after ``kill -9``.
"""

import asyncio
import contextvars
import heapq
import random
from asyncio import _set_running_loop
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, ContextVar
from typing import Any, Final, TypeVar, TypeVarTuple

from subagents.engine.runs.timers import STEP_MS_MIN
from subagents.ports import EngineClock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH_MS: Final = 1_800_000_000_000
"""What the wall clock shows when a simulation begins."""

SAME_INSTANT_S: Final = 1e-9


class Stuck(Exception):
    """Nothing is ready and no timer is set, yet the end was not reached."""


class Process:
    """Owner of callbacks; set ``is_dead`` and none of them runs again."""

    is_dead = False


PROCESS: Final[ContextVar[Process | None]] = ContextVar("process", default=None)
"""None = the outside world, which nothing kills."""


class VirtualLoop(asyncio.AbstractEventLoop):
    """See the module's text.

    Args:
        rng: Decides who runs next; nothing else may draw from it.
    """

    def __init__(self, rng: random.Random) -> None:
        self._random = rng.random
        self._now = 0.0
        self._ready: list[asyncio.Handle] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timers_made = 0
        self._closed = False
        self.steps = 0
        """Callbacks run so far."""
        self.alarm_at_step: int | None = None
        """Before this step ``alarm`` is called once: where a crash is planned."""
        self.alarm: Callable[[], None] = lambda: None
        self.complaints: list[dict[str, Any]] = []
        """What asyncio would have logged: exceptions that nobody looked at."""

    # -- what asyncio asks of a loop -----------------------------------------------------------

    def time(self) -> float:
        """Seconds since the simulation began."""
        return self._now

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if not self._closed:
            self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._timers_made += 1
        heapq.heappush(self._timers, (when, self._timers_made, handle))
        return handle

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> "asyncio.Task[T]":
        task: asyncio.Task[T] = asyncio.Task(coro, loop=self, name=name, context=context)
        # A crash leaves tasks behind on purpose.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        return task

    def get_task_factory(self) -> None:
        """None = tasks are made as usual."""
        return

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Nothing runs any more; what a collected coroutine still asks for keeps nothing alive."""
        self._closed = True
        self._ready.clear()
        self._timers.clear()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.complaints.append(context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are skipped when they come up."""

    # -- running -------------------------------------------------------------------------------

    def run(self, *, is_over: Callable[[], bool], steps_max: int) -> None:
        """Run until ``is_over`` says so.

        Raises:
            Stuck: Nothing is left to run, or ``steps_max`` callbacks were not enough.
        """
        _set_running_loop(self)
        try:
            while not is_over():
                if self.steps >= steps_max:
                    raise Stuck(f"not over after {steps_max} steps and {self._now:.0f} s")
                self._step()
        finally:
            _set_running_loop(None)

    def _step(self) -> None:
        ready = self._ready
        if not ready:
            self._advance()
            return
        if self.alarm_at_step is not None and self.steps >= self.alarm_at_step:
            self.alarm_at_step = None
            self.alarm()
        chosen = int(self._random() * len(ready))
        ready[chosen], ready[-1] = ready[-1], ready[chosen]
        handle = ready.pop()
        if not _is_void(handle):
            self.steps += 1
            handle._run()

    def _advance(self) -> None:
        timers = self._timers
        while timers and _is_void(timers[0][2]):
            heapq.heappop(timers)
        if not timers:
            raise Stuck(f"nothing is left to happen after {self._now:.0f} s")
        self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now + SAME_INSTANT_S:
            self._ready.append(heapq.heappop(timers)[2])


def _is_void(handle: asyncio.Handle) -> bool:
    if handle.cancelled():
        return True
    process = handle._context.get(PROCESS)  # type: ignore[attr-defined]
    return process is not None and process.is_dead


def context_of(process: Process) -> Context:
    """A context whose tasks and callbacks, and all that they start, belong to ``process``."""
    context = contextvars.copy_context()
    context.run(PROCESS.set, process)
    return context


class VirtualClock(EngineClock):
    """The wall clock of one simulation: virtual time, and jumps either way."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.skew_ms = 0
        self.taken_ms = 0
        """What of it the daemon has noticed."""
        self.moved_ms = 0
        """What of that was enough at once to move what is due."""
        self.before_sleep: Callable[[], None] = lambda: None
        """May raise: a sleep needs memory, too."""

    def now_ms(self) -> int:
        return self.taken_ms + self.steady_ms()

    def steady_ms(self) -> int:
        return EPOCH_MS + round(self._loop.time() * 1000)

    def elapsed_ms(self) -> int:
        return self.steady_ms()

    def take_step_ms(self) -> int:
        step_ms, self.taken_ms = self.skew_ms - self.taken_ms, self.skew_ms
        self.moved_ms += step_ms if abs(step_ms) >= STEP_MS_MIN else 0
        return step_ms

    async def sleep(self, seconds: float) -> None:
        self.before_sleep()
        await asyncio.sleep(max(seconds, 0))
