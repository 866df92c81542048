"""Everything a transition may ask for.

``Effect``s are performed from the outbox after the commit, at least once, in the order of their
run, under the key ``<runId>/<seq>/<i>``; each says who performs it and which event answers.
``FollowUp``s are events for other runs (or inboxes) that belong to the *same* commit: the engine
applies them in memory before the batch is written, so a dependency's end and the release of its
dependants can never come apart.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import msgspec

from subagents.domain.run.alert import Alert
from subagents.domain.run.outcome import Outcome, Verification
from subagents.domain.run.run import BudgetStop, Message, Run
from subagents.domain.run.usage import Committed, Spent
from subagents.domain.run.values import MessageId, RunId, SessionKey, Value, decoded


class _OfAttempt(Value, frozen=True):
    """Something to be done about one attempt, named by its number."""

    attempt: int


class StartAttempt(_OfAttempt, frozen=True, tag=True):
    """Start (or adopt) the worker. Answered by ``AttemptStarted`` or ``AttemptStartFailed``."""


class ResumeAttempt(_OfAttempt, frozen=True, tag=True):
    """Give the ended attempt's session one more turn. Answered by ``AttemptStarted``."""

    turn: int
    message: str


class StopAttempt(_OfAttempt, frozen=True, tag=True):
    """TERM, grace, KILL for all of the attempt's processes. Answered by its exit signal."""

    grace_ms: int


class SteerAttempt(_OfAttempt, frozen=True, tag=True):
    """Put a message into the live attempt. Answered by ``SteerSettled``."""

    number: int
    message: str


class PermitAttempt(_OfAttempt, frozen=True, tag=True):
    """Tell the attempt's program whether it may use a tool. Answered by nothing; safe to repeat."""

    call_id: str
    allow: bool
    lasting: bool = False
    """Calls like it need no answer in this session any more."""


class InterruptAttempt(_OfAttempt, frozen=True, tag=True):
    """End the turn that is under way, politely; ``StopAttempt`` stands behind it.

    Answered by nothing: the attempt's exit signal follows. The same key is one interruption.
    """


class FreezeAttempt(_OfAttempt, frozen=True, tag=True):
    """Stop all of the attempt's processes where they are. Answered by nothing; safe to repeat."""


class ThawAttempt(_OfAttempt, frozen=True, tag=True):
    """Let them go on. Answered by nothing; safe to repeat."""


class Verify(_OfAttempt, frozen=True, tag=True):
    """Run the contract. Checks are safe to repeat.

    Answered by ``VerificationFinished``, or by ``ChecksPassed`` where a judge comes next.
    """


class LookAfter(_OfAttempt, frozen=True, tag=True):
    """Look at the contract's files, which the attempt changes no more. Answered by ``FilesLeft``.

    Safe to repeat; after a crash it is done late, and what others did meanwhile counts as the
    attempt's.
    """


class StartJudge(_OfAttempt, frozen=True, tag=True):
    """Spawn the run that judges the attempt, once; its end (``ChildSettled``) is the answer.

    Answered by ``VerificationFinished`` when it may not start.
    """


class Announce(Value, frozen=True, tag=True):
    """Tell the requester; the inbox row is there already. Answered by ``DeliverySettled``.

    Safe to repeat: couriers treat ``delivery_id`` as an idempotency key.
    """

    delivery_id: MessageId
    number: int


class CleanUp(Value, frozen=True, tag=True):
    """Delete the child sessions and the task when asked; never run, result, usage or journal.

    Answered by ``CleanedUp``.
    """

    delete: bool


Effect: TypeAlias = (
    StartAttempt
    | ResumeAttempt
    | StopAttempt
    | SteerAttempt
    | PermitAttempt
    | InterruptAttempt
    | FreezeAttempt
    | ThawAttempt
    | Verify
    | LookAfter
    | StartJudge
    | Announce
    | CleanUp
)

Numbered: TypeAlias = tuple[int, int, Effect]
"""An effect behind the ``seq`` of its event, and which of that event's it is."""

# Stored until it is performed, perhaps by a later version: a field that is added has a default.
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[list[Numbered]] = msgspec.json.Decoder(list[Numbered])


def encode_effects(effects: Iterable[Numbered]) -> bytes:
    return _encoder.encode([*effects])


def decode_effects(data: bytes) -> list[Numbered]:
    """The reverse of ``encode_effects``.

    Raises:
        msgspec.DecodeError: Not effects of this version.
    """
    return decoded(_decoder, data)


class TellDependants(Value, frozen=True, tag=True):
    """Every run that waits for this one is notified of its outcome."""

    outcome: Outcome
    result: str | None


class TellParent(Value, frozen=True, tag=True):
    """The run that spawned this one is notified of its outcome."""

    outcome: Outcome
    result: str | None


class CancelChildren(Value, frozen=True, tag=True):
    """Everything this run spawned ends with it."""

    by: str
    reason: str


class ConsumeChildren(Value, frozen=True, tag=True):
    """These children's announcements reached this run's agent or result."""

    children: tuple[RunId, ...]


class MoveInbox(Value, frozen=True, tag=True):
    """The session ended: what it never read goes to the nearest living ancestor."""

    source: SessionKey


class ResolveMessages(Value, frozen=True, tag=True):
    """Questions that were answered are no longer news."""

    messages: tuple[MessageId, ...]


class ReopenAnnouncement(Value, frozen=True, tag=True):
    """Its reader lost what it read: the announcement is unread again."""

    inbox: SessionKey


class MarkTold(Value, frozen=True, tag=True):
    """The announcement was read: the run that spawned this one knows its result."""


class TellSpent(Value, frozen=True, tag=True):
    """The run that spawned this one records what it and everything below it used: totals."""

    spent: Spent
    committed: Committed


class StopChildren(Value, frozen=True, tag=True):
    """A budget is used up: everything below this run is stopped, with what it has so far."""

    stop: BudgetStop


class GiveVerdict(Value, frozen=True, tag=True):
    """The judge ended: this becomes the ``VerificationFinished`` of the same run."""

    verification: Verification


class OutdateAlerts(Value, frozen=True, tag=True):
    """The end of the run was read: alerts from before it are outdated."""

    reader: str


class Raise(Value, frozen=True, tag=True):
    """The event itself was news: these become ``Alerted`` events of the same run."""

    alerts: tuple[Alert, ...]


class PassOn(Value, frozen=True, tag=True):
    """A message for a requester that is a run: into its live attempt, where its runtime can."""

    message: MessageId
    text: str


FollowUp: TypeAlias = (
    TellDependants
    | TellParent
    | CancelChildren
    | ConsumeChildren
    | MoveInbox
    | ResolveMessages
    | ReopenAnnouncement
    | MarkTold
    | TellSpent
    | StopChildren
    | GiveVerdict
    | OutdateAlerts
    | Raise
    | PassOn
)


class Transition(NamedTuple):
    """The run after an event, and what must now be done about it."""

    run: Run
    effects: tuple[Effect, ...] = ()
    followups: tuple[FollowUp, ...] = ()
    messages: tuple[Message, ...] = ()
    stale: bool = False
