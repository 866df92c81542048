"""The real clock and the real source of ids."""

import asyncio
import secrets
import time
import uuid
from typing import Final

from subagents.domain.run.values import RunId
from subagents.engine.kernel.worker_tokens import SECRET_BYTES

_BASE32: Final = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's: no i, l, o, u, so that an id read aloud or retyped stays the same."""
ID_CHARS: Final = 10


class SystemClock:
    """Wall-clock time; it may jump, and every deadline is checked again when it does."""

    def now_ms(self) -> int:
        """See ``ports.Clock.now_ms``."""
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        """See ``ports.Clock.sleep``."""
        await asyncio.sleep(seconds)


class RandomIds:
    """50 random bits for a run: short to type, unique prefixes from the third character on."""

    def run_id(self) -> RunId:
        """See ``ports.Ids.run_id``."""
        number = secrets.randbits(5 * ID_CHARS)
        chars = (_BASE32[(number >> 5 * place) & 31] for place in range(ID_CHARS))
        return RunId(f"r-{''.join(chars)}")

    def session_uuid(self) -> str:
        """See ``ports.Ids.session_uuid``."""
        return str(uuid.uuid4())

    def token_secret(self) -> str:
        """See ``ports.Ids.token_secret``."""
        return secrets.token_urlsafe(SECRET_BYTES)
