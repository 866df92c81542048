"""Which event may come in which phase, and where it may lead: data, not code.

docs/lifecycle.md is drawn from ``TRANSITIONS``; the tests walk it. A pair in ``STALE`` is a late
or doubled fact. A pair in neither is a broken promise and raises.
"""

from collections.abc import Mapping
from typing import Final

from subagents.domain.run import events
from subagents.domain.run.run import OVER, SETTLED, Phase

P = Phase
# Where the end of an attempt can lead: to what it spawned, its contract, another attempt, the end.
_ENDS: Final = frozenset({P.ENDING, P.VERIFYING, P.RETRY_WAIT, P.ANNOUNCING})
_HELD: Final = (P.WAITING, P.QUEUED, P.RETRY_WAIT)
_LIVE: Final = (P.SPAWNING, P.RUNNING)

TRANSITIONS: Final[Mapping[tuple[Phase, type], frozenset[Phase]]] = {
    (P.WAITING, events.DependencySettled): frozenset({P.WAITING, P.QUEUED, P.ANNOUNCING}),
    (P.WAITING, events.FannedOut): frozenset({P.ENDING, P.ANNOUNCING}),
    (P.WAITING, events.RequestAnswered): frozenset({P.WAITING, P.QUEUED, P.ANNOUNCING}),
    (P.WAITING, events.TimerFired): frozenset({P.WAITING, P.ANNOUNCING}),
    (P.QUEUED, events.SlotGranted): frozenset({P.SPAWNING}),
    (P.QUEUED, events.TimerFired): frozenset({P.QUEUED, P.ANNOUNCING}),
    # The look follows the attempt as an effect: by then the run may have gone on to the next one,
    # but not further than its start, which has looked at the same files itself.
    **{
        (phase, events.FilesLeft): frozenset({phase})
        for phase in P
        if phase in SETTLED or phase in {P.RETRY_WAIT, P.QUEUED, P.SPAWNING}
    },
    (P.SPAWNING, events.BaselineTaken): frozenset({P.SPAWNING}),
    (P.SPAWNING, events.AttemptStarted): frozenset({P.RUNNING}),
    (P.SPAWNING, events.AttemptStartFailed): _ENDS,
    # A further turn of the attempt, for results of its children or messages to it.
    (P.ENDING, events.AttemptStarted): frozenset({P.RUNNING}),
    (P.ENDING, events.AttemptStartFailed): _ENDS,
    (P.ENDING, events.SignalReceived): _ENDS,
    (P.ENDING, events.TimerFired): _ENDS,
    (P.ENDING, events.ChildSpawned): frozenset({P.ENDING}),  # of what never had a worker
    (P.ENDING, events.ChildSettled): _ENDS,
    (P.ENDING, events.ChildTold): frozenset({P.ENDING}),
    (P.ENDING, events.ChildReturned): frozenset({P.ENDING}),
    (P.ENDING, events.ChildSpent): frozenset({P.ENDING}),
    (P.ENDING, events.BudgetExhausted): _ENDS,
    (P.ENDING, events.CancelRequested): frozenset({P.ENDING, P.ANNOUNCING}),
    (P.ENDING, events.SteerRequested): frozenset({P.ENDING}),
    (P.ENDING, events.Resumed): _ENDS,
    (P.VERIFYING, events.Resumed): frozenset({P.VERIFYING}),
    (P.VERIFYING, events.ChecksPassed): frozenset({P.VERIFYING}),
    (P.VERIFYING, events.ChildSpawned): frozenset({P.VERIFYING}),
    (P.VERIFYING, events.ChildSpent): frozenset({P.VERIFYING}),
    (P.VERIFYING, events.ChildSettled): frozenset({P.VERIFYING, P.ANNOUNCING}),
    (P.VERIFYING, events.CancelRequested): frozenset({P.VERIFYING, P.ANNOUNCING}),
    (P.VERIFYING, events.TimerFired): frozenset({P.VERIFYING, P.ANNOUNCING}),
    (P.VERIFYING, events.VerificationFinished): frozenset({P.RETRY_WAIT, P.ANNOUNCING}),
    (P.VERIFYING, events.BudgetExhausted): frozenset({P.VERIFYING}),
    (P.RETRY_WAIT, events.TimerFired): frozenset({P.RETRY_WAIT, P.QUEUED, P.ANNOUNCING}),
    (P.ANNOUNCING, events.DeliverySettled): frozenset(
        {P.CLEANUP_PENDING, P.ANNOUNCE_DEFERRED, P.COMPLETED_GIVEUP}
    ),
    (P.ANNOUNCING, events.AnnouncementConsumed): frozenset({P.CLEANUP_PENDING}),
    (P.ANNOUNCE_DEFERRED, events.TimerFired): frozenset({P.ANNOUNCE_DEFERRED, P.ANNOUNCING}),
    (P.ANNOUNCE_DEFERRED, events.AnnouncementConsumed): frozenset({P.CLEANUP_PENDING}),
    (P.ANNOUNCE_DEFERRED, events.Redelivered): frozenset({P.ANNOUNCING}),
    (P.CLEANUP_PENDING, events.CleanedUp): frozenset({P.COMPLETED}),
    # A try that was under way when somebody read the result: kept for the record.
    (P.CLEANUP_PENDING, events.DeliverySettled): frozenset({P.CLEANUP_PENDING}),
    (P.CLEANUP_PENDING, events.AnnouncementConsumed): frozenset({P.CLEANUP_PENDING}),
    (P.COMPLETED, events.AnnouncementConsumed): frozenset({P.COMPLETED}),
    (P.COMPLETED, events.DeliverySettled): frozenset({P.COMPLETED}),
    (P.COMPLETED, events.Redelivered): frozenset({P.COMPLETED}),
    (P.COMPLETED, events.Archived): frozenset({P.COMPLETED}),
    (P.COMPLETED_GIVEUP, events.AnnouncementConsumed): frozenset({P.COMPLETED_GIVEUP}),
    (P.COMPLETED_GIVEUP, events.Redelivered): frozenset({P.ANNOUNCING, P.COMPLETED_GIVEUP}),
    (P.COMPLETED_GIVEUP, events.Archived): frozenset({P.COMPLETED_GIVEUP}),
    **{(phase, events.CancelRequested): frozenset({P.ANNOUNCING}) for phase in _HELD},
    **{(phase, events.CancelRequested): frozenset({phase}) for phase in _LIVE},
    **{(phase, events.BudgetExhausted): frozenset({P.ANNOUNCING}) for phase in _HELD},
    **{(phase, events.BudgetExhausted): frozenset({phase}) for phase in _LIVE},
    **{(phase, events.InterruptRequested): frozenset({phase}) for phase in _LIVE},
    **{
        (phase, kind): frozenset({phase})
        for phase in P
        if phase in SETTLED
        for kind in (events.Continued, events.Dismissed)
    },
    **{(phase, events.Paused): frozenset({phase}) for phase in (*_HELD, *_LIVE)},
    **{(phase, events.Resumed): frozenset({phase}) for phase in (*_HELD, *_LIVE)},
    **{
        (phase, kind): frozenset({phase})
        for phase in P
        if phase not in SETTLED
        for kind in (events.Prioritized, events.CancelPlanned, events.CancelWithdrawn)
    },
    **{(phase, events.SteerRequested): frozenset({phase}) for phase in (*_HELD, *_LIVE)},
    **{(phase, events.SteerSettled): frozenset({phase}) for phase in (*_LIVE, P.ENDING)},
    **{(phase, events.AttemptTakenOver): frozenset({phase}) for phase in (*_LIVE, P.ENDING)},
    (P.QUEUED, events.ProviderClosed): frozenset({P.QUEUED}),
    (P.SPAWNING, events.AttemptPlaced): frozenset({P.SPAWNING}),
    (P.SPAWNING, events.WorktreePlanned): frozenset({P.SPAWNING}),
    **{(phase, events.TokenIssued): frozenset({phase}) for phase in (*_LIVE, P.ENDING)},
    **{(phase, events.SignalReceived): frozenset({phase}) | _ENDS for phase in _LIVE},
    **{(phase, events.LeaseExpired): _ENDS for phase in (*_LIVE, P.ENDING)},
    **{(phase, events.TimerFired): frozenset({phase}) | _ENDS for phase in _LIVE},
    **{(phase, events.ClockStepped): frozenset({phase}) for phase in P if phase not in OVER},
    **{
        (phase, kind): frozenset({phase})
        for phase in _LIVE
        for kind in (
            *(events.ChildSpawned, events.ChildSpent, events.ChildSettled),
            *(events.ChildTold, events.ChildReturned),
            *(events.RequestAsked, events.RequestAnswered),
        )
    },
    **{(phase, events.RequestHeld): frozenset({phase}) for phase in (*_LIVE, P.ENDING)},
    **{(phase, events.ParentNotified): frozenset({phase}) for phase in _LIVE},
    **{(phase, events.Alerted): frozenset({phase}) for phase in P},
    (P.RUNNING, events.ChildAlerted): frozenset({P.RUNNING}),
    **{(phase, events.CallRefused): frozenset({phase}) for phase in P},
    **{
        (phase, events.Repaired): frozenset({phase} if phase in SETTLED else {phase, P.ANNOUNCING})
        for phase in P
    },
}
"""Every legal ``(phase, event)`` and the phases it may lead to."""

