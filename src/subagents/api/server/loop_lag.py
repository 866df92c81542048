"""How late the event loop is, for ``/metrics``."""

import asyncio
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from subagents.engine.records.counters import Histogram
from subagents.ports import Batch

LOOK_S: Final = 0.5
"""The pause between two looks, while there is work."""


class LoopLag:
    """An application that measures how late its loop is while calls come or commits are made.

    A loop without work delays nothing, and a look would wake it up. ``into`` gets one value per
    look, in seconds.
    """

    def __init__(self, app: ASGIApp, into: Histogram) -> None:
        self._app = app
        self._into = into
        self._look: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._expect()
        await self._app(scope, receive, send)

    def on_commit(self, batch: Batch) -> None:
        """What follows a commit is work, too."""
        del batch
        self._expect()

    def stop(self) -> None:
        """Look no more."""
        if self._look is not None:
            self._look.cancel()

    def _expect(self) -> None:
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(LOOK_S, self._measure)

    def _measure(self) -> None:
        if self._look is not None:
            late_s = asyncio.get_running_loop().time() - self._look.when()
            self._into.observe(max(late_s, 0.0))
            self._look = None
