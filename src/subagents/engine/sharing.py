"""What runs in an engine besides where several daemons share its store; see ``parts.Sharing``."""

from collections.abc import Callable
from typing import Protocol

from subagents.engine.attempts.request_desk import Reserves


class PermitDesk(Reserves, Protocol):
    """Asks how many slots, and how much of shared caps, this daemon may use."""

    on_answer: Callable[[], None]
    """Called when more may be kept of caps than before."""

    async def run(self) -> None:
        """Ask as long as there is something to ask, until cancelled."""
        ...

    async def close(self) -> None:
        """Nobody asks any more, after ``run`` ended."""
        ...


class Membership(Protocol):
    """This daemon's part among those that share the store."""

    async def look(self) -> None:
        """One look, and what follows from it.

        Raises:
            StoreUnavailable: It cannot be asked now.
            Fenced: We are over.
        """
        ...

    async def run(self, right_s: float) -> None:
        """Look until cancelled, several times while a right of so many seconds holds."""
        ...

    async def leave(self) -> None:
        """This daemon stops: others have at once what nothing of is under way here."""
        ...

    async def drain(self, *, is_on: bool) -> None:
        """See ``Engine.drain``."""
        ...
