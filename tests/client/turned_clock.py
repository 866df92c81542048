"""A clock that only the test turns, and daemons that die one after the other by it."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.client.peer import http

from subagents.client.transport import Answer, Gone

LIVES_S = 700.0
"""Longer than every time limit between a client and its daemon."""
AWAY_S = 20.0
"""Between two daemons; less than a client looks for one."""


class TurnedClock:
    """Stands in for the module ``time``; sleeping turns it."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def monotonic(self) -> float:
        return self.now_s

    def time(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


class MortalDaemons:
    """Daemons that take a call, hold it and die; the last of them answers.

    Args:
        deaths: So many die.
        answer: Of the last one; gets the request.
        now: The clock.
        away_s: From a death to the next daemon; None = none comes.
        lives_s: So long each of them holds the call, less than a client's poll.
    """

    def __init__(
        self,
        deaths: int,
        answer: Callable[[bytes], object],
        now: Callable[[], float],
        *,
        away_s: float | None = AWAY_S,
        lives_s: float = LIVES_S,
    ) -> None:
        self.left, self._answer, self._now = deaths, answer, now
        self._away_s, self.lives_s = away_s, lives_s
        self._back_at: float | None = 0.0
        self.asked: list[bytes] = []

    def take(self, sent: bytes) -> float:
        """A request arrives; for how long it is held.

        Raises:
            Gone: No daemon is there.
        """
        if self._back_at is None or self._now() < self._back_at:
            raise Gone("nobody listens", was_sent=False)
        self.asked.append(sent)
        return self.lives_s if self.left else 0.0

    def end(self, sent: bytes) -> tuple[Answer, bytes]:
        """After that: it dies, or answers.

        Raises:
            Gone: It died.
        """
        if self.left:
            self.left -= 1
            self._back_at = None if self._away_s is None else self._now() + self._away_s
            raise Gone("it closed the connection", was_sent=True)
        answer = Answer()
        answer.feed(http(self._answer(sent)))
        return answer, answer.take()


class BlockingConnection:
    """See ``transport.Connection``; holding turns the clock."""

    is_reusable = False

    def __init__(self, daemons: MortalDaemons, clock: TurnedClock) -> None:
        self._daemons, self._clock = daemons, clock
        self._content = b""

    def exchange(self, sent: bytes, **_: Any) -> tuple[Answer, bytes]:
        self._clock.sleep(self._daemons.take(sent))
        return self._daemons.end(sent)

    def send(self, sent: bytes, **_: Any) -> Answer:
        answer, self._content = self.exchange(sent)
        return answer

    def parts(self) -> list[bytes]:
        return [self._content]

    def close(self) -> None:
        """It carries one exchange."""


async def sleep(seconds: float) -> None:
    """By the loop's clock, which is a turned one, too."""
    await asyncio.sleep(seconds)


class LoopConnection:
    """See ``transport.AsyncConnection``; it is held by the loop's clock."""

    is_reusable = False

    def __init__(self, daemons: MortalDaemons) -> None:
        self._daemons = daemons

    async def exchange(self, sent: bytes, **_: Any) -> tuple[Answer, bytes]:
        await sleep(self._daemons.take(sent))
        return self._daemons.end(sent)

    async def close(self) -> None:
        """It carries one exchange."""
