"""Which event may come in which phase, and where it may lead: data, not code.

docs/lifecycle.md is drawn from ``TRANSITIONS``; the tests walk it. A pair in ``STALE`` is a late
or doubled fact. A pair in neither is a broken promise and raises.
"""

from collections.abc import Mapping
from typing import Final

from subagents.domain.run.events import (
    Alerted,
    AnnouncementConsumed,
    Archived,
    AttemptPlaced,
    AttemptStarted,
    AttemptStartFailed,
    AttemptTakenOver,
    BaselineTaken,
    BudgetExhausted,
    CallRefused,
    CancelPlanned,
    CancelRequested,
    CancelWithdrawn,
    ChecksPassed,
    ChildAlerted,
    ChildReturned,
    ChildSettled,
    ChildSpawned,
    ChildSpent,
    ChildTold,
    CleanedUp,
    ClockStepped,
    Continued,
    DeliverySettled,
    DependencySettled,
    Dismissed,
    FilesLeft,
    InterruptRequested,
    LeaseExpired,
    ParentNotified,
    Paused,
    Prioritized,
    Redelivered,
    Repaired,
    RequestAnswered,
    RequestAsked,
    RequestHeld,
    Resumed,
    SignalReceived,
    SlotGranted,
    SteerRequested,
    SteerSettled,
    TimerFired,
    TokenIssued,
    VerificationFinished,
    WorktreePlanned,
)
from subagents.domain.run.run import OVER, SETTLED, Phase

P = Phase
_ENDS: Final = frozenset({P.ENDING, P.VERIFYING, P.RETRY_WAIT, P.ANNOUNCING})
_HELD: Final = (P.WAITING, P.QUEUED, P.RETRY_WAIT)
_LIVE: Final = (P.SPAWNING, P.RUNNING)

TRANSITIONS: Final[Mapping[tuple[Phase, type], frozenset[Phase]]] = {
    (P.WAITING, DependencySettled): frozenset({P.WAITING, P.QUEUED, P.ANNOUNCING}),
    (P.WAITING, RequestAnswered): frozenset({P.WAITING, P.QUEUED, P.ANNOUNCING}),
    (P.WAITING, TimerFired): frozenset({P.WAITING, P.ANNOUNCING}),
    (P.QUEUED, SlotGranted): frozenset({P.SPAWNING}),
    (P.QUEUED, TimerFired): frozenset({P.QUEUED, P.ANNOUNCING}),
    **{
        (phase, FilesLeft): frozenset({phase})
        for phase in P
        if phase in SETTLED or phase in {P.RETRY_WAIT, P.QUEUED, P.SPAWNING}
    },
    (P.SPAWNING, BaselineTaken): frozenset({P.SPAWNING}),
    (P.SPAWNING, AttemptStarted): frozenset({P.RUNNING}),
    (P.SPAWNING, AttemptStartFailed): _ENDS,
    (P.ENDING, AttemptStarted): frozenset({P.RUNNING}),
    (P.ENDING, AttemptStartFailed): _ENDS,
    (P.ENDING, SignalReceived): _ENDS,
    (P.ENDING, TimerFired): _ENDS,
    (P.ENDING, ChildSettled): _ENDS,
    (P.ENDING, ChildTold): frozenset({P.ENDING}),
    (P.ENDING, ChildReturned): frozenset({P.ENDING}),
    (P.ENDING, ChildSpent): frozenset({P.ENDING}),
    (P.ENDING, BudgetExhausted): _ENDS,
    (P.ENDING, CancelRequested): frozenset({P.ENDING, P.ANNOUNCING}),
    (P.ENDING, SteerRequested): frozenset({P.ENDING}),
    (P.ENDING, Resumed): _ENDS,
    (P.VERIFYING, Resumed): frozenset({P.VERIFYING}),
    (P.VERIFYING, ChecksPassed): frozenset({P.VERIFYING}),
    (P.VERIFYING, ChildSpawned): frozenset({P.VERIFYING}),
    (P.VERIFYING, ChildSpent): frozenset({P.VERIFYING}),
    (P.VERIFYING, ChildSettled): frozenset({P.VERIFYING, P.ANNOUNCING}),
    (P.VERIFYING, CancelRequested): frozenset({P.VERIFYING, P.ANNOUNCING}),
    (P.VERIFYING, TimerFired): frozenset({P.VERIFYING, P.ANNOUNCING}),
    (P.VERIFYING, VerificationFinished): frozenset({P.RETRY_WAIT, P.ANNOUNCING}),
    (P.VERIFYING, BudgetExhausted): frozenset({P.VERIFYING}),
    (P.RETRY_WAIT, TimerFired): frozenset({P.RETRY_WAIT, P.QUEUED, P.ANNOUNCING}),
    (P.ANNOUNCING, DeliverySettled): frozenset(
        {P.CLEANUP_PENDING, P.ANNOUNCE_DEFERRED, P.COMPLETED_GIVEUP}
    ),
    (P.ANNOUNCING, AnnouncementConsumed): frozenset({P.CLEANUP_PENDING}),
    (P.ANNOUNCE_DEFERRED, TimerFired): frozenset({P.ANNOUNCE_DEFERRED, P.ANNOUNCING}),
    (P.ANNOUNCE_DEFERRED, AnnouncementConsumed): frozenset({P.CLEANUP_PENDING}),
    (P.ANNOUNCE_DEFERRED, Redelivered): frozenset({P.ANNOUNCING}),
    (P.CLEANUP_PENDING, CleanedUp): frozenset({P.COMPLETED}),
    (P.CLEANUP_PENDING, DeliverySettled): frozenset({P.CLEANUP_PENDING}),
    (P.CLEANUP_PENDING, AnnouncementConsumed): frozenset({P.CLEANUP_PENDING}),
    (P.COMPLETED, AnnouncementConsumed): frozenset({P.COMPLETED}),
    (P.COMPLETED, DeliverySettled): frozenset({P.COMPLETED}),
    (P.COMPLETED, Redelivered): frozenset({P.COMPLETED}),
    (P.COMPLETED, Archived): frozenset({P.COMPLETED}),
    (P.COMPLETED_GIVEUP, AnnouncementConsumed): frozenset({P.COMPLETED_GIVEUP}),
    (P.COMPLETED_GIVEUP, Redelivered): frozenset({P.ANNOUNCING, P.COMPLETED_GIVEUP}),
    (P.COMPLETED_GIVEUP, Archived): frozenset({P.COMPLETED_GIVEUP}),
    **{(phase, CancelRequested): frozenset({P.ANNOUNCING}) for phase in _HELD},
    **{(phase, CancelRequested): frozenset({phase}) for phase in _LIVE},
    **{(phase, BudgetExhausted): frozenset({P.ANNOUNCING}) for phase in _HELD},
    **{(phase, BudgetExhausted): frozenset({phase}) for phase in _LIVE},
    **{(phase, InterruptRequested): frozenset({phase}) for phase in _LIVE},
    **{
        (phase, kind): frozenset({phase})
        for phase in P
        if phase in SETTLED
        for kind in (Continued, Dismissed)
    },
    **{(phase, Paused): frozenset({phase}) for phase in (*_HELD, *_LIVE)},
    **{(phase, Resumed): frozenset({phase}) for phase in (*_HELD, *_LIVE)},
    **{
        (phase, kind): frozenset({phase})
        for phase in P
        if phase not in SETTLED
        for kind in (Prioritized, CancelPlanned, CancelWithdrawn)
    },
    **{(phase, SteerRequested): frozenset({phase}) for phase in (*_HELD, *_LIVE)},
    **{(phase, SteerSettled): frozenset({phase}) for phase in (*_LIVE, P.ENDING)},
    **{(phase, AttemptTakenOver): frozenset({phase}) for phase in (*_LIVE, P.ENDING)},
    (P.SPAWNING, AttemptPlaced): frozenset({P.SPAWNING}),
    (P.SPAWNING, WorktreePlanned): frozenset({P.SPAWNING}),
    **{(phase, TokenIssued): frozenset({phase}) for phase in (*_LIVE, P.ENDING)},
    **{(phase, SignalReceived): frozenset({phase}) | _ENDS for phase in _LIVE},
    **{(phase, LeaseExpired): _ENDS for phase in (*_LIVE, P.ENDING)},
    **{(phase, TimerFired): frozenset({phase}) | _ENDS for phase in _LIVE},
    **{(phase, ClockStepped): frozenset({phase}) for phase in P if phase not in OVER},
    **{
        (phase, kind): frozenset({phase})
        for phase in _LIVE
        for kind in (
            *(ChildSpawned, ChildSpent, ChildSettled, ChildTold, ChildReturned),
            *(RequestAsked, RequestAnswered),
        )
    },
    **{(phase, RequestHeld): frozenset({phase}) for phase in (*_LIVE, P.ENDING)},
    **{(phase, ParentNotified): frozenset({phase}) for phase in _LIVE},
    **{(phase, Alerted): frozenset({phase}) for phase in P},
    (P.RUNNING, ChildAlerted): frozenset({P.RUNNING}),
    **{(phase, CallRefused): frozenset({phase}) for phase in P},
    **{
        (phase, Repaired): frozenset({phase} if phase in SETTLED else {phase, P.ANNOUNCING})
        for phase in P
    },
}
"""Every legal ``(phase, event)`` and the phases it may lead to."""

