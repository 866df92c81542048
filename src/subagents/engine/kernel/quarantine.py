"""Effects that keep failing on our side: tried seldom, reported once, listed until they work.

A full disk or a directory that cannot be deleted must neither end a run wrongly nor be tried ten
thousand times a day unseen.
"""

from typing import Final

from subagents.domain.run.values import RunId, Value

FAILURES: Final = 10
"""So many times in a row, over about two and a half minutes, and it is quarantined."""
TRY_AGAIN_S: Final = 900.0


class Quarantined(Value, frozen=True):
    """One effect that does not work."""

    effect: str
    """In words: ``starting its worker``."""
    error: str
    since_ms: int


class Quarantine:
    """In memory: after a restart an effect gets its chances anew."""

    def __init__(self) -> None:
        self._held: dict[RunId, Quarantined] = {}

    def hold(self, run_id: RunId, found: Quarantined) -> bool:
        """Note it; False = the run was known to be stuck on this effect."""
        known = self._held.get(run_id)
        self._held[run_id] = found if known is None else known
        return known is None

    def release(self, run_id: RunId) -> None:
        """It worked. Idempotent."""
        self._held.pop(run_id, None)

    def clear(self) -> None:
        self._held.clear()

    def of(self, run_id: RunId) -> Quarantined | None:
        return self._held.get(run_id)
