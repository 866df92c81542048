"""Small steps that every part of the reducer takes."""

from collections.abc import Iterable
from typing import Final

from subagents.domain.run.effects import ConsumeChildren, FollowUp, Transition
from subagents.domain.run.run import Attempt, Phase, Run, Steer
from subagents.domain.run.values import RunId, replace

TOLD_MAX: Final = 20
"""Messages of at most 4,000 characters that a run keeps for an attempt in a new session."""


def enter(run: Run, phase: Phase, at_ms: int, **changes: object) -> Run:
    """The run in ``phase`` since now, and with these changes."""
    times = replace(run.times, phase_since_ms=at_ms)
    return replace(run, phase=phase, times=times, **changes)


def with_attempt(run: Run, attempt: Attempt) -> Run:
    """The run with its newest attempt replaced."""
    return replace(run, attempts=(*run.attempts[:-1], attempt))


def steered(run: Run, steers: tuple[Steer, ...]) -> Run:
    """The run with these messages left for its worker; the others went to it."""
    if steers == run.control.steers:
        return run
    gone = (each for each in run.control.steers if each not in steers)
    told = (*run.control.told, *gone)[-TOLD_MAX:] if run.rules > 2 else ()
    return replace(run, control=replace(run.control, steers=steers, told=told))


def consume(children: Iterable[RunId]) -> tuple[FollowUp, ...]:
    """The follow-up by which the results of these count as read, if there are any."""
    run_ids = tuple(children)
    return (ConsumeChildren(children=run_ids),) if run_ids else ()


def join(step: Transition, followups: tuple[FollowUp, ...]) -> Transition:
    """The step, with these follow-ups before its own."""
    return step._replace(followups=(*followups, *step.followups))
