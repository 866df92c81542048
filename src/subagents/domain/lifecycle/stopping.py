"""Ending a live attempt: why it is stopped, and what its run comes to."""

from subagents.domain.lifecycle.steps import with_attempt
from subagents.domain.run.effects import Effect, InterruptAttempt, StopAttempt, Transition
from subagents.domain.run.events import CancelPlanned, CancelWithdrawn, InterruptRequested
from subagents.domain.run.outcome import Outcome, Reason, Status
from subagents.domain.run.run import Attempt, Cancel, PlannedCancel, Run, StopCause
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


def cancel_planned(run: Run, event: CancelPlanned) -> Transition:
    """Until its time comes, or it is taken back, the run goes on as if nothing were."""
    if run.control.cancel is not None:
        return Transition(run, stale=True)
    planned = PlannedCancel(
        by=event.by, due_ms=event.due_ms, reason=event.reason, of_turn=event.of_turn
    )
    return Transition(replace(run, control=replace(run.control, planned=planned)))


def turn_due(run: Run, planned: PlannedCancel, at_ms: int) -> Transition:
    """The time has come at which the turn under way was to end."""
    run = replace(run, control=replace(run.control, planned=None))
    return interrupted(run, InterruptRequested(at_ms=at_ms, by=planned.by, reason=planned.reason))


def cancel_withdrawn(run: Run, _: CancelWithdrawn) -> Transition:
    """Nothing is planned any more."""
    if run.control.planned is None:
        return Transition(run, stale=True)
    return Transition(replace(run, control=replace(run.control, planned=None)))


def cause_of(cancel: Cancel) -> StopCause:
    if cancel.stuck:
        return StopCause.STUCK
    return StopCause.PARENT if cancel.cascaded else StopCause.CANCEL


def outcome_of(cancel: Cancel) -> Outcome:
    reason = Reason.PARENT_ENDED if cancel.cascaded else Reason.CANCELLED_BY_CALLER
    if cancel.stuck:
        reason = Reason.STUCK
    return Outcome(status=Status.CANCELLED, reason=reason, error=cancel.reason)
