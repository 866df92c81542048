"""Everything that can have happened to a run: facts, in the past tense, with their time inside.

Journaled as ``(runId, seq, atMs, type, data)``; folding a run's events in order gives the run.
New fields need defaults: journals written by older versions must still fold.
"""

from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from subagents.domain.run.alert import Alert
from subagents.domain.run.baseline import Baseline
from subagents.domain.run.linked_runs import Child, Dependency
from subagents.domain.run.outcome import Check, DeliveryPath, Outcome, Verification
from subagents.domain.run.run import Answer, BudgetStop, Continues, DeliveryTry, Priority, Request
from subagents.domain.run.signals import Signal
from subagents.domain.run.spec import Resolved, RunSpec
from subagents.domain.run.usage import Amounts, Committed, Spent, Usage
from subagents.domain.run.values import RunId, SessionKey, Value, decoded
from subagents.domain.run.workspace import BranchLeft, Worktree


class Fact(Value, frozen=True):
    """Base of all events."""

    # By the clock of whoever observed it: the reducer has none, so that a journal folds the same.
    at_ms: int


class Spawned(Fact, frozen=True, tag=True):
    """A spawn passed every guardrail; the first event of every run."""

    run_id: RunId
    spec: RunSpec
    resolved: Resolved
    requester: SessionKey
    depth: int
    session_key: SessionKey
    requester_run: RunId | None = None
    """The run whose agent spawned it; None = a top-level requester did."""
    retry_from: RunId | None = None
    """The ended run whose parameters it repeats; None = it repeats none."""
    dependencies: tuple[Dependency, ...] = ()
    """The runs that it waits for, each as it was at the spawn."""
    vacuous: bool = False
    """The contract was met at the spawn."""
    baseline: Baseline | None = None
    """What the files of its contract must differ from: the promise of a session that goes on. None
    = what they are before its first start; of earlier versions, what they were at the spawn."""
    left: Baseline | None = None
    """What they were when the session stopped working; None = they were not looked at."""
    continues: Continues | None = None
    """The run whose session it goes on with; None = it begins one."""
    approval: Request | None = None
    """What a person is asked first; None = nothing."""
    judges: int | None = None
    """The attempt of the run above that it judges; None = an agent or a person spawned it."""
    rules: int = 0
    """Which rules of the reducer hold for it (``run.RULES``); 0 = those of 0.1.0."""


class FannedOut(Fact, frozen=True, tag=True):
    """The list of ``for_each`` was read; its runs are spawned in the same commit."""

    items: int = 0
    text: str | None = None
    """The beginning of its result; that of its runs is put behind it."""
    error: str | None = None
    """Why there are none; None = the list is good, or empty."""


class DependencySettled(Fact, frozen=True, tag=True):
    """A run this one waits for reached its outcome; written in the same commit as that outcome."""

    run_id: RunId
    outcome: Outcome
    result: str | None = None
    """Its result, or the summary of its report, at most 32 KiB; None = it has neither."""
    left: BranchLeft | None = None
    """What a run with a worktree changed there; None = nothing, or it had none."""


class SlotGranted(Fact, frozen=True, tag=True):
    """The lane has room; a new attempt begins in a new child session."""

    session_key: SessionKey
    token_hash: str = ""
    """SHA-256 (hex) of the token its worker will present; the token itself is stored nowhere."""
    node: str | None = None
    """Name of the daemon that starts it; None = ``AttemptPlaced`` says it, or it is an event of an
    earlier version."""


class ProviderClosed(Fact, frozen=True, tag=True):
    """Another agent takes over before an attempt began: the provider refuses others' attempts for
    longer than this run waits (``on_limit``).
    """

    why: str


class AttemptPlaced(Fact, frozen=True, tag=True):
    """A node has taken the attempt; its worker is started there, and nowhere else."""

    attempt: int
    node: str


class WorktreePlanned(Fact, frozen=True, tag=True):
    """Where the run has its worktree: at its place, which was not known at the spawn."""

    worktree: Worktree
    cwd: str
    """The directory in the worktree where the run works, without links."""