_LATE: Final[Mapping[type, frozenset[Phase]]] = {
    # A run that waits has had no attempt and no child yet: there, an event of one is no late fact
    # but a fault.
    **dict.fromkeys(
        (
            *(events.DependencySettled, events.ChildAlerted, events.BaselineTaken),
            *(events.FilesLeft, events.AttemptStarted, events.AttemptStartFailed),
            *(events.AttemptTakenOver, events.ProviderClosed, events.AttemptPlaced),
            *(events.WorktreePlanned, events.TokenIssued, events.SignalReceived),
            *(events.LeaseExpired, events.ChecksPassed, events.VerificationFinished),
            *(events.SteerSettled, events.ChildSettled, events.ChildTold, events.ChildReturned),
            *(events.ChildSpent, events.RequestHeld, events.RequestAnswered),
        ),
        frozenset(P) - {P.WAITING},
    ),
    **dict.fromkeys((events.TimerFired, events.BudgetExhausted), frozenset(P)),
    events.ClockStepped: frozenset(OVER),
    # The effects behind these two are performed again after a crash.
    events.DeliverySettled: frozenset({P.ANNOUNCE_DEFERRED, P.COMPLETED_GIVEUP}),
    events.CleanedUp: frozenset({P.COMPLETED}),
    # A run is cancelled in the moment in which it ends: a race, and no mistake of the caller.
    **dict.fromkeys(
        (events.CancelRequested, events.CancelPlanned, events.CancelWithdrawn), SETTLED
    ),
}
STALE: Final = frozenset(
    (phase, kind)
    for kind, phases in _LATE.items()
    for phase in phases
    if (phase, kind) not in TRANSITIONS
)
"""Late or doubled facts: journaled, and nothing else."""
