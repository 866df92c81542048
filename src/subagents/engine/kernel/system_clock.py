"""The real clock and the real source of ids."""

import asyncio
import base64
import os
import time
import uuid
from typing import Final

from subagents.domain.run.values import RunId
from subagents.engine.kernel.worker_tokens import SECRET_BYTES
from subagents.ports import Clock

_BASE32: Final = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's: no i, l, o, u, so that an id read aloud or retyped stays the same."""
_PAIRS: Final = tuple(first + second for first in _BASE32 for second in _BASE32)
READ_AHEAD_BYTES: Final = 4_096
"""What about 70 runs need."""
_WITH_SUSPENSION: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Where there is no such clock (macOS), the monotonic one goes on while the machine sleeps."""
STEP_MS_MIN: Final = 100
"""A smaller step is the time between two looks at two clocks, or of no consequence."""


class SystemClock:
    """The machine's time as it was when last looked at, and what passed since while it was awake.

    Linux' monotonic clock stands still while the machine is suspended.
    """

    def __init__(self) -> None:
        self._ahead_ms = self._found_ahead_ms()
        """How far the wall clock is ahead of the monotonic one."""

    @staticmethod
    def _found_ahead_ms() -> int:
        return (time.time_ns() - time.monotonic_ns()) // 1_000_000

    def now_ms(self) -> int:
        """See ``ports.Clock.now_ms``."""
        return self._ahead_ms + time.monotonic_ns() // 1_000_000

    def steady_ms(self) -> int:
        """See ``ports.EngineClock.steady_ms``."""
        return time.monotonic_ns() // 1_000_000

    def elapsed_ms(self) -> int:
        """See ``ports.EngineClock.elapsed_ms``."""
        return time.clock_gettime_ns(_WITH_SUSPENSION) // 1_000_000

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

    The first two tell the second, in a count that begins again every 17 minutes; 40 bits are
    random. An index over ids that are random all through
    has its newest entries all over the file: each run would dirty another page in each index
    (docs/decisions/0067). What begins in the same second lies side by side; what the next one
    brings differs in its first character.

    The kernel is asked for many random bytes at once, and each is used once: three questions for
    every run were three moments in which other threads took the interpreter from the loop.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bytes = b""
        self._at = 0

    def _random(self, number: int) -> bytes:
        begin, self._at = self._at, self._at + number
        if self._at > len(self._bytes):
            self._bytes = os.urandom(READ_AHEAD_BYTES)
            begin, self._at = 0, number
        return self._bytes[begin : self._at]

    def run_id(self) -> RunId:
        """See ``ports.Ids.run_id``."""
        second = self._clock.now_ms() // 1_000
        number = int.from_bytes(self._random(5), "big")
        chars = [_PAIRS[(second & 31) << 5 | second >> 5 & 31]]
        chars += [_PAIRS[(number >> 10 * place) & 1023] for place in range(4)]
        return RunId(f"r-{''.join(chars)}")

    def session_uuid(self) -> str:
        """See ``ports.Ids.session_uuid``."""
        return str(uuid.UUID(bytes=self._random(16), version=4))

    def token_secret(self) -> str:
        """See ``ports.Ids.token_secret``."""
        return base64.urlsafe_b64encode(self._random(SECRET_BYTES)).rstrip(b"=").decode("ascii")
