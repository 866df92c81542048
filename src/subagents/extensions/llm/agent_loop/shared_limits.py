"""When a provider may be asked again, shared by all workers that use the same key.

Two small files per provider, address and key, named by a hash: ``H.json`` holds until when nobody
asks, and how often in a row the provider refused; the lock ``H.probe`` is held by the one worker
that asks when that time has passed. The others wait for what it finds out. A worker that dies lets
go of its lock, and the next one asks.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import msgspec

FIRST_S: Final = 1.0
LAST_S: Final = 60.0
"""The longest wait where there is no ``Retry-After``: 1, 2, 4, … seconds."""
LEAST_S: Final = 0.2
"""The shortest wait, also when the provider asks for none."""
CALM_S: Final = 300.0
"""How long there is no refusal until the count begins again."""
ODD_S: Final = 48 * 3600.0
"""A time so far ahead is a clock that was set back."""
POLL_S: Final = 0.5
PROBE_POLL_S: Final = 0.1


class ProviderClosed(msgspec.Struct, frozen=True, rename="camel"):
    """The provider takes no more."""

    until_ms: int
    level: int = 1
    """How many refusals in a row led to this."""


def fingerprint(provider: str, base_url: str | None, key: str) -> str:
    """Names who shares a limit; the key cannot be found from it."""
    shared = "\0".join((provider, base_url or "", key))
    return hashlib.sha256(shared.encode("utf-8", "surrogateescape")).hexdigest()


class Turn:
    """One request that is allowed now; its caller reports how it went."""

    def __init__(self, gate: "LimitGate", *, is_probe: bool) -> None:
        self._gate = gate
        self.is_probe = is_probe

    def served(self) -> None:
        """The provider takes requests again."""
        if self.is_probe:
            self._gate.clear()

    def refused(self, retry_after_s: float | None) -> float:
        """It takes no more for now.

        Args:
            retry_after_s: When to come again, if it named a time.

        Returns:
            Seconds from now until anybody asks again.
        """
        return self._gate.close(retry_after_s, is_probe=self.is_probe)


class LimitGate:
    """Lets requests through as the provider allows.

    Args:
        directory: Shared by all workers; exists.
        name: See ``fingerprint``.
        wall_s: The time, as all processes see it.
        chance: From 0 to 1, for the jitter.
    """

    def __init__(
        self,
        directory: Path,
        name: str,
        *,
        wall_s: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._state = directory / f"{name}.json"
        self._lock = directory / f"{name}.lock"
        self._probe = directory / f"{name}.probe"
        self._wall_s = wall_s
        self._chance = chance

    @asynccontextmanager
    async def turn(self, on_wait: Callable[[float], None]) -> AsyncIterator[Turn]:
        """Wait until a request may be sent.

        Args:
            on_wait: Called once each time that a wait begins, with its seconds.
        """
        reported_until = 0
        while True:
            closed = self.closed()
            if closed is None:
                yield Turn(self, is_probe=False)
                return
            left = closed.until_ms / 1000 - self._wall_s()
            if left > 0:
                if closed.until_ms != reported_until:
                    reported_until = closed.until_ms
                    on_wait(left)
                await asyncio.sleep(min(left, POLL_S))
                continue
            probe = _lock_now(self._probe)
            if probe is None:
                await asyncio.sleep(PROBE_POLL_S)
                continue
            try:
                if self.closed() != closed:
                    continue  # another one asked meanwhile
                yield Turn(self, is_probe=True)
                return
            finally:
                os.close(probe)

    def closed(self) -> ProviderClosed | None:
        """What is known of the provider now; None = nothing against asking."""
        try:
            found = msgspec.json.decode(self._state.read_bytes(), type=ProviderClosed)
        except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        ahead_s = found.until_ms / 1000 - self._wall_s()
        return None if ahead_s > ODD_S or -ahead_s > CALM_S else found

    def clear(self) -> None:
        """Everybody may ask."""
        with self._locked():
            self._state.unlink(missing_ok=True)

    def close(self, retry_after_s: float | None, *, is_probe: bool) -> float:
        """See ``Turn.refused``."""
        with self._locked():
            before = self.closed()
            # Those who asked at the same time as the first one raise no level.
            level = 1 if before is None else before.level + (1 if is_probe else 0)
            wait_s = self._wait_s(level, retry_after_s)
            until_ms = int((self._wall_s() + wait_s) * 1000)
            if before is not None:
                until_ms = max(until_ms, before.until_ms)
            draft = self._state.with_suffix(".draft")
            draft.write_bytes(msgspec.json.encode(ProviderClosed(until_ms, level)))
            draft.replace(self._state)
        return until_ms / 1000 - self._wall_s()

    def _wait_s(self, level: int, retry_after_s: float | None) -> float:
        if retry_after_s is not None:
            # Spread out: all the others got the same time.
            return max(retry_after_s, LEAST_S) + min(0.1 * retry_after_s, 1.0) * self._chance()
        most = min(FIRST_S * 2.0 ** min(level - 1, 30), LAST_S)
        return most * (0.75 + 0.25 * self._chance())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Held for microseconds."""
        descriptor = _opened(self._lock)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _lock_now(path: Path) -> int | None:
    """A descriptor that holds the lock, or None when another one does."""
    descriptor = _opened(path)
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor
    os.close(descriptor)
    return None
