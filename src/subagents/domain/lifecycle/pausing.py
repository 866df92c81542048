"""A paused run: a worker that can stand still does, until the run is resumed."""

from subagents.domain.lifecycle.steps import with_attempt
from subagents.domain.run.effects import FreezeAttempt, ThawAttempt, Transition
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import replace


def paused(run: Run, at_ms: int) -> Transition:
    run = replace(run, control=replace(run.control, paused=True))
    return frozen(run, at_ms) if run.phase is Phase.RUNNING else Transition(run)


def frozen(run: Run, at_ms: int) -> Transition:
    """A paused run's live worker stands still, where its runtime can do that."""
    attempt = run.attempt
    if not run.resolved.abilities.freeze or attempt.evidence.stop is not None:
        return Transition(run)
    if run.control.frozen_since_ms is None:
        run = replace(run, control=replace(run.control, frozen_since_ms=at_ms))
    return Transition(run, effects=(FreezeAttempt(attempt=attempt.number),))


def thawed(run: Run, since_ms: int, at_ms: int) -> Transition:
    """Its worker goes on, and has the time that was left when it was stopped."""
    attempt, deadline_ms = run.attempt, run.attempt.times.deadline_ms
    if deadline_ms is not None:
        times = replace(attempt.times, deadline_ms=deadline_ms + max(0, at_ms - since_ms))
        run = with_attempt(run, replace(attempt, times=times))
    return Transition(run, effects=(ThawAttempt(attempt=attempt.number),))
