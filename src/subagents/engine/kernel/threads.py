"""Blocking work on daemon threads, so that work which never returns holds up nothing else.

``asyncio.to_thread`` and ``concurrent.futures`` join their threads when the process ends: one read
from a dead network disk and the daemon never stops. Here a stuck thread is left behind: it costs
one of at most ``threads_max`` places and dies with the process. Give work that can get stuck
(verification) its own pool, apart from the one that runs database commits.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeAlias, TypeVar

T = TypeVar("T")

THREADS_MAX: Final = 32
STOP_S: Final = 10.0
"""The time that cancelled work on its own loop has to end; then its thread is left behind."""

_Work: TypeAlias = Callable[[], Callable[[], None]]
"""What a thread runs; it returns what notifies the caller."""


class DaemonThreads:
    """The real ``OffLoop``: a pool of daemon threads that grows on demand and reuses idle ones.

    Args:
        name: Shown in thread names.
        threads_max: 1 or more. With one thread, work runs one after the other in the order given.
    """

    def __init__(self, name: str, *, threads_max: int = THREADS_MAX) -> None:
        if threads_max < 1:
            raise ValueError(f"threads_max must be 1 or more, not {threads_max}")
        self._name = name
        self._threads_max = threads_max
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        # Exact counts, not ThreadPoolExecutor's semaphore: that one can count a thread as idle
        # which just got stuck, and work would wait behind it although the pool may still grow.
        self._lock = threading.Lock()
        self._idle = 0
        self._pending = 0
        self._started = 0
        self._closed = False

    def __call__(self, work: Callable[[], T], /) -> "asyncio.Future[T]":
        """Run ``work`` on a thread; the future belongs to the running loop.

        Cancelling the future abandons work that has begun (it runs on, its result is dropped) and
        skips work that has not.

        Raises:
            RuntimeError: The pool is closed, or no loop is running; nothing was run.
        """
        loop = asyncio.get_running_loop()
        job = _Job(work, loop, loop.create_future())
        with self._lock:
            if self._closed:
                raise RuntimeError(f"{self._name} is closed")
            self._queue.put(job.run)
            self._pending += 1
            if self._pending > self._idle and self._started < self._threads_max:
                self._started += 1
                self._idle += 1
                threading.Thread(
                    target=self._serve, name=f"{self._name}-{self._started}", daemon=True
                ).start()
        return job.future

    @property
    def threads(self) -> int:
        """How many threads were started so far; at most ``threads_max``."""
        return self._started

    def close(self) -> None:
        """Take no more work and let idle threads end; never waits for a stuck one. Idempotent.

        Work given before is still done unless the process ends first.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for _ in range(self._started):
                self._queue.put(None)

    def _serve(self) -> None:
        while True:
            work = self._queue.get()
            if work is None:
                return
            with self._lock:
                self._idle -= 1
                self._pending -= 1
            notify = work()
            # Idle before its caller can know: whoever gives work next finds this thread free.
            with self._lock:
                self._idle += 1
            notify()
            del work, notify  # or the result would stay alive until the next piece of work


def _nothing() -> None:
    """Notify no one: whoever waited was cancelled."""


class _Job(Generic[T]):
    """One piece of work, and the future of whoever waits for it."""

    def __init__(
        self, work: Callable[[], T], loop: asyncio.AbstractEventLoop, future: "asyncio.Future[T]"
    ) -> None:
        self.work, self.loop, self.future = work, loop, future

    def run(self) -> Callable[[], None]:
        """Do it, on a thread; returns what notifies the caller."""
        if self.future.cancelled():
            return _nothing
        try:
            result = self.work()
        except BaseException as error:  # noqa: BLE001  # belongs to the caller, whatever it is
            return partial(self._notify, self._fail, error)
        return partial(self._notify, self._finish, result)

    def _notify(self, callback: Callable[..., None], value: object) -> None:
        try:
            self.loop.call_soon_threadsafe(callback, value)
        except RuntimeError:
            # The loop was closed meanwhile, and whoever waited went with it.
            if not self.loop.is_closed():
                raise

    def _finish(self, result: T) -> None:
        if not self.future.done():
            self.future.set_result(result)

    def _fail(self, error: BaseException) -> None:
        if self.future.done():
            return
        if isinstance(error, StopIteration):  # a future refuses to carry it
            wrapped = RuntimeError("work raised StopIteration")
            wrapped.__cause__ = error
            error = wrapped
        self.future.set_exception(error)


async def on_own_loop(work: Callable[[], Coroutine[Any, Any, None]], /) -> None:
    """The real ``OwnLoop``: on a daemon thread, until it ends.

    Nothing that our loop is busy with delays it. Cancelling cancels the work and waits for its end,
    ``STOP_S`` at most.

    Raises:
        Exception: What the work raised.
    """
    ours, loop = asyncio.get_running_loop(), asyncio.new_event_loop()
    task, ended = loop.create_task(work()), ours.create_future()

    async def finished() -> None:
        await asyncio.wait({task})

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(finished())
        with contextlib.suppress(RuntimeError):  # left behind, and our loop is closed by now
            ours.call_soon_threadsafe(ended.set_result, None)

    threading.Thread(target=run, name=work.__qualname__, daemon=True).start()
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        with contextlib.suppress(RuntimeError):  # it has just ended, and its loop is closed
            loop.call_soon_threadsafe(task.cancel)
        await asyncio.wait({ended}, timeout=STOP_S)
        raise
    task.result()
