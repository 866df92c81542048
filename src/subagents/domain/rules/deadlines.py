"""When time itself will next change a run: its stored deadlines, none of them in a timer's memory.

Source: 2-lifecycle §4, §5, §11.
"""

from subagents.domain.alerts import allowance as noise
from subagents.domain.rules import budgets
from subagents.domain.rules import provider_limits as limits
from subagents.domain.rules.evidence import settle_due_ms
from subagents.domain.run.run import Attempt, Phase, Run

P = Phase


def next_due_ms(run: Run) -> int | None:
    """When time itself will next change this run: its earliest stored deadline, or None."""
    match run.phase:
        case P.WAITING:
            return run.wait_deadline_ms
        case P.QUEUED:
            return _earliest(limits.deadline_ms(run), budgets.due_ms(run))
        case P.RETRY_WAIT:
            due_ms = None if run.paused else run.retry_due_ms
            return _earliest(due_ms, limits.deadline_ms(run), budgets.due_ms(run))
        case P.SPAWNING | P.RUNNING:
            return _earliest(*_live_dues(run))
        case P.ENDING:
            is_over = run.attempt.outcome is not None
            settles_ms = None if is_over else settle_due_ms(run.attempt.evidence)
            return _earliest(settles_ms, budgets.due_ms(run))
        case P.ANNOUNCE_DEFERRED:
            return run.delivery.due_ms if run.delivery else None
        case _:
            return None


def _earliest(*dues: int | None) -> int | None:
    return min((due for due in dues if due is not None), default=None)


def _live_dues(run: Run) -> list[int | None]:
    attempt = run.attempt
    dues = [each.deadline_ms for each in run.pending_requests]
    dues += [settle_due_ms(attempt.evidence), noise.digest_due_ms(run), budgets.due_ms(run)]
    if attempt.deadline_ms is not None and attempt.evidence.stop is None:
        warn = warn_at_ms(run, attempt)
        dues.append(attempt.deadline_ms if warn is None else warn)
    return dues


def warn_at_ms(run: Run, attempt: Attempt) -> int | None:
    """When the worker is told that its deadline comes; None = it was, or it cannot be told."""
    if attempt.warned or attempt.deadline_ms is None or not run.resolved.abilities.steer:
        return None
    return attempt.deadline_ms - run.resolved.timeout_ms // 10
