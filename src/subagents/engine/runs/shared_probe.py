"""Looks at the disk: once for all who ask in the same moment; a bad look is never kept."""

import asyncio
from collections.abc import Callable
from typing import Final

from subagents.ports import Clock, OffLoop

LOOK_MS: Final = 100
"""So long a good look counts: a burst of spawns is no burst of looks. What goes bad meanwhile is
found by the commit or by the runtime."""
LOOKS_MAX: Final = 1_000


class Looks:
    """What was seen to be well just now, by name."""

    def __init__(self, off_loop: OffLoop, clock: Clock) -> None:
        self._off_loop = off_loop
        self._clock = clock
        self._looking: dict[str, asyncio.Future[bool]] = {}
        self._well_at_ms: dict[str, int] = {}

    async def is_well(self, name: str, look: Callable[[], bool]) -> bool:
        """The answer of ``look``, which blocks, or that of a moment ago when it was good."""
        now = self._clock.now_ms()
        if 0 <= now - self._well_at_ms.get(name, -LOOK_MS) < LOOK_MS:
            return True
        looking = self._looking.get(name)
        if looking is None:
            looking = self._looking[name] = asyncio.ensure_future(self._off_loop(look))
            looking.add_done_callback(lambda _: self._looking.pop(name, None))
        is_well = await asyncio.shield(looking)
        if is_well:
            if len(self._well_at_ms) >= LOOKS_MAX:
                self._well_at_ms.clear()
            self._well_at_ms[name] = now
        return is_well
