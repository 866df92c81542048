"""An attempt as its turns begin; a part of the reducer (``reduce``)."""

from typing import Final

from subagents.domain.rules import provider_limits
from subagents.domain.run.effects import Transition
from subagents.domain.run.events import AttemptStarted, ChildReturned
from subagents.domain.run.outcome import Reason
from subagents.domain.run.run import Attempt, Run, StopCause, Turn
from subagents.domain.run.values import RunId, replace

BY_ITSELF: Final = frozenset({None, Reason.REPORTED_PARTIAL, Reason.REPORTED_FAILED})
"""Why an attempt ended whose worker came to its own end, whatever it says of its work."""


def first(run: Run, event: AttemptStarted) -> Attempt:
    """Its deadline counts from here."""
    attempt, timeout_ms = run.attempt, run.resolved.timeout_ms
    deadline = event.at_ms + timeout_ms if timeout_ms else None
    return replace(
        attempt,
        times=replace(
            attempt.times,
            started_at_ms=event.at_ms,
            deadline_ms=provider_limits.inherited_deadline_ms(run) or deadline,
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
    # An interrupt ended one turn; every other stop is of the attempt, and holds for this turn too.
    is_over = before.stop is StopCause.INTERRUPT
    evidence = replace(
        before,
        exit=None,
        exit_at_ms=None,
        lease_lost=before.lease_lost and not run.rules,  # 0.1.0 kept it, and old journals must fold
        drained=False,
        is_error=False,
        error=None,
        is_limit=False,
        stop=None if is_over else before.stop,
        stop_at_ms=None if is_over else before.stop_at_ms,
    )
    return replace(
        attempt,
        turn=Turn(number=event.turn, pid=event.pid, only_tells=attempt.turn.only_tells),
        evidence=evidence,
        outcome=None,
        hold=attempt.hold if run.rules < 3 else None,  # it was of a request of the turn before
        times=replace(attempt.times, ended_at_ms=None),
    )


def returned(run: Run, event: ChildReturned) -> Transition:
    """Remember in which turn a child's result went out to the worker."""
    attempt = run.attempt
    place = (event.attempt, event.turn)
    is_open = attempt.outcome is None and place == (attempt.number, attempt.turn.number)
    children = run.children.returned(event.child, place) if is_open else run.children
    if children is run.children:
        return Transition(run, stale=True)
    return Transition(replace(run, children=children))


def took(run: Run) -> tuple[Run, tuple[RunId, ...]]:
    """The run whose ended turn took the results that it was handed, and the children they are of.

    A worker that ended well lived on after the call that returned them, and answered knowing
    them. One that was stopped or broke down may have been in the middle of that call.
    """
    attempt = run.attempt
    if attempt.outcome is None or attempt.outcome.reason not in BY_ITSELF:
        return run, ()
    place = (attempt.number, attempt.turn.number)
    taken = tuple(child.run_id for child in run.children.untold if child.returned_in == place)
    return (replace(run, children=run.children.told(taken)), taken) if taken else (run, ())
