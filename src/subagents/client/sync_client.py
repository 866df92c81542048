"""The Python API for programs without an event loop: ``with Subagents.connect() as sub: …``.

Every method is the one of ``Orchestrator`` or ``RunHandle`` with the same name and parameters; an
event loop in a thread of its own runs it, so that it may be called from scripts, Django views,
notebooks and several threads at once.
"""

import asyncio
import threading
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from subagents.api.wire.event_answers import StreamEvent
from subagents.api.wire.log_answers import LogLine
from subagents.api.wire.message_answers import Message
from subagents.api.wire.run_answers import RunResult
from subagents.client.orchestrator import Orchestrator
from subagents.client.run_handle import RunHandle, timeout_of

P = ParamSpec("P")
T = TypeVar("T")


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[object, object, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Awaitable[T]) -> T:
        """What ``work`` gives; a Ctrl-C of the caller cancels it."""

        async def done() -> T:
            return await work

        future = self.start(done())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def each(self, items: AsyncIterator[T]) -> Iterator[T]:
        while True:
            try:
                yield self.call(anext(items))
            except StopAsyncIteration:
                return

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _of_run(
    method: Callable[Concatenate[RunHandle, P], Awaitable[T]],
) -> Callable[Concatenate["SyncRunHandle", P], T]:
    @wraps(method)
    def call(self: "SyncRunHandle", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._thread.call(method(self._run, *args, **kwargs))

    return call


def _run_of_run(
    method: Callable[Concatenate[RunHandle, P], Awaitable[RunHandle]],
) -> Callable[Concatenate["SyncRunHandle", P], "SyncRunHandle"]:
    @wraps(method)
    def call(self: "SyncRunHandle", /, *args: P.args, **kwargs: P.kwargs) -> "SyncRunHandle":
        return SyncRunHandle(self._thread.call(method(self._run, *args, **kwargs)), self._thread)

    return call


class SyncRunHandle:
    """One run; every method is that of ``RunHandle``."""

    def __init__(self, run: RunHandle, thread: LoopThread) -> None:
        self._run = run
        self._thread = thread
        self.id = run.id
        self.label = run.label
        self.receipt = run.receipt

    def __repr__(self) -> str:
        return f"<SyncRunHandle {self.id} {self.label!r}>"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of the spawn; none for a run that was found."""
        return self._run.warnings

    wait = _of_run(RunHandle.wait)
    result = _of_run(RunHandle.result)
    artifacts = _of_run(RunHandle.artifacts)
    status = _of_run(RunHandle.status)
    show = _of_run(RunHandle.show)
    tree = _of_run(RunHandle.tree)
    why = _of_run(RunHandle.why)
    log = _of_run(RunHandle.log)
    summary = _of_run(RunHandle.summary)
    timeline = _of_run(RunHandle.timeline)
    cancel = _of_run(RunHandle.cancel)
    steer = _of_run(RunHandle.steer)
    interrupt = _of_run(RunHandle.interrupt)
    answer = _of_run(RunHandle.answer)
    pause = _of_run(RunHandle.pause)
    prioritize = _of_run(RunHandle.prioritize)
    resume = _of_run(RunHandle.resume)
    retry = _run_of_run(RunHandle.retry)
    continue_ = _run_of_run(RunHandle.continue_)

    def follow(self) -> Iterator[LogLine]:
        """Every line of the transcript, from the first to the run's end, as they come."""
        return self._thread.each(self._run.follow())


def _of_all(
    method: Callable[Concatenate[Orchestrator, P], Awaitable[T]],
) -> Callable[Concatenate["Subagents", P], T]:
    @wraps(method)
    def call(self: "Subagents", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._thread.call(method(self._all, *args, **kwargs))

    return call


def _run_of_all(
    method: Callable[Concatenate[Orchestrator, P], Awaitable[RunHandle]],
) -> Callable[Concatenate["Subagents", P], SyncRunHandle]:
    @wraps(method)
    def call(self: "Subagents", /, *args: P.args, **kwargs: P.kwargs) -> SyncRunHandle:
        return SyncRunHandle(self._thread.call(method(self._all, *args, **kwargs)), self._thread)

    return call


def _runs_of_all(
    method: Callable[Concatenate[Orchestrator, P], Awaitable[Iterable[RunHandle]]],
) -> Callable[Concatenate["Subagents", P], tuple[SyncRunHandle, ...]]:
    @wraps(method)
    def call(self: "Subagents", /, *args: P.args, **kwargs: P.kwargs) -> tuple[SyncRunHandle, ...]:
        runs = self._thread.call(method(self._all, *args, **kwargs))
        return tuple(SyncRunHandle(each, self._thread) for each in runs)

    return call


def _streamed(
    method: Callable[Concatenate[Orchestrator, P], AsyncIterator[StreamEvent]],
) -> Callable[Concatenate["Subagents", P], Iterator[StreamEvent]]:
    @wraps(method)
    def call(self: "Subagents", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[StreamEvent]:
        return self._thread.each(method(self._all, *args, **kwargs))

    return call


def _opened(
    method: Callable[P, AbstractAsyncContextManager[Orchestrator]],
) -> Callable[P, AbstractContextManager["Subagents"]]:
    @wraps(method)
    @contextmanager
    def call(*args: P.args, **kwargs: P.kwargs) -> Iterator["Subagents"]:
        thread = LoopThread()
        try:
            opened: Future[Orchestrator] = Future()
            ended: Future[None] = Future()

            async def block() -> None:
                # In one task from beginning to end: it holds groups of tasks open.
                async with method(*args, **kwargs) as found:
                    opened.set_result(found)
                    await asyncio.wrap_future(ended)

            work = thread.start(block())
            work.add_done_callback(lambda _: None if opened.done() else opened.cancel())
            try:
                found = opened.result()
            except CancelledError:
                work.result()
                raise
            try:
                yield Subagents(found, thread)
            except BaseException as error:
                # The block ends as the caller's does: nothing is acknowledged after an error.
                ended.set_exception(error)
                work.exception()
                raise
            ended.set_result(None)
            work.result()
        finally:
            thread.close()

    return call


class Subagents:
    """A requester's session with one daemon; every method is that of ``Orchestrator``."""

    def __init__(self, orchestrator: Orchestrator, thread: LoopThread) -> None:
        """Use ``open`` or ``connect``."""
        self._all = orchestrator
        self._thread = thread

    open = staticmethod(_opened(Orchestrator.open))
    connect = staticmethod(_opened(Orchestrator.connect))
    spawn = _run_of_all(Orchestrator.spawn)
    plan = _runs_of_all(Orchestrator.plan)
    dry_run = _of_all(Orchestrator.dry_run)
    plans = _of_all(Orchestrator.plans)
    get_plan = _of_all(Orchestrator.get_plan)
    retry_plan = _runs_of_all(Orchestrator.retry_plan)
    cancel_plan = _of_all(Orchestrator.cancel_plan)
    schedule = _of_all(Orchestrator.schedule)
    schedules = _of_all(Orchestrator.schedules)
    pause_schedule = _of_all(Orchestrator.pause_schedule)
    resume_schedule = _of_all(Orchestrator.resume_schedule)
    run_schedule = _runs_of_all(Orchestrator.run_schedule)
    remove_schedule = _of_all(Orchestrator.remove_schedule)
    run = _of_all(Orchestrator.run)
    get = _run_of_all(Orchestrator.get)
    list = _of_all(Orchestrator.list)
    tree = _of_all(Orchestrator.tree)
    agent_stats = _of_all(Orchestrator.agent_stats)
    suggest_agents = _of_all(Orchestrator.suggest_agents)
    attention = _of_all(Orchestrator.attention)
    alerts = _of_all(Orchestrator.alerts)
    events = _streamed(Orchestrator.events)

    def wait_any(
        self,
        runs: Iterable[SyncRunHandle],
        timeout: float | None = None,
        *,
        timeout_s: float | None = None,
    ) -> Sequence[RunResult]:
        """As ``Orchestrator.wait_any``."""
        handles = [each._run for each in runs]  # noqa: SLF001
        seconds = timeout_of(timeout, timeout_s)
        return self._thread.call(self._all.wait_any(handles, seconds))

    def wait_all(
        self,
        runs: Iterable[SyncRunHandle],
        timeout: float | None = None,
        *,
        timeout_s: float | None = None,
    ) -> Sequence[RunResult]:
        """As ``Orchestrator.wait_all``."""
        handles = [each._run for each in runs]  # noqa: SLF001
        seconds = timeout_of(timeout, timeout_s)
        return self._thread.call(self._all.wait_all(handles, seconds))

    def inbox(self) -> Iterator[Message]:
        """Unread messages, oldest first, each acknowledged when the next one is asked for."""
        return self._thread.each(self._all.inbox())
