"""What one supervisor is pushed: its subscriptions, each with its own place in the feed.

One task reads from the place that is furthest behind, and sends each event once, however many
subscriptions want it. The next page is read when the one before has been taken: a supervisor that
reads slowly, or not at all, is behind, and nothing is kept for it here.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from subagents.domain.transcript.feed_entry import FeedDocument
from subagents.engine.runs.feed import (
    PACE_S,
    Feed,
    Happened,
    Page,
    Scope,
)
from subagents.errors import StoreUnavailable

log = logging.getLogger(__name__)

AGAIN_S: Final = 1.0
"""The wait before the store is asked again that could not be read."""
SUBSCRIPTIONS_MAX: Final = 1_000
"""The most subscriptions of one supervisor."""


@dataclass(slots=True)
class Subscription:
    """Which events are wanted, and everything up to which number was sent."""

    scope: Scope
    names: frozenset[str]
    after: int


class Stream:
    """Pushes until it is cancelled.

    Args:
        feed: Where events come from.
        send: Returns when there is room for more.
    """

    def __init__(self, feed: Feed, send: Callable[[FeedDocument], Awaitable[None]]) -> None:
        self._feed = feed
        self._send = send
        self._wanted: dict[str, Subscription] = {}
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._wanted)

    def __contains__(self, name: str) -> bool:
        return name in self._wanted

    def add(self, name: str, subscription: Subscription) -> None:
        """Push this, too; one of the same name ends."""
        self._wanted[name] = subscription
        self._changed.set()

    def remove(self, name: str | None) -> int:
        """End the subscription of that name, or all; returns how many there were."""
        if name is not None:
            return int(self._wanted.pop(name, None) is not None)
        count = len(self._wanted)
        self._wanted.clear()
        return count

    async def run(self) -> None:
        """Push what is wanted, in order, from each subscription's place on."""
        with self._feed.woken(self._changed):
            while True:
                self._changed.clear()
                if not self._wanted:
                    await self._changed.wait()
                    continue
                # One that comes while a page is read has its turn with the next.
                served = dict(self._wanted)
                try:
                    page = await self._feed.page(min(each.after for each in served.values()))
                except StoreUnavailable as error:
                    log.warning("events cannot be read: %s", error)
                    await self._feed.clock.sleep(AGAIN_S)
                    continue
                await self._push(page, served)
                if page.is_last and min(each.after for each in served.values()) == page.number:
                    await self._feed.until_news(self._changed)
                    await self._feed.clock.sleep(PACE_S)

    async def _push(self, page: Page, served: dict[str, Subscription]) -> None:
        for each in page.happened:
            number = each.found.number
            names = await self._names(each, page, served)
            for entry in each.documents(names) if names else ():
                await self._send(entry)
            for subscription in served.values():
                subscription.after = max(subscription.after, number)
        for subscription in served.values():
            subscription.after = max(subscription.after, page.number)

    async def _names(
        self, each: Happened, page: Page, served: dict[str, Subscription]
    ) -> frozenset[str]:
        """The events that those want who have not had this number and still are subscribed."""
        found: frozenset[str] = frozenset()
        for name, subscription in served.items():
            is_due = subscription.after < each.found.number
            if (
                is_due
                and self._wanted.get(name) is subscription
                and await self._feed.fits(each.run, subscription.scope, page.known)
            ):
                found |= subscription.names
        return found
