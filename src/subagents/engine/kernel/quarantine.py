"""Effects that keep failing on our side: tried seldom, reported once, listed until they work.

A full disk or a directory that cannot be deleted must neither end a run wrongly nor be tried ten
thousand times a day unseen.
"""

from typing import Final, TypeAlias

from subagents.domain.run.values import RunId, Value

FAILURES: Final = 10
"""An effect that failed so many times in a row, in about two and a half minutes, is quarantined."""
TRY_AGAIN_S: Final = 900.0


class Quarantined(Value, frozen=True):
    """One effect that does not work."""

    effect: str
    """What is tried, in words: ``starting its worker``."""
    error: str
    since_ms: int


Quarantine: TypeAlias = dict[RunId, Quarantined]
"""The runs that are stuck; in memory, so that a restart gives each effect its chances again."""
