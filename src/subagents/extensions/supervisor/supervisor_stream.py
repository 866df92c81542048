"""What one supervisor is pushed: its subscriptions, each with its own place in the feed.

One task reads from the place that is furthest behind, and sends each event once, however many
subscriptions want it. The next page is read when the one before has been taken: a supervisor that
reads slowly, or not at all, is behind, and nothing is kept for it here.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
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
    is_replay: bool = False
    """Wants what others of its stream were sent before it came, once more."""
    began: int = field(init=False)
    """The first ``after``."""
    joined: int = field(init=False, default=0)
    """The number up to which others of its stream had been sent what they want, when it came."""

    def __post_init__(self) -> None:
        self.began = self.after

    def join(self, number: int) -> None:
        """The others of its stream have been sent what they want up to that number."""
        if not self.is_replay:
            self.joined = max(self.joined, number)


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
        # It may begin before them: its answer went out first, or its run was being spawned.
        subscription.join(max((each.after for each in self._wanted.values()), default=0))
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
            due = {name for name, one in served.items() if one.after < number}
            # Before it is sent: one that comes meanwhile must know that the others have it.
            for subscription in served.values():
                subscription.after = max(subscription.after, number)
            names = await self._names(each, page, served, due)
            for entry in each.documents(names) if names else ():
                await self._send(entry)
        for subscription in served.values():
            subscription.after = max(subscription.after, page.number)
        for name, subscription in self._wanted.items():
            if served.get(name) is not subscription:
                subscription.join(page.number)

    async def _names(
        self, each: Happened, page: Page, served: dict[str, Subscription], due: set[str]
    ) -> frozenset[str]:
        """The events of this number that subscriptions want and this stream has not sent yet."""
        number = each.found.number
        wanted, late, sent = set[str](), set[str](), set[str]()
        for name, one in served.items():
            if name not in due:
                names = sent if one.began < number else None
            else:
                names = late if number <= one.joined else wanted
            if (
                names is not None
                and self._wanted.get(name) is one
                and await self._feed.fits(each.run, one.scope, page.known)
            ):
                names |= one.names
        return frozenset(wanted | (late - sent))