class TokenIssued(Fact, frozen=True, tag=True):
    """One more token for the attempt: the one before was lost in a crash, or a new turn begins."""

    attempt: int
    token_hash: str
    """SHA-256 of the token, in hexadecimal."""


class BaselineTaken(Fact, frozen=True, tag=True):
    """The files of the contract were looked at, right before the attempt's worker was started.

    Since its spawn, or its last attempt, others had time to write them, and at its end their work
    cannot be told from its own.
    """

    baseline: Baseline
    """What they are; see ``baseline.rebased`` for what is made of it."""
    vacuous: bool = False
    """The contract was met before the work."""
    attempt: int = 0
    """0 = of an earlier version, which looked once, before the first attempt."""


class FilesLeft(Fact, frozen=True, tag=True):
    """The files of the contract were looked at when the attempt had stopped working."""

    attempt: int
    files: Baseline


class AttemptStarted(Fact, frozen=True, tag=True):
    """The runtime confirmed that the worker (or its next turn) is there."""

    attempt: int
    turn: int = 1
    """The number of the turn that begins, from 1."""
    pid: int | None = None
    """The worker's process id; None = it has none, or it is not known yet."""
    adopted: bool = False
    """It was started before, by this daemon or another one."""
    vacuous: bool = False
    """The contract was met before the work; set in journals of 0.1.0 alone, which had no
    ``BaselineTaken``."""
    native_session: str | None = None
    """What the program calls its session, where its runtime knows that from the start."""


class AttemptStartFailed(Fact, frozen=True, tag=True):
    """Nothing was started."""

    attempt: int
    error: str
    permanent: bool = False
    """The same launch can never start, so there is no retry."""


class AttemptTakenOver(Fact, frozen=True, tag=True):
    """After a restart a node watches the attempt on, under its own epoch; nothing was started."""

    attempt: int
    epoch: int
    """The epoch of the daemon that watches it from now on."""
    cursor: int = 0
    """How far its stream had been read."""


class SignalReceived(Fact, frozen=True, tag=True):
    """A runtime saw something of an attempt."""

    attempt: int
    signal: Signal


class LeaseExpired(Fact, frozen=True, tag=True):
    """The attempt's lease ran out without being renewed."""

    attempt: int


class TimerCause(StrEnum):
    """Which stored deadline passed; of several that passed together the one named first here."""

    CANCEL = "cancel"
    """A cancel that somebody asked for some time ahead, and did not take back."""
    DEPENDENCY_TIMEOUT = "dependency_timeout"
    PROVIDER_WAIT = "provider_wait"
    """Only of runs of 0.1.0, whose deadline holds while they wait for their provider."""
    RETRY_DUE = "retry_due"
    DELIVERY_DUE = "delivery_due"
    DEADLINE = "deadline"
    BUDGET = "budget"
    """An edge of the run's budget of seconds: an alert, the reserve or the end."""
    QUESTION_TIMEOUT = "question_timeout"
    SETTLE = "settle"
    """The worker ended, and the end of its output was awaited long enough."""
    DEADLINE_WARNING = "deadline_warning"
    DIGEST = "digest"
    """The hour is over in which alerts were held back."""


class TimerFired(Fact, frozen=True, tag=True):
    """Time passed; what that means is decided by the reducer, from the run and the time."""

    cause: TimerCause | None = None
    """What was due, for readers of the journal; None in journals of 0.1.0."""
    backs_off: bool = False
    """The worker's program was waiting for its model's provider, which had refused it."""


class ClockStepped(Fact, frozen=True, tag=True):
    """The machine's clock was set, or the machine was suspended: what is still due moves along."""

    by_ms: int
    """How far the clock is ahead of what it would be; negative = it was set back."""


class ChecksPassed(Fact, frozen=True, tag=True):
    """All checks but the judge's; with that one ``VerificationFinished`` follows."""

    attempt: int
    checks: tuple[Check, ...]


class VerificationFinished(Fact, frozen=True, tag=True):
    """The contract of an attempt was checked, or could not be."""

    attempt: int
    verification: Verification


