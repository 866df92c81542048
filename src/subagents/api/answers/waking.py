"""How a session hears that a run it spawned ended, in the words of a receipt for an agent.

A session that believes it will be woken, and is not, waits for ever; one that is woken need not
wait. So the receipt says which of the two it is.
"""

from enum import StrEnum
from typing import Final

from subagents.api.calls.services import Services
from subagents.domain.run.run import Run
from subagents.domain.run.values import SessionKey


class Waker(StrEnum):
    """What the client of a session does about it."""

    TASK = "task"
    """It keeps the call as an MCP task and looks after it."""
    HOOK = "hook"
    """It runs our hook at the end of a turn."""


NOT_WOKEN: Final = "this session is not woken: call sessions_wait"
_CLIENT: Final = {
    Waker.TASK: "this session is woken by the MCP task of this call",
    Waker.HOOK: "the plugin's hook wakes this session when it is idle and interactive, else it"
    " brings the news when a turn ends",
}


def wake(
    services: Services, session: SessionKey, requester: Run | None, waker: Waker | None
) -> str:
    """The sentence for the receipt of a session; ``requester`` is the run that speaks under it."""
    courier = services.engine.deliveries.courier_of(session)
    if requester is not None:
        if courier is not None:
            return "it comes into your turn as a message"
        if requester.resolved.abilities.resume:
            return "when your turn is over and all have ended, you get another with their results"
        return NOT_WOKEN
    # A client that keeps the call as a task looks after it itself, courier or not.
    if waker is Waker.TASK:
        return _CLIENT[waker]
    if courier is not None:
        return f"courier {courier} brings it to this session"
    return NOT_WOKEN if waker is None else _CLIENT[waker]
