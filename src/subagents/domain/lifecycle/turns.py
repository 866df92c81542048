"""An attempt as its turns begin; a part of the reducer (``lifecycle``)."""

from subagents.domain.run.events import AttemptStarted
from subagents.domain.run.run import Attempt, Run, StopCause, Turn
from subagents.domain.run.values import replace


def first(run: Run, event: AttemptStarted) -> Attempt:
    """Its deadline counts from here."""
    attempt, timeout_ms = run.attempt, run.resolved.timeout_ms
    deadline = event.at_ms + timeout_ms if timeout_ms else None
    return replace(
        attempt,
        times=replace(
            attempt.times,
            started_at_ms=event.at_ms,
            deadline_ms=deadline,
        ),
        turn=attempt.turn if event.pid is None else Turn(pid=event.pid),
        session=attempt.session
        if event.native_session is None
        else replace(attempt.session, native=event.native_session),
    )


def further(run: Run, event: AttemptStarted) -> Attempt:
    """Judged by its own end, not by the exit of the turn before, nor by what ended only that."""
    attempt = run.attempt
    before = attempt.evidence
    is_over = before.stop is StopCause.INTERRUPT
    evidence = replace(
        before,
        exit=None,
        exit_at_ms=None,
        drained=False,
        is_error=False,
        error=None,
        is_limit=False,
        stop=None if is_over else before.stop,
        stop_at_ms=None if is_over else before.stop_at_ms,
    )
    return replace(
        attempt,
        turn=Turn(number=event.turn, pid=event.pid),
        evidence=evidence,
        outcome=None,
        times=replace(attempt.times, ended_at_ms=None),
    )
