"""Ending a live attempt: why it is stopped, and what its run comes to."""

from subagents.domain.lifecycle.steps import with_attempt
from subagents.domain.run.effects import Effect, InterruptAttempt, StopAttempt, Transition
from subagents.domain.run.events import InterruptRequested
from subagents.domain.run.outcome import Outcome, Reason, Status
from subagents.domain.run.run import Attempt, Cancel, Run, StopCause
from subagents.domain.run.values import replace


def begin(run: Run, cause: StopCause, at_ms: int) -> tuple[Attempt, tuple[Effect, ...]]:
    evidence = replace(run.attempt.evidence, stop=cause, stop_at_ms=at_ms)
    attempt = replace(run.attempt, evidence=evidence)
    return attempt, (StopAttempt(attempt=attempt.number, grace_ms=run.resolved.grace_ms),)


def interrupted(run: Run, event: InterruptRequested) -> Transition:
    """Politely first: what its program says at a turn's end is worth the seconds."""
    if run.attempt.evidence.stop is not None:
        return Transition(run, stale=True)
    attempt, effects = begin(run, StopCause.INTERRUPT, event.at_ms)
    polite = InterruptAttempt(attempt=attempt.number)
    return Transition(with_attempt(run, attempt), effects=(polite, *effects))


def cause_of(cancel: Cancel) -> StopCause:
    if cancel.stuck:
        return StopCause.STUCK
    return StopCause.PARENT if cancel.cascaded else StopCause.CANCEL


def outcome_of(cancel: Cancel) -> Outcome:
    reason = Reason.PARENT_ENDED if cancel.cascaded else Reason.CANCELLED_BY_CALLER
    if cancel.stuck:
        reason = Reason.STUCK
    return Outcome(status=Status.CANCELLED, reason=reason, error=cancel.reason)
