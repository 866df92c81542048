"""Tells when files grow; a wake-up is a hint, reading is the truth."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Final

POLL_MIN_S: Final = 0.05
POLL_MAX_S: Final = 1.0


class Poller:
    """Tells when followed files grow: one timer for all of them, and one ``stat`` per look.

    A file with news is looked at every ``POLL_MIN_S``, a quiet one less and less often, down to
    every ``POLL_MAX_S``; looks fall together, so that 200 quiet files wake the loop a few times per
    second. ``stat`` is called on the loop: attempt directories are expected on a local disk.
    """

    def __init__(self) -> None:
        self._followed: set[_Followed] = set()
        self._timer: asyncio.TimerHandle | None = None

    @contextlib.contextmanager
    def follow(
        self, path: str, news: asyncio.Event, on_news: Callable[[], None] = lambda: None
    ) -> Iterator[None]:
        """Set ``news``, and call ``on_news``, whenever the file's size changed."""
        followed = _Followed(path, news, on_news)
        self._followed.add(followed)
        self._arm()
        try:
            yield
        finally:
            self._followed.discard(followed)
            self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._followed:
            due = min(each.due for each in self._followed)
            self._timer = asyncio.get_running_loop().call_at(due, self._look)

    def _look(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for each in self._followed:
            if each.due <= now:
                each.look(now)
        self._arm()


class _Followed:
    def __init__(self, path: str, news: asyncio.Event, on_news: Callable[[], None]) -> None:
        self.path = path
        self.news = news
        self.on_news = on_news
        self.size = -1
        self.pause_s = POLL_MIN_S
        self.due = 0.0

    def look(self, now: float) -> None:
        try:
            size = os.stat(self.path).st_size  # noqa: PTH116  # hot: once per file and look
        except OSError:
            size = -1
        if size == self.size:
            self.pause_s = min(self.pause_s * 1.5, POLL_MAX_S)
        else:
            self.size, self.pause_s = size, POLL_MIN_S
            self.news.set()
            self.on_news()
        # Rounded up to a common grid: what is due at about the same time is looked at together.
        grid_s = POLL_MIN_S if self.pause_s < POLL_MAX_S / 2 else POLL_MAX_S / 4
        self.due = ((now + self.pause_s) // grid_s + 1) * grid_s
