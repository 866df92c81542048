"""Looks at the disk while spawns go on, so that only the first of them waits for a look.

See docs/decisions/0068.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from subagents.engine.kernel.waiters import Waiters
from subagents.ports import EngineClock, OffLoop

PROBE_MS: Final = 100
"""How old an answer may be before the next look: a burst of spawns is no burst of probes."""
PROBE_MS_MAX: Final = 1_000
"""How long a good answer counts at most, while the next look is under way that no spawn waits for.
What goes bad meanwhile is found by the commit or by the runtime."""
PROBES_MAX: Final = 1_000


class CachedProbe:
    """Looks at the disk, once for all who ask in the same moment; a bad answer is never kept."""

    def __init__(self, off_loop: OffLoop, clock: EngineClock) -> None:
        self._off_loop = off_loop
        self._clock = clock
        self._looking: dict[str, tuple[asyncio.Future[bool], Waiters]] = {}
        self._well_at_ms: dict[str, int] = {}

    async def is_well(self, name: str, look: Callable[[], bool]) -> bool:
        """The answer of ``look``, which blocks; a good one of a moment ago is good enough.

        Args:
            name: What is looked at.
            look: One look is for all who ask meanwhile.
        """
        at_ms = self._well_at_ms.get(name)
        age_ms = PROBE_MS_MAX if at_ms is None else self._clock.steady_ms() - at_ms
        if age_ms >= PROBE_MS and name not in self._looking:
            self._look(name, look)
        if age_ms < PROBE_MS_MAX:
            return True
        looking, waiters = self._looking[name]
        await waiters.join()
        return looking.result()

    def _look(self, name: str, look: Callable[[], bool]) -> None:
        asked: asyncio.Future[bool] = asyncio.ensure_future(self._off_loop(look))
        self._looking[name] = asked, Waiters()
        began_ms = self._clock.steady_ms()
        asked.add_done_callback(lambda _: self._looked(name, began_ms))

    def _looked(self, name: str, began_ms: int) -> None:
        looking, waiters = self._looking.pop(name)
        self._well_at_ms.pop(name, None)
        if not looking.cancelled() and looking.exception() is None and looking.result():
            if len(self._well_at_ms) >= PROBES_MAX:
                self._well_at_ms.clear()
            self._well_at_ms[name] = began_ms
        waiters.wake()
