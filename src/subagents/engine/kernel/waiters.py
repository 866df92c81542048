"""Waiting together: for one thing that happens once, or for whatever happens to some things."""

import asyncio
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Waiters:
    """Waits for one thing; one that gives up ends no other.

    Each has its own future, which is what ``asyncio.shield`` of a shared one comes to, with a third
    of its callbacks on the loop.
    """

    __slots__ = ("_futures",)

    def __init__(self) -> None:
        self._futures: list[asyncio.Future[None]] = []

    def join(self) -> "asyncio.Future[None]":
        """A future for the caller to await: done once it happened."""
        future = asyncio.get_running_loop().create_future()
        self._futures.append(future)
        return future

    def wake(self, error: Exception | None = None) -> None:
        """It happened; with ``error``, it never will, and those who wait raise that."""
        for future in self._futures:
            if future.done():
                continue  # it gave up
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)


class Wakeups(Generic[K]):
    """Events of those who look again whenever something happens, by the keys of what it happens to.

    A wake-up says nothing about what happened: whoever is woken looks for itself.
    """

    def __init__(self) -> None:
        self._events: dict[K, dict[asyncio.Event, None]] = {}
        """The events of each key, in the order of the calls: who waited longest is woken first."""

    def __bool__(self) -> bool:
        """Whether anyone waits for anything."""
        return bool(self._events)

    def __contains__(self, key: K) -> bool:
        """Whether anyone waits for that."""
        return key in self._events

    @contextmanager
    def waiting(self, *keys: K) -> Iterator[asyncio.Event]:
        """Within the block, an event that is set whenever something happens to one of these."""
        event, wanted = asyncio.Event(), dict.fromkeys(keys)
        for key in wanted:
            self._events.setdefault(key, {})[event] = None
        try:
            yield event
        finally:
            for key in wanted:
                of_key = self._events[key]
                del of_key[event]
                if not of_key:
                    del self._events[key]

    def wake(self, keys: Iterable[K]) -> None:
        """Something happened to these."""
        for key in keys:
            if key in self._events:
                for event in self._events[key]:
                    event.set()

    def wake_all(self) -> None:
        """Everyone looks again, and finds out what failed, or is not ours any more."""
        self.wake(self._events)