class CancelRequested(Fact, frozen=True, tag=True):
    """A durable intent, in every phase before ``announcing``; repeating it is harmless."""

    by: str
    reason: str | None = None
    cascaded: bool = False
    """It follows from a cancel, or the end, of the run above."""


class CancelPlanned(Fact, frozen=True, tag=True):
    """The run is to be cancelled at a time, unless that is taken back; the newest plan holds."""

    by: str
    due_ms: int
    """When it is due, in milliseconds since 1970."""
    reason: str | None = None
    of_turn: tuple[int, int] | None = None
    """``(attempt, turn)``: only that turn is to end, as by ``InterruptRequested``; nothing comes of
    it when another one is under way by then. None = the run."""


class CancelWithdrawn(Fact, frozen=True, tag=True):
    """The planned cancel was taken back."""

    by: str


class Paused(Fact, frozen=True, tag=True):
    """The run is held: nothing of it begins, and its worker is frozen where that can be done."""

    by: str


class Resumed(Fact, frozen=True, tag=True):
    """The run goes on from where it was held."""

    by: str


class Prioritized(Fact, frozen=True, tag=True):
    """It has another place in its lane's queue, now and after each retry."""

    by: str
    priority: int
    """The new priority; higher starts first."""


class SteerRequested(Fact, frozen=True, tag=True):
    """A message for the worker: into the live attempt where the runtime can, else its next turn."""

    by: str
    message: str
    next_turn: bool = False
    """Kept for the next turn also where the runtime could take it now."""
    added: Amounts | None = None
    """How much its budget is raised with it."""


class InterruptRequested(Fact, frozen=True, tag=True):
    """The turn that is under way is to end, and its session to be kept; what it spawned ends."""

    by: str
    reason: str | None = None


class Continued(Fact, frozen=True, tag=True):
    """A later run continues this one's session; written in the commit that stores that run."""

    run_id: RunId


class SteerSettled(Fact, frozen=True, tag=True):
    """The runtime took the message, or the attempt was gone (then it waits for the next turn)."""

    number: int
    """The message's number, as it was counted when it was sent."""
    taken: bool
    """The runtime took it; False = it waits for the next turn."""


class ChildSpawned(Fact, frozen=True, tag=True):
    """A run below this one was spawned; written in the commit that stores that run."""

    child: Child


class ChildSettled(Fact, frozen=True, tag=True):
    """A run below this one reached its outcome; written in the same commit as that outcome."""

    child: RunId
    outcome: Outcome
    result: str | None = None
    """Its result, or the summary of its report, at most 32 KiB; None = it has neither."""


class ChildTold(Fact, frozen=True, tag=True):
    """The child's announcement was consumed by this run's own agent."""

    child: RunId


class ChildReturned(Fact, frozen=True, tag=True):
    """A call of this run's worker is about to return the child's result to it.

    Before the worker acknowledges it, this counts once the turn ends well (``turns.took``).
    """

    child: RunId
    attempt: int
    turn: int


class ChildSpent(Fact, frozen=True, tag=True):
    """What a child and everything below it used by now: totals, so a doubled one is harmless."""

    child: RunId
    spent: Spent
    committed: Committed


class RequestHeld(Fact, frozen=True, tag=True):
    """The worker is about to ask its model; what that may use is kept free until it is reported."""

    attempt: int
    usage: Usage
    """Totals of the attempt before the request, as its worker counts them."""
    tokens: int
    """The most tokens that the request may use."""
    cost_usd: float = 0
    lost_tokens: int = 0
    """The most that earlier requests of this attempt which were never answered may have used."""
    lost_cost_usd: float = 0


class BudgetExhausted(Fact, frozen=True, tag=True):
    """Of a budget above this run only what is kept for the holder's report is left."""

    stop: BudgetStop


class RequestAsked(Fact, frozen=True, tag=True):
    """The worker asks its requester something."""

    request: Request


class RequestAnswered(Fact, frozen=True, tag=True):
    """Stored before it is delivered; the first answer counts."""

    request_id: str
    answer: Answer


