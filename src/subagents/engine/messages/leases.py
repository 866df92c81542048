"""Who may hand a message over now: one reader or courier at a time, as a lease in memory.

An offer is not yet a consumption: a reader that dies before it acknowledges loses nothing. When
its lease is over, or the daemon was restarted, the message is offered again under the same id, so
that readers can tell. Couriers take the same lease while they try: the first hands over, and the
others find the message taken.
"""

from typing import Final

from subagents.ports import EngineClock

OFFER_MS: Final = 60_000
"""How long a reader has to acknowledge what it was offered."""

UNREAD_LAPSES: Final = 2
"""Readers that were offered a message and did not acknowledge it, after which a person should look
(``queries.attention``)."""

_NOBODY: Final = ""
"""Holds what was consumed: a read of the store that began before that must not offer it again."""

LAPSED_MAX: Final = 10_000
"""Messages whose lapses are remembered; beyond that the oldest are forgotten."""

Held = tuple[str, int]
"""Its reader, and until when by the steady clock."""


class MessageLeases:
    """The leases, and how many of them ran out unanswered; a restart forgets both."""

    def __init__(self, clock: EngineClock) -> None:
        self._clock = clock
        self._held: dict[str, Held] = {}
        self._lapsed: dict[str, int] = {}

    def is_free(self, message_id: str, reader: str | None) -> bool:
        """Whether no other reader holds it; None = none at all."""
        held = self._held.get(message_id)
        return held is None or held[0] == reader or held[1] <= self._clock.steady_ms()

    def acquire(self, message_id: str, reader: str, *, for_ms: int = OFFER_MS) -> bool:
        """Lease it to ``reader``, or lengthen its lease; False = somebody else holds it."""
        # Look and take in one step without an await: of two readers in the same moment one gets it.
        if not self.is_free(message_id, reader):
            return False
        now = self._clock.steady_ms()
        self._count_lapse(message_id, now)
        self._held[message_id] = (reader, now + for_ms)
        return True

    def release(self, message_id: str, reader: str) -> None:
        """End the lease early: the next reader that asks may have it."""
        if self.is_held_by(message_id, reader):
            del self._held[message_id]

    def close(self, message_id: str) -> Held | None:
        """It was consumed (the commit may be under way): it is offered no more.

        Returns:
            The lease that this ends, for ``reopen``.
        """
        ended = self._held.get(message_id)
        self._held[message_id] = (_NOBODY, self._clock.steady_ms() + OFFER_MS)
        self._lapsed.pop(message_id, None)
        return ended

    def reopen(self, message_id: str, held: Held | None = None) -> None:
        """It is unread again, and still with its reader where that one is named."""
        if self.is_closed(message_id):
            del self._held[message_id]
            if held is not None:
                self._held[message_id] = held

    def is_closed(self, message_id: str) -> bool:
        return self.is_held_by(message_id, _NOBODY)

    def is_held_by(self, message_id: str, reader: str) -> bool:
        held = self._held.get(message_id)
        return held is not None and held[0] == reader

    def leased_until_ms(self, message_id: str) -> int | None:
        """When the lease of its holder is over; None = there is none, or it was consumed."""
        held = self._held.get(message_id)
        if held is None or held[0] == _NOBODY or held[1] <= self._clock.steady_ms():
            return None
        return held[1]

    def lapses(self, message_id: str) -> int:
        """How many readers were offered it, had their time, and did not acknowledge."""
        known = self._lapsed.get(message_id, 0)
        return known + self._has_lapsed(message_id, self._clock.steady_ms())

    def forget(self) -> None:
        """Drop leases that are over."""
        now = self._clock.steady_ms()
        over = [message_id for message_id, (_, until) in self._held.items() if until <= now]
        for message_id in over:
            self._count_lapse(message_id, now)
            del self._held[message_id]

    def _has_lapsed(self, message_id: str, now_ms: int) -> bool:
        held = self._held.get(message_id)
        return held is not None and held[0] != _NOBODY and held[1] <= now_ms

    def _count_lapse(self, message_id: str, now_ms: int) -> None:
        if self._has_lapsed(message_id, now_ms):
            self._lapsed[message_id] = self._lapsed.pop(message_id, 0) + 1
            if len(self._lapsed) > LAPSED_MAX:
                # A message that was pruned unread never comes back to be counted off.
                del self._lapsed[next(iter(self._lapsed))]
