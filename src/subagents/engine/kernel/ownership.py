"""For how long what this process holds in memory is what everybody else would be told.

A store that is a file belongs to who holds its lock, for as long as that process lives. Elsewhere
the right ends by itself when it is not renewed (``ports.Store.renew``): whoever was frozen or cut
off must know, by a clock of its own, that others may act by now. What such an owner writes, the
store refuses; what it would answer from memory, it has to refuse itself.

The loop that answers is the one that renews, so one that hangs loses the right, too.
"""

import logging
from collections.abc import Callable
from typing import Final

from subagents.errors import Fenced, StoreUnavailable
from subagents.ports import EngineClock, OffLoop, Store

log = logging.getLogger(__name__)

TRIES: Final = 4
"""So often it is renewed in the time for which it was given."""


class Ownership:
    """The right that ``Store.open`` gave, and what is left of it.

    Args:
        store: It gives and renews it.
        off_loop: For the renewals: they must not wait for commits.
        clock: Its ``elapsed_ms`` says what is left.
        on_fenced: Called when a renewal learns that the store is another's.
    """

    def __init__(
        self,
        store: Store,
        off_loop: OffLoop,
        clock: EngineClock,
        on_fenced: Callable[[Fenced], None],
    ) -> None:
        self._store = store
        self._off_loop = off_loop
        self._clock = clock
        self._on_fenced = on_fenced
        self._held_s: float | None = None
        """For how long it was given last; None = as long as this process lives."""
        self._until_ms = 0
        """Its end, by ``elapsed_ms``."""
        self._since_ms = 0
        """Since when it never ended, by ``elapsed_ms``."""

    @property
    def is_limited(self) -> bool:
        """Whether it ends by itself, so that ``run`` has to renew it."""
        return self._held_s is not None

    @property
    def lapse(self) -> StoreUnavailable | None:
        """Why nothing is to be answered from memory now; None = the right holds."""
        if self._held_s is None or self._clock.elapsed_ms() < self._until_ms:
            return None
        return StoreUnavailable(
            f"for {self._held_s:g} s the store could not be asked whether its runs are still ours",
            hint="call again: what happened meanwhile is known once it answers",
        )

    @property
    def is_proven(self) -> bool:
        """Whether it was held for its whole length without a break.

        Who could not be reached for a while and can again finds the rights of all others over,
        though they only could not renew them either: they are given as long to do it.
        """
        return self._held_s is None or (
            self.lapse is None
            and self._clock.elapsed_ms() - self._since_ms >= int(self._held_s * 1000)
        )

    def given(self, held_s: float | None, *, asked_ms: int) -> None:
        """The store gave the right, or more of it.

        Args:
            held_s: As ``Store.renew`` returned it.
            asked_ms: ``elapsed_ms`` before that: nobody knows when within the call it was given.
        """
        if self._held_s is None or self.lapse is not None:
            self._since_ms = asked_ms
        self._held_s = held_s
        if held_s is not None:
            self._until_ms = asked_ms + int(held_s * 1000)

    async def run(self) -> None:
        """Renew it until it is lost, or cancelled; returns at once where it needs no renewing."""
        while self._held_s is not None:
            await self._clock.sleep(self._held_s / TRIES)
            asked_ms = self._clock.elapsed_ms()
            try:
                self.given(await self._off_loop(self._store.renew), asked_ms=asked_ms)
            except StoreUnavailable as error:
                log.warning("the store cannot be asked whether its runs are ours: %s", error)
            except Fenced as error:
                self._on_fenced(error)
                return
