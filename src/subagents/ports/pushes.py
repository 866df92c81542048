"""Who outside is told of each change of a run's state, for as long as the run lasts."""

from collections.abc import Sequence
from typing import Protocol

from subagents.domain.run.values import RunId, Value


class PushTarget(Value, frozen=True, rename="camel"):
    """One address that a client named for one run."""

    id: str
    """The client's name for it, unique within the run."""
    url: str
    token: str = ""
    """Handed back with each notification, so that the receiver knows whose it is."""
    authorization: str = ""
    """The Authorization header; empty = none."""
    told: str = ""
    """The state that the receiver knows."""


class Pushes(Protocol):
    """The addresses of all runs, on disk. Blocking."""

    def allows(self, url: str) -> bool:
        """Whether the user's configuration lets anything be sent there."""
        ...

    def put(self, run_id: RunId, target: PushTarget) -> None:
        """Keep it, durably, in the place of one with the same id; a repetition changes nothing.

        Raises:
            OSError: It could not be written, and is not kept.
        """
        ...

    def of(self, run_id: RunId) -> Sequence[PushTarget]:
        """Those of a run; none once it ended and was told."""
        ...

    def remove(self, run_id: RunId, target_id: str) -> None:
        """Send nothing more there; nothing when there is none such.

        Raises:
            OSError: It could not be written, and is still there.
        """
        ...
