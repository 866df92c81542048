"""What becomes of a run's deadlines when the machine's clock is set, or the machine was suspended.

They count the time in which somebody could work: each keeps the distance from now that it had.
What is only a record (when it was spawned, what was said and tried when) stays as it was written.
"""

from subagents.domain.run.run import Attempt, Run
from subagents.domain.run.values import replace


def moved(run: Run, by_ms: int) -> Run:
    """The run with all that time alone will still do to it so much later; negative = earlier.

    The beginning of what is under way moves, too: how long it takes is counted from there.
    """
    # Every stored time that something is due at, or measured from, must be in here: one that is
    # left out comes hours too early, or late, after a laptop slept.
    if run.delivery is not None:
        due_ms, since_ms = run.delivery.due_ms, run.delivery.first_failure_ms
        moved_on = {"due_ms": _moved(due_ms, by_ms), "first_failure_ms": _moved(since_ms, by_ms)}
        # When its work began and ended is a record.
        return replace(run, delivery=replace(run.delivery, **moved_on))
    return replace(
        run,
        times=replace(
            run.times,
            phase_since_ms=run.times.phase_since_ms + by_ms,
            started_at_ms=_moved(run.times.started_at_ms, by_ms),
        ),
        waiting=replace(run.waiting, deadline_ms=_moved(run.waiting.deadline_ms, by_ms)),
        questions=replace(
            run.questions,
            requests=tuple(
                each
                if each.answer is not None
                else replace(each, deadline_ms=_moved(each.deadline_ms, by_ms))
                for each in run.questions.requests
            ),
        ),
        retry=replace(
            run.retry,
            due_ms=_moved(run.retry.due_ms, by_ms),
            limited=run.retry.limited
            and replace(run.retry.limited, since_ms=run.retry.limited.since_ms + by_ms),
        ),
        control=replace(
            run.control,
            frozen_since_ms=_moved(run.control.frozen_since_ms, by_ms),
            planned=run.control.planned
            and replace(run.control.planned, due_ms=run.control.planned.due_ms + by_ms),
        ),
        alerts=replace(run.alerts, since_ms=_moved(run.alerts.since_ms, by_ms)),
        attempts=(*run.attempts[:-1], *(_attempt(each, by_ms) for each in run.attempts[-1:])),
    )


def _attempt(attempt: Attempt, by_ms: int) -> Attempt:
    times = replace(attempt.times, deadline_ms=_moved(attempt.times.deadline_ms, by_ms))
    if attempt.outcome is not None:
        return replace(attempt, times=times)
    times = replace(
        times,
        requested_at_ms=times.requested_at_ms + by_ms,
        started_at_ms=_moved(times.started_at_ms, by_ms),
    )
    exit_at_ms = _moved(attempt.evidence.exit_at_ms, by_ms)
    return replace(attempt, times=times, evidence=replace(attempt.evidence, exit_at_ms=exit_at_ms))


def _moved(at_ms: int | None, by_ms: int) -> int | None:
    return None if at_ms is None else at_ms + by_ms
