"""When time itself will next change a run: by stored deadlines, none of which only a timer knows.

Timers and the sweep ask here; after a restart the same deadlines are found in the stored runs.
"""

from collections.abc import Sequence
from typing import Final

from subagents.domain.alerts import allowance
from subagents.domain.rules import provider_limits
from subagents.domain.rules.budgets import budgets
from subagents.domain.rules.evidence import settle_due_ms
from subagents.domain.run.events import TimerCause, TimerFired
from subagents.domain.run.run import SETTLED, Attempt, Phase, Run

WAIT_BEFORE_RULES_2_MS: Final = 1_800_000
"""Longest wait for dependencies of runs that were spawned when there was such a default."""

P = Phase
UNTIMED: Final = SETTLED - {P.ANNOUNCE_DEFERRED}
"""Phases that no deadline ends."""
_IMPORTANCE: Final = {cause: number for number, cause in enumerate(TimerCause)}


def longest_wait_ms(run: Run) -> int | None:
    """How long it waits for the runs before it; None = until they end."""
    seconds = run.spec.dependency_timeout_seconds
    if seconds is None:
        return WAIT_BEFORE_RULES_2_MS if run.rules < 2 else None
    return int(seconds * 1000)


def next_due_ms(run: Run) -> int | None:
    """When time itself will next change this run: its earliest stored deadline, or None."""
    # A loop and no `min` over a generator: this is asked after every event of every run.
    first: int | None = None
    for at_ms, _ in _deadlines(run):
        if at_ms is not None and (first is None or at_ms < first):
            first = at_ms
    return first


def timer_event(run: Run, now_ms: int) -> TimerFired | None:
    """The event for a run one of whose deadlines passed by ``now_ms``; None = none did."""
    passed = [cause for at_ms, cause in _deadlines(run) if at_ms is not None and at_ms <= now_ms]
    if not passed:
        return None
    # The cause is for readers of the journal: the reducer goes by the run and the time.
    return TimerFired(at_ms=now_ms, cause=min(passed, key=_IMPORTANCE.__getitem__))


def _deadlines(run: Run) -> Sequence[tuple[int | None, TimerCause]]:
    """All stored deadlines that count now; a time of None is none."""
    planned = None if run.control.planned is None else run.planned
    if planned is None:
        return _of_phase(run)
    return [(planned.due_ms, TimerCause.CANCEL), *_of_phase(run)]


def _of_phase(run: Run) -> Sequence[tuple[int | None, TimerCause]]:
    match run.phase:
        case P.WAITING:
            waits = (run.waiting.deadline_ms, TimerCause.DEPENDENCY_TIMEOUT)
            return [waits, *_of_questions(run)]
        # A queued run waits for a slot and not for a time: only limits of the whole run can end it.
        case P.QUEUED | P.RETRY_WAIT:
            found = [
                (provider_limits.deadline_ms(run), TimerCause.PROVIDER_WAIT),
                (budgets.due_ms(run), TimerCause.BUDGET),
            ]
            if run.phase is P.RETRY_WAIT and not run.control.paused:
                found.append((run.retry.due_ms, TimerCause.RETRY_DUE))
            return found
        case P.SPAWNING | P.RUNNING:
            return _of_live_attempt(run)
        case P.ENDING:
            found = [(budgets.due_ms(run), TimerCause.BUDGET)]
            if run.attempt.outcome is None:
                found.append((settle_due_ms(run.attempt.evidence), TimerCause.SETTLE))
            return found
        case P.ANNOUNCE_DEFERRED:
            due = run.delivery.due_ms if run.delivery else None
            return [(due, TimerCause.DELIVERY_DUE)]
        case _:
            return ()


def _of_questions(run: Run) -> list[tuple[int | None, TimerCause]]:
    asked = run.questions.requests
    return [(r.deadline_ms, TimerCause.QUESTION_TIMEOUT) for r in asked if r.answer is None]


def _of_live_attempt(run: Run) -> list[tuple[int | None, TimerCause]]:
    attempt = run.attempts[-1]
    found = _of_questions(run) if run.questions.requests else []
    found += [
        (settle_due_ms(attempt.evidence), TimerCause.SETTLE),
        (allowance.digest_due_ms(run), TimerCause.DIGEST),
        (budgets.due_ms(run), TimerCause.BUDGET),
    ]
    # A frozen worker's time stands still with it: `reduce` moves its deadline along.
    if attempt.evidence.stop is None and run.control.frozen_since_ms is None:
        found += [
            (attempt.times.deadline_ms, TimerCause.DEADLINE),
            (warn_at_ms(run, attempt), TimerCause.DEADLINE_WARNING),
        ]
    return found


def warn_at_ms(run: Run, attempt: Attempt) -> int | None:
    """When the worker is warned of its deadline; None = it was, or it takes no messages."""
    times = attempt.times
    if times.warned or times.deadline_ms is None or not run.resolved.abilities.steer:
        return None
    # A tenth of the time is left: enough to write down what there is.
    return times.deadline_ms - run.resolved.timeout_ms // 10