_LATE: Final[Mapping[type, frozenset[Phase]]] = {
    DependencySettled: frozenset(P) - {P.WAITING},
    ChildAlerted: frozenset(P) - {P.WAITING},
    BaselineTaken: frozenset(P) - {P.WAITING},
    FilesLeft: frozenset(P) - {P.WAITING},
    AttemptStarted: frozenset(P) - {P.WAITING},
    AttemptStartFailed: frozenset(P) - {P.WAITING},
    AttemptTakenOver: frozenset(P) - {P.WAITING},
    AttemptPlaced: frozenset(P) - {P.WAITING},
    WorktreePlanned: frozenset(P) - {P.WAITING},
    TokenIssued: frozenset(P) - {P.WAITING},
    SignalReceived: frozenset(P) - {P.WAITING},
    LeaseExpired: frozenset(P) - {P.WAITING},
    TimerFired: frozenset(P),
    ClockStepped: frozenset(OVER),
    ChecksPassed: frozenset(P) - {P.WAITING},
    VerificationFinished: frozenset(P) - {P.WAITING},
    SteerSettled: frozenset(P) - {P.WAITING},
    ChildSettled: frozenset(P) - {P.WAITING},
    ChildTold: frozenset(P) - {P.WAITING},
    ChildReturned: frozenset(P) - {P.WAITING},
    ChildSpent: frozenset(P) - {P.WAITING},
    RequestHeld: frozenset(P) - {P.WAITING},
    BudgetExhausted: frozenset(P),
    RequestAnswered: frozenset(P) - {P.WAITING},
    DeliverySettled: frozenset({P.ANNOUNCE_DEFERRED, P.COMPLETED_GIVEUP}),
    CleanedUp: frozenset({P.COMPLETED}),
    **dict.fromkeys((CancelRequested, CancelPlanned, CancelWithdrawn), SETTLED),
}
STALE: Final = frozenset(
    (phase, kind)
    for kind, phases in _LATE.items()
    for phase in phases
    if (phase, kind) not in TRANSITIONS
)
"""Late or doubled facts: journaled, and nothing else."""
