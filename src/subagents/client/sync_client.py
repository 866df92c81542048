"""The Python API for programs without an event loop: ``with Subagents.connect() as sub: …``.

Every method is the one of ``Orchestrator`` or ``RunHandle`` with the same name and parameters. An
event loop in another thread runs it, so that it may be called from scripts, Django views, notebooks
and several threads at once.
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
from typing import Concatenate, Final, Generic, ParamSpec, TypeVar

from subagents.api.wire.message_answers import Message
from subagents.api.wire.run_answers import RunResult
from subagents.client.orchestrator import Orchestrator
from subagents.client.run_handle import RunHandle, timeout_of

A = TypeVar("A")
P = ParamSpec("P")
T = TypeVar("T")
CLOSE_S: Final = 5.0
"""The most that is waited for what a Ctrl-C left at work."""


class _Left(Exception):
    """The caller's block was left by something that is no ``Exception``."""


class LoopThread:
    """An event loop in its own thread."""

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
            future.cancel()  # of no effect on one that has failed by itself
            raise

    def each(self, items: AsyncIterator[T]) -> Iterator[T]:
        while True:
            try:
                yield self.call(anext(items))
            except StopAsyncIteration:
                return

    def close(self) -> None:
        # A Ctrl-C may have come before anybody knew what was started.
        self.start(_cancel_others()).exception()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for each in others:
        each.cancel()
    if others:
        await asyncio.wait(others, timeout=CLOSE_S)


class _Blocking(Generic[A]):
    """Something with an event loop, for callers that have none."""

    def __init__(self, inner: A, thread: LoopThread) -> None:
        self._inner = inner
        self._thread = thread


def _blocking(
    method: Callable[Concatenate[A, P], Awaitable[T]],
) -> Callable[Concatenate[_Blocking[A], P], T]:
    @wraps(method)
    def call(self: _Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._thread.call(method(self._inner, *args, **kwargs))

    return call


def _giving_run(
    method: Callable[Concatenate[A, P], Awaitable[RunHandle]],
) -> Callable[Concatenate[_Blocking[A], P], "SyncRunHandle"]:
    @wraps(method)
    def call(self: _Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> "SyncRunHandle":
        return SyncRunHandle(_blocking(method)(self, *args, **kwargs), self._thread)

    return call


def _giving_runs(
    method: Callable[Concatenate[A, P], Awaitable[Iterable[RunHandle]]],
) -> Callable[Concatenate[_Blocking[A], P], "tuple[SyncRunHandle, ...]"]:
    @wraps(method)
    def call(self: _Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> tuple[SyncRunHandle, ...]:
        runs = _blocking(method)(self, *args, **kwargs)
        return tuple(SyncRunHandle(each, self._thread) for each in runs)

    return call


def _streamed(
    method: Callable[Concatenate[A, P], AsyncIterator[T]],
) -> Callable[Concatenate[_Blocking[A], P], Iterator[T]]:
    @wraps(method)
    def call(self: _Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self._thread.each(method(self._inner, *args, **kwargs))

    return call


class SyncRunHandle(_Blocking[RunHandle]):
    """One run; every method is that of ``RunHandle``."""

    def __init__(self, run: RunHandle, thread: LoopThread) -> None:
        super().__init__(run, thread)
        self.id = run.id
        self.label = run.label
        self.receipt = run.receipt

    def __repr__(self) -> str:
        return f"<SyncRunHandle {self.id} {self.label!r}>"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of the spawn; none for a run that was found."""
        return self._inner.warnings

    wait = _blocking(RunHandle.wait)
    result = _blocking(RunHandle.result)
    artifacts = _blocking(RunHandle.artifacts)
    status = _blocking(RunHandle.status)
    show = _blocking(RunHandle.show)
    tree = _blocking(RunHandle.tree)
    why = _blocking(RunHandle.why)
    log = _blocking(RunHandle.log)
    summary = _blocking(RunHandle.summary)
    timeline = _blocking(RunHandle.timeline)
    cancel = _blocking(RunHandle.cancel)
    steer = _blocking(RunHandle.steer)
    interrupt = _blocking(RunHandle.interrupt)
    answer = _blocking(RunHandle.answer)
    pause = _blocking(RunHandle.pause)
    prioritize = _blocking(RunHandle.prioritize)
    resume = _blocking(RunHandle.resume)
    retry = _giving_run(RunHandle.retry)
    continue_ = _giving_run(RunHandle.continue_)
    follow = _streamed(RunHandle.follow)


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
                yield Subagents(opened.result(), thread)
            except BaseException as error:
                # The block ends as the caller's does: nothing is acknowledged after an error. One
                # that is no Exception (Ctrl-C, sys.exit) would end the loop, and this would wait.
                ended.set_exception(error if isinstance(error, Exception) else _Left(repr(error)))
                work.exception()
                if isinstance(error, CancelledError):
                    work.result()  # says why it could not be opened
                raise
            ended.set_result(None)
            work.result()
        finally:
            thread.close()

    return call


class Subagents(_Blocking[Orchestrator]):
    """A requester's session with one daemon, from ``open`` or ``connect``.

    Every method is that of ``Orchestrator``.
    """

    open = staticmethod(_opened(Orchestrator.open))
    connect = staticmethod(_opened(Orchestrator.connect))
    spawn = _giving_run(Orchestrator.spawn)
    plan = _giving_runs(Orchestrator.plan)
    dry_run = _blocking(Orchestrator.dry_run)
    plans = _blocking(Orchestrator.plans)
    get_plan = _blocking(Orchestrator.get_plan)
    retry_plan = _giving_runs(Orchestrator.retry_plan)
    cancel_plan = _blocking(Orchestrator.cancel_plan)
    schedule = _blocking(Orchestrator.schedule)
    schedules = _blocking(Orchestrator.schedules)
    pause_schedule = _blocking(Orchestrator.pause_schedule)
    resume_schedule = _blocking(Orchestrator.resume_schedule)
    run_schedule = _giving_runs(Orchestrator.run_schedule)
    remove_schedule = _blocking(Orchestrator.remove_schedule)
    run = _blocking(Orchestrator.run)
    get = _giving_run(Orchestrator.get)
    list = _blocking(Orchestrator.list)
    tree = _blocking(Orchestrator.tree)
    agent_stats = _blocking(Orchestrator.agent_stats)
    suggest_agents = _blocking(Orchestrator.suggest_agents)
    attention = _blocking(Orchestrator.attention)
    alerts = _blocking(Orchestrator.alerts)
    events = _streamed(Orchestrator.events)

    def wait_any(
        self,
        runs: Iterable[SyncRunHandle],
        timeout: float | None = None,
        *,
        timeout_s: float | None = None,
    ) -> Sequence[RunResult]:
        """As ``Orchestrator.wait_any``."""
        seconds = timeout_of(timeout, timeout_s)
        return self._thread.call(self._inner.wait_any(_handles(runs), seconds))

    def wait_all(
        self,
        runs: Iterable[SyncRunHandle],
        timeout: float | None = None,
        *,
        timeout_s: float | None = None,
    ) -> Sequence[RunResult]:
        """As ``Orchestrator.wait_all``."""
        seconds = timeout_of(timeout, timeout_s)
        return self._thread.call(self._inner.wait_all(_handles(runs), seconds))

    def inbox(self) -> Iterator[Message]:
        """Unread messages, oldest first, each acknowledged when the next one is asked for."""
        return self._thread.each(self._inner.inbox())


def _handles(runs: Iterable[SyncRunHandle]) -> list[RunHandle]:
    return [each._inner for each in runs]  # noqa: SLF001
