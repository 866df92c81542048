"""What ``cleanup: "delete"`` takes out of a run and its journal: the texts for its worker.

The task and the messages to the worker go; the run, its events, its result and its usage stay. Both
sides must agree, so that an erased journal still folds to its run: what an event brought in is
replaced in the event by ``erased_event``, and in the run by ``erased``, which the reducer calls at
``CleanedUp``.
"""

from typing import Final

from subagents.domain.run.events import Event, Fact, Spawned, SteerRequested
from subagents.domain.run.run import Attempt, Run
from subagents.domain.run.values import replace

DELETED: Final = "(deleted)"
"""Stands where the text was."""

BEARERS: Final[tuple[type[Fact], ...]] = (Spawned, SteerRequested)
"""The events with such texts."""


def erased(run: Run, at_ms: int) -> Run:
    """The run without the texts for its worker; one that is settled has no message left to send."""
    return replace(
        run,
        spec=replace(run.spec, task=DELETED),
        attempts=tuple(map(_erased_attempt, run.attempts)),
        times=replace(run.times, erased_at_ms=at_ms),
    )


def erased_event(event: Event) -> Event:
    """The event as the journal keeps it; one that is no bearer, or was erased before, as it is."""
    match event:
        case Spawned():
            return replace(event, spec=replace(event.spec, task=DELETED))
        case SteerRequested():
            return replace(event, message=DELETED)
        case _:
            return event


def _erased_attempt(attempt: Attempt) -> Attempt:
    if attempt.session.opening is None:
        return attempt
    return replace(attempt, session=replace(attempt.session, opening=DELETED))