class ParentNotified(Fact, frozen=True, tag=True):
    """The worker sent a one-way message (``notify_parent``)."""

    message: str
    priority: Priority = Priority.INFO


class DeliverySettled(Fact, frozen=True, tag=True):
    """One delivery try came to an outcome."""

    record: DeliveryTry


class AnnouncementConsumed(Fact, frozen=True, tag=True):
    """A reader took the announcement over; at most once per run."""

    reader: str
    path: DeliveryPath
    """How it reached the reader."""


class Redelivered(Fact, frozen=True, tag=True):
    """A result was asked for once more: a delivery that was given up is tried again, and one that
    was read is unread again, under the same id."""

    by: str
    inbox: SessionKey | None = None
    """Where it is unread again; None = its requester's. One that has ended reads nothing."""


class Dismissed(Fact, frozen=True, tag=True):
    """Somebody marked how the run ended as read: it needs nobody. Its requester still gets the
    result."""

    by: str
    withdrawn: bool = False
    """It is unread again."""


class Alerted(Fact, frozen=True, tag=True):
    """Something the requester may want to know; ``allowance`` decides whether it is pushed."""

    alert: Alert


class ChildAlerted(Fact, frozen=True, tag=True):
    """An alert of a run that this one's agent spawned, for its live attempt."""

    child: RunId
    text: str


class CallRefused(Fact, frozen=True, tag=True):
    """Somebody who named this run, or spoke as its worker, was turned away."""

    call: str
    """The call, by its name."""
    reason: str
    by: str
    """Who called."""


class Repaired(Fact, frozen=True, tag=True):
    """``subagents db repair`` made the run's record again, from what else was there."""

    found: str
    """What was damaged or lost, and what the record is made from."""
    outcome: Outcome | None = None
    """Given to a run that has none, where what else it did may be lost."""


class CleanedUp(Fact, frozen=True, tag=True):
    """Child sessions were deleted or kept, as asked."""

    erased: bool = False
    """The task and the messages to the worker were deleted, too; False in journals of 0.1.0, which
    kept them."""


class Archived(Fact, frozen=True, tag=True):
    """Hidden from lists; nothing was deleted."""


Event: TypeAlias = (
    Spawned
    | FannedOut
    | DependencySettled
    | SlotGranted
    | ProviderClosed
    | AttemptPlaced
    | WorktreePlanned
    | TokenIssued
    | BaselineTaken
    | FilesLeft
    | AttemptStarted
    | AttemptStartFailed
    | AttemptTakenOver
    | SignalReceived
    | LeaseExpired
    | TimerFired
    | ClockStepped
    | ChecksPassed
    | VerificationFinished
    | CancelRequested
    | CancelPlanned
    | CancelWithdrawn
    | Paused
    | Resumed
    | Prioritized
    | SteerRequested
    | SteerSettled
    | InterruptRequested
    | Continued
    | ChildSpawned
    | ChildSettled
    | ChildTold
    | ChildReturned
    | ChildSpent
    | RequestHeld
    | BudgetExhausted
    | RequestAsked
    | RequestAnswered
    | ParentNotified
    | DeliverySettled
    | AnnouncementConsumed
    | Redelivered
    | Dismissed
    | Alerted
    | ChildAlerted
    | CallRefused
    | Repaired
    | CleanedUp
    | Archived
)
"""Every event; the union is closed, a new member without a case in the reducer is a type error."""

EVENT_TYPES: Final[tuple[type[Fact], ...]] = Event.__args__

_encoder = msgspec.json.Encoder()
_decoder: Final[msgspec.json.Decoder[Event]] = msgspec.json.Decoder(Event)


def encode_event(event: Event) -> bytes:
    """The journal's form: JSON with the event's name under ``type``."""
    return _encoder.encode(event)


def decode_event(data: bytes) -> Event:
    """The reverse of ``encode_event``.

    Raises:
        msgspec.DecodeError: Not an event of this version.
    """
    return decoded(_decoder, data)
