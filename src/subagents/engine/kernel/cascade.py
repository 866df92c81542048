"""What a transition causes for other runs and inboxes, in the same commit."""

from collections.abc import Iterable, Iterator
from typing import Protocol, assert_never

from subagents.domain.run.effects import (
    CancelChildren,
    ConsumeChildren,
    FollowUp,
    GiveVerdict,
    MarkTold,
    MoveInbox,
    OutdateAlerts,
    PassOn,
    Raise,
    ReopenAnnouncement,
    ResolveMessages,
    StopChildren,
    TellDependants,
    TellParent,
    TellSpent,
)
from subagents.domain.run.events import (
    Alerted,
    AnnouncementConsumed,
    BudgetExhausted,
    CancelRequested,
    ChildAlerted,
    ChildSettled,
    ChildSpent,
    ChildTold,
    DependencySettled,
    Event,
    VerificationFinished,
)
from subagents.domain.run.outcome import DeliveryPath
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import RunId, SessionKey, announcement_id, replace
from subagents.domain.run.workspace import branch_left
from subagents.engine.kernel.addresses import parent_of
from subagents.engine.kernel.lanes import Lanes
from subagents.ports import Batch


class Changes(Protocol):
    """What follow-ups need of the live runs."""

    live: dict[RunId, Run]
    lanes: Lanes
    batch: Batch

    def step(self, run_id: RunId, event: Event) -> list[tuple[Run, FollowUp]]:
        """Reduce one event of a live run into the present batch."""
        ...

    def living_inbox(self, run: Run) -> SessionKey:
        """Where messages to the run's requester go now."""
        ...


def follow(  # noqa: C901, PLR0912 - one branch per follow-up
    runs: Changes, source: Run, followup: FollowUp, at_ms: int
) -> Iterable[tuple[Run, FollowUp]]:
    """Apply one follow-up and return those it causes in turn."""
    match followup:
        case TellDependants():
            return _notify_dependants(runs, source, followup, at_ms)
        case TellParent(outcome=outcome, result=result):
            event = ChildSettled(at_ms=at_ms, child=source.id, outcome=outcome, result=result)
            return _notify_parent(runs, source, event)
        case CancelChildren():
            return _cancel_children(runs, source, followup, at_ms)
        case ConsumeChildren():
            return _consume_children(runs, source, followup, at_ms)
        case MoveInbox(source=session):
            runs.batch.moved.append((session, runs.living_inbox(source)))
            return ()
        case ResolveMessages(messages=messages):
            runs.batch.consumed.extend((m, at_ms, "answered") for m in messages)
            return ()
        case ReopenAnnouncement(inbox=inbox):
            runs.batch.reopened[announcement_id(source.id)] = inbox
            return ()
        case MarkTold():
            return _notify_parent(runs, source, ChildTold(at_ms=at_ms, child=source.id))
        case TellSpent(spent=spent, committed=committed):
            used = ChildSpent(at_ms=at_ms, child=source.id, spent=spent, committed=committed)
            return _notify_parent(runs, source, used)
        case StopChildren(stop=stop):
            return _stop_children(runs, source, BudgetExhausted(at_ms=at_ms, stop=stop))
        case GiveVerdict(verification=verification):
            found = VerificationFinished(
                at_ms=at_ms,
                attempt=len(source.attempts),
                verification=replace(verification, verified_at_ms=at_ms),
            )
            return runs.step(source.id, found)
        case OutdateAlerts(reader=reader):
            runs.batch.outdated.append((source.id, at_ms, reader))
            return ()
        case Raise(alerts=alerts):
            raised = (Alerted(at_ms=at_ms, alert=alert) for alert in alerts)
            return [caused for each in raised for caused in runs.step(source.id, each)]
        case PassOn():
            return _pass_on(runs, source, followup, at_ms)
        case _:
            assert_never(followup)


def _notify_dependants(
    runs: Changes, source: Run, followup: TellDependants, at_ms: int
) -> Iterable[tuple[Run, FollowUp]]:
    dependants = runs.lanes.take_dependants(source.id)
    if not dependants:
        return ()
    event = DependencySettled(
        at_ms=at_ms,
        run_id=source.id,
        outcome=followup.outcome,
        result=followup.result,
        left=branch_left(source.resolved.worktree, source.remains.changes),
    )
    # One that was cancelled, or failed with another dependency, may be gone.
    return [caused for each in dependants if each in runs.live for caused in runs.step(each, event)]


def _notify_parent(
    runs: Changes, source: Run, event: ChildSettled | ChildTold | ChildSpent
) -> Iterable[tuple[Run, FollowUp]]:
    parent = parent_of(runs.live, source)
    if parent is None or parent.is_settled:
        return ()
    return runs.step(parent.id, event)


def _cancel_children(
    runs: Changes, source: Run, wanted: CancelChildren, at_ms: int
) -> Iterator[tuple[Run, FollowUp]]:
    event = CancelRequested(at_ms=at_ms, by=wanted.by, reason=wanted.reason, cascaded=True)
    for child in source.active_children:
        if child.run_id in runs.live:
            yield from runs.step(child.run_id, event)


def _stop_children(
    runs: Changes, source: Run, event: BudgetExhausted
) -> Iterator[tuple[Run, FollowUp]]:
    for child in source.active_children:
        found = runs.live.get(child.run_id)
        if found is not None and not found.is_settled:
            yield from runs.step(child.run_id, event)


def _consume_children(
    runs: Changes, source: Run, wanted: ConsumeChildren, at_ms: int
) -> Iterator[tuple[Run, FollowUp]]:
    read = AnnouncementConsumed(at_ms=at_ms, reader=source.session_key, path=DeliveryPath.PULLED)
    for child_id in wanted.children:
        child = runs.live.get(child_id)
        if child is not None and child.announcement_consumed_ms is None:
            yield from consume(runs, child, read)


def _pass_on(
    runs: Changes, source: Run, passed: PassOn, at_ms: int
) -> Iterable[tuple[Run, FollowUp]]:
    """Put it into the requester's live attempt, where its runtime takes it; its row is read."""
    requester = parent_of(runs.live, source)
    if requester is None or requester.phase is not Phase.RUNNING:
        return ()
    if not requester.resolved.abilities.steer:
        return ()
    runs.batch.consumed.append((passed.message, at_ms, requester.session_key))
    event = ChildAlerted(at_ms=at_ms, child=source.id, text=passed.text)
    return runs.step(requester.id, event)


def consume(runs: Changes, run: Run, event: AnnouncementConsumed) -> Iterable[tuple[Run, FollowUp]]:
    """Consume the announcement of a run: its event and the mark of the inbox row, in one commit."""
    # A redelivery in the same batch would make the row unread again after this.
    runs.batch.reopened.pop(announcement_id(run.id), None)
    runs.batch.consumed.append((announcement_id(run.id), event.at_ms, event.reader))
    return runs.step(run.id, event)
