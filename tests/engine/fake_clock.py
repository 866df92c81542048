"""Time that only passes when a test says so: nothing here ever really sleeps."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

NOW_MS = 1_700_000_000_000
SPINS_MAX = 100_000


class FakeClock:
    """A ``Clock`` that is moved by hand; sleepers wake in the order of their times."""

    def __init__(self) -> None:
        self._now_ms = NOW_MS
        """Steady."""
        self._set_ms = self._taken_ms = 0
        self._suspended_ms = 0
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._made = 0

    def now_ms(self) -> int:
        return self._now_ms + self._taken_ms

    def steady_ms(self) -> int:
        return self._now_ms

    def elapsed_ms(self) -> int:
        return self._now_ms + self._suspended_ms

    def take_step_ms(self) -> int:
        step_ms, self._taken_ms = self._set_ms - self._taken_ms, self._set_ms
        return step_ms

    def set_wall(self, *, by_s: float) -> None:
        """Somebody sets the machine's clock."""
        self._set_ms += round(by_s * 1000)

    def suspend(self, seconds: float) -> None:
        """The machine sleeps for so long."""
        self.set_wall(by_s=seconds)
        self._suspended_ms += round(seconds * 1000)

    async def sleep(self, seconds: float) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._made += 1
        due_ms = self._now_ms + max(round(seconds * 1000), 0)
        heapq.heappush(self._sleepers, (due_ms, self._made, waiter))
        await waiter

    async def idle(self) -> None:
        """Let everything run that can run without time passing."""
        loop = asyncio.get_running_loop()
        ready = loop._ready  # type: ignore[attr-defined]  # there is no public way to ask
        for _ in range(SPINS_MAX):
            await asyncio.sleep(0)
            if not ready:
                return
        raise AssertionError("the loop never came to rest")

    async def advance(self, seconds: float) -> None:
        """Let so much time pass, waking every sleeper on the way."""
        end_ms = self._now_ms + round(seconds * 1000)
        await self.idle()
        while self._wake_next(end_ms):
            await self.idle()
        self._now_ms = max(self._now_ms, end_ms)
        await self.idle()

    def jump(self, seconds: float) -> None:
        """So much time passes at once, before anybody is woken."""
        self._now_ms += round(seconds * 1000)

    async def until(self, happened: Callable[[], bool], *, within_s: float = 3_600) -> None:
        """Let time pass until something is true; at most ``within_s``."""
        end_ms = self._now_ms + round(within_s * 1000)
        await self.idle()
        while not happened():
            assert self._wake_next(end_ms), f"it did not happen within {within_s} s"
            await self.idle()

    async def result(self, work: Awaitable[T], *, within_s: float = 3_600) -> T:
        """Let time pass until ``work`` is done, and return its result."""
        task = asyncio.ensure_future(work)
        await self.until(task.done, within_s=within_s)
        return task.result()

    def _wake_next(self, end_ms: int) -> bool:
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        if not self._sleepers or self._sleepers[0][0] > end_ms:
            return False
        due_ms, _, waiter = heapq.heappop(self._sleepers)
        self._now_ms = max(self._now_ms, due_ms)
        waiter.set_result(None)
        return True
