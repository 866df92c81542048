"""Waiting together for one thing that happens once."""

import asyncio


class Waiters:
    """Those who wait for one thing; who gives up ends it for nobody else.

    A future each, which is what ``asyncio.shield`` of a shared one comes to, with a third of its
    callbacks on the loop.
    """

    __slots__ = ("_futures",)

    def __init__(self) -> None:
        self._futures: list[asyncio.Future[None]] = []

    def join(self) -> "asyncio.Future[None]":
        """To be awaited by the caller: done once it happened."""
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
