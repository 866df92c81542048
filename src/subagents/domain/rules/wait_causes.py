"""What a run waits for, as data: the same causes that ``why`` puts into words."""

from collections.abc import Mapping
from enum import StrEnum
from itertools import islice
from typing import Final, NamedTuple

from subagents.domain.rules.provider_limits import step_of
from subagents.domain.run.linked_runs import Children, Dependencies, LinkedRun
from subagents.domain.run.outcome import Reason, Status
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import RequestId, RunId

RUNS_MAX: Final = 20
"""Named of those that a run waits for; there may be ten thousand."""
HELD: Final = frozenset({Phase.WAITING, Phase.QUEUED, Phase.RETRY_WAIT})
"""Nothing of the run is at work: a pause holds it where it is."""


class WaitKind(StrEnum):
    PROVIDER = "provider"
    LANE = "lane"
    PLAN = "plan"
    """Others of its plan: at most so many work at once."""
    RUNS = "runs"
    RETRY = "retry"
    ANSWER = "answer"
    PAUSED = "paused"


class Refusal(NamedTuple):
    """A model's provider takes no more for now."""

    provider: str
    status: int | None = None
    """The HTTP status of the refusal; None = it is not known."""
    until_ms: int | None = None
    probe: RunId | None = None
    """The run that goes first and tells whether it takes requests again."""


class WaitCause(NamedTuple):
    """What a run waits for now."""

    kind: WaitKind
    refusal: Refusal | None = None
    """The refusal that ``PROVIDER`` waits for the end of; None with any other kind."""
    runs: tuple[LinkedRun, ...] = ()
    """The runs that ``RUNS`` waits for: at most ``RUNS_MAX`` that have not ended."""
    runs_total: int = 0
    request_id: RequestId | None = None
    """The request that ``ANSWER`` waits for; None with any other kind."""
    ends_ms: int | None = None
    """When it ends by itself."""
    gives_up_ms: int | None = None
    """When the run stops waiting for it."""


def is_paused(run: Run) -> bool:
    """Whether it stands still because somebody paused it."""
    return run.control.frozen_since_ms is not None or (run.control.paused and run.phase in HELD)


class ShownState(StrEnum):
    """What lists call a run besides its phase and the status of its outcome."""

    FAILED = "failed"
    """It ended, and its contract was not met."""
    BLOCKED = "blocked"
    """It waits for an answer to its worker."""
    PAUSED = "paused"


class State(StrEnum):
    """What people are shown of a run, in one of six words."""

    WAITING = "waiting"
    """It waits for runs, a free slot, its provider, a retry, or somebody who lets it go on."""
    WORKING = "working"
    NEEDS_YOU = "needs_you"
    """Its worker asks, or it waits for a yes."""
    OK = "ok"
    """It succeeded, and its contract is met."""
    FAILED = "failed"
    """It ended in any other way, and nobody cancelled it."""
    CANCELLED = "cancelled"


_IS_WAITING, _IS_WORKING = "is waiting", "is working"
WORDS_OF: Final[Mapping[State, tuple[str, ...]]] = {
    State.WAITING: (_IS_WAITING,),
    State.WORKING: (_IS_WORKING,),
    State.NEEDS_YOU: (ShownState.BLOCKED,),
    State.OK: (Status.OK,),
    State.FAILED: (Status.ERROR, Status.PARTIAL, Status.TIMEOUT, Status.LOST),
    State.CANCELLED: (Status.CANCELLED,),
}
"""What ``states_of`` has of a run in that state, and of no other."""


def states_of(run: Run) -> frozenset[str]:
    """Every word by which the run is found as it is now."""
    found = {str(run.phase)}
    if run.outcome is not None:
        found.add(run.outcome.status)
        if run.outcome.reason is Reason.VERIFICATION_FAILED:
            found.add(ShownState.FAILED)
    elif run.pending_requests:
        found.add(ShownState.BLOCKED)
    elif is_paused(run):
        found |= {ShownState.PAUSED, _IS_WAITING}
    else:
        found.add(_IS_WAITING if run.phase in HELD else _IS_WORKING)
    return frozenset(found)


def state_of(run: Run) -> State:
    """What people are shown of it as it is now."""
    words = states_of(run)
    return next(state for state, own in WORDS_OF.items() if not words.isdisjoint(own))


def wait_cause(run: Run, refusal: Refusal | None) -> WaitCause | None:
    """What the run waits for; None = it is at work, or has ended.

    ``refusal`` is that of its model's provider, when it keeps the run from going on.
    """
    # In the order in which a person would have to act: nothing else helps a run that is paused.
    if is_paused(run):
        return WaitCause(WaitKind.PAUSED)
    match run.phase:
        case Phase.WAITING:
            if run.approval is not None and run.approval.answer is None:
                return _answer(run)
            return _runs(run.waiting.dependencies, run.waiting.deadline_ms)
        case Phase.QUEUED if refusal is None:
            return WaitCause(WaitKind.LANE)
        case Phase.RUNNING if run.attempt.evidence.stop is not None:
            return None
        case Phase.RUNNING if run.pending_requests:
            return _answer(run)
        case Phase.ENDING | Phase.VERIFYING if run.children.active:
            return _runs(run.children)
        case Phase.RETRY_WAIT if run.retry.limited is None:
            return WaitCause(WaitKind.RETRY, ends_ms=run.retry.due_ms)
        case Phase.QUEUED | Phase.RUNNING | Phase.RETRY_WAIT if refusal is not None:
            return _provider(run, refusal)
        case _:
            return None


def _answer(run: Run) -> WaitCause:
    asked = run.pending_requests[0]
    return WaitCause(WaitKind.ANSWER, request_id=asked.id, gives_up_ms=asked.deadline_ms)


def _runs(awaited: Dependencies | Children, gives_up_ms: int | None = None) -> WaitCause:
    open_ones = (each for each in awaited if each.outcome is None)
    runs = tuple(islice(open_ones, RUNS_MAX))
    return WaitCause(WaitKind.RUNS, runs=runs, runs_total=awaited.active, gives_up_ms=gives_up_ms)


def _provider(run: Run, refusal: Refusal) -> WaitCause:
    limited = run.retry.limited
    return WaitCause(
        WaitKind.PROVIDER,
        refusal=refusal,
        ends_ms=refusal.until_ms,
        gives_up_ms=None if limited is None else limited.since_ms + step_of(run).wait_ms,
    )
