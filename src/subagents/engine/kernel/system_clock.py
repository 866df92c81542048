"""The real clock and the real source of ids."""

import asyncio
import secrets
import time
import uuid
from typing import Final

from subagents.domain.run.values import RunId
from subagents.engine.kernel.worker_tokens import SECRET_BYTES
from subagents.ports import Clock

_BASE32: Final = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's: no i, l, o, u, so that an id read aloud or retyped stays the same."""
ID_CHARS: Final = 10
SECOND_CHARS: Final = 2
"""Of them, at the front: the second in a count that begins again every 17 minutes."""
STEP_MS_MIN: Final = 100
"""Less than this is the time between two looks at two clocks, or a correction nobody needs."""


class SystemClock:
    """The machine's time as it was when last looked at, and what passed since while it was awake.

    Linux' monotonic clock stands still while the machine is suspended.
    """

    def __init__(self) -> None:
        self._ahead_ms = self._found_ahead_ms()
        """By how far the wall clock is ahead of the monotonic one."""

    @staticmethod
    def _found_ahead_ms() -> int:
        return (time.time_ns() - time.monotonic_ns()) // 1_000_000

    def now_ms(self) -> int:
        """See ``ports.Clock.now_ms``."""
        return self._ahead_ms + time.monotonic_ns() // 1_000_000

    def steady_ms(self) -> int:
        """See ``ports.EngineClock.steady_ms``."""
        return time.monotonic_ns() // 1_000_000

    def take_step_ms(self) -> int:
        """See ``ports.EngineClock.take_step_ms``."""
        step_ms = self._found_ahead_ms() - self._ahead_ms
        if abs(step_ms) < STEP_MS_MIN:
            return 0
        self._ahead_ms += step_ms
        return step_ms

    async def sleep(self, seconds: float) -> None:
        """See ``ports.Clock.sleep``."""
        await asyncio.sleep(seconds)


class RandomIds:
    """Ten characters for a run: short to type, and unique from the third or fourth one on.

    Two of them tell the second, 40 bits are random. An index over ids that are random all through
    has its newest entries all over the file: each run would dirty a page of its own in each index
    (docs/decisions/0067). What begins in the same second lies side by side; what the next one
    brings differs in its first character.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run_id(self) -> RunId:
        """See ``ports.Ids.run_id``."""
        second = self._clock.now_ms() // 1_000
        number = secrets.randbits(5 * (ID_CHARS - SECOND_CHARS)) << 5 * SECOND_CHARS
        number |= second & ((1 << 5 * SECOND_CHARS) - 1)
        chars = [_BASE32[(number >> 5 * place) & 31] for place in range(ID_CHARS)]
        return RunId(f"r-{''.join(chars)}")

    def session_uuid(self) -> str:
        """See ``ports.Ids.session_uuid``."""
        return str(uuid.uuid4())

    def token_secret(self) -> str:
        """See ``ports.Ids.token_secret``."""
        return secrets.token_urlsafe(SECRET_BYTES)
