"""The end of a run: its one outcome, its one announcement, and what becomes of that.

A part of the reducer (``reduce``).
"""

from subagents.domain.lifecycle import open_questions
from subagents.domain.lifecycle.steps import consume, enter, join, with_attempt
from subagents.domain.rules.delivery_policy import Done, GiveUp, TryAgain, next_step, record_try
from subagents.domain.run.effects import (
    Announce,
    CancelChildren,
    CleanUp,
    Effect,
    FollowUp,
    LookAfter,
    MarkTold,
    MoveInbox,
    OutdateAlerts,
    ReopenAnnouncement,
    ResolveMessages,
    StopAttempt,
    TellDependants,
    TellParent,
    Transition,
)
from subagents.domain.run.events import AnnouncementConsumed, DeliverySettled
from subagents.domain.run.linked_runs import Children
from subagents.domain.run.outcome import OK, Outcome, Reason, Status
from subagents.domain.run.run import Conclusion, Decision, Delivery, Phase, Run
from subagents.domain.run.spec import Cleanup
from subagents.domain.run.values import SessionKey, announcement_id, replace
from subagents.domain.run.workspace import NAMED_MAX
from subagents.domain.text import announcement
from subagents.text import listed

P = Phase


def settle(run: Run, outcome: Outcome, at_ms: int) -> Transition:
    """Give the run its outcome, once, and the one announcement that goes with it."""
    last = run.attempts[-1] if run.attempts else None
    resolved: tuple[FollowUp, ...] = ()
    if run.approval is not None:
        # What has ended needs no person's yes any more.
        run, resolved = open_questions.close(run, at_ms)
    run = enter(
        _released(run),
        P.ANNOUNCING,
        at_ms,
        conclusion=Conclusion(
            outcome=outcome,
            ended_at_ms=at_ms,
            seq=run.seq,
            result=last.evidence.result if last else None,
            result_bytes=last.evidence.result_bytes if last else 0,
            result_file=last.evidence.result_file if last else None,
            report=last.reported.report if last else None,
        ),
        delivery=Delivery(target=run.requester),
    )
    # It ended because its parent did, or is for its parent's contract: the row is not waited for.
    quiet = outcome.reason is Reason.PARENT_ENDED or run.lineage.judges is not None
    # The row is written in this commit, so a requester that only polls has been notified by it: no
    # crash, and no courier, can lose the result any more.
    message = announcement.announcement(run, consumed=quiet)
    result = announcement.result_for_others(run)
    followups: tuple[FollowUp, ...] = (TellDependants(outcome=outcome, result=result), *resolved)
    if run.lineage.requester_run is not None:
        followups += (TellParent(outcome=outcome, result=result),)
    if run.questions.requests and (
        answered := tuple(
            announcement.answer_id(request)
            for request in run.questions.requests
            if request.priority is not None
            and request.answer is not None
            and request.answer.decision is not Decision.CANCELLED
        )
    ):
        # Only its worker would have read these, and that is gone.
        followups += (ResolveMessages(messages=answered),)
    if run.children:
        # Its agent reads no more: results that it never read are handed over with this one, and
        # what else is in its session's inbox moves to the run's own requester.
        if outcome.status is not Status.CANCELLED:
            followups += consume(c.run_id for c in run.children.untold if c.outcome is not None)
        # A run has one inbox, under its first key, whichever attempt a message was for.
        followups += (MoveInbox(source=run.session.first_key),)
    return Transition(
        run,
        effects=(
            Announce(delivery_id=announcement_id(run.id), number=1),
            *(() if outcome.is_ok else look_after(run)),
        ),
        followups=followups,
        messages=(message,),
    )


def outcome_of_items(items: Children) -> Outcome:
    """What a run comes to that is nothing but these children, which have ended."""
    failed = [(each.label, each.outcome) for each in items if each.outcome != OK]
    if not failed:
        return OK
    names = listed([label for label, _ in failed], NAMED_MAX)
    error = f"{len(failed)} of {len(items)} items did not end ok: {names}"
    if (first := failed[0][1]) is not None and first.error:
        error += f"; the first: {first.error}"
    status = Status.ERROR if len(failed) == len(items) else Status.PARTIAL
    return Outcome(status, Reason.DEPENDENCY_FAILED, error)


def look_after(run: Run) -> tuple[Effect, ...]:
    """Ask for what is left of the work, where another attempt or run may go on with it."""
    contract = run.spec.verification
    if contract is None or not contract.counts_changes or not run.attempts:
        return ()
    if run.is_settled and run.spec.cleanup is Cleanup.DELETE:
        return ()
    return (LookAfter(attempt=run.attempt.number),)


def record_lost(run: Run, outcome: Outcome, at_ms: int) -> Transition:
    """Nothing goes on from a record that may lack its end: what is left of the run ends with it."""
    if run.is_settled:
        return Transition(run)
    run, followups = open_questions.close(run, at_ms)
    if run.children.active:
        followups += (CancelChildren(by=run.id, reason="the record of its parent was lost"),)
    effects: tuple[Effect, ...] = ()
    if run.attempts and run.attempt.outcome is None:
        attempt = run.attempt
        times = replace(attempt.times, ended_at_ms=at_ms)
        run = with_attempt(run, replace(attempt, outcome=outcome, times=times))
        effects = (StopAttempt(attempt=attempt.number, grace_ms=run.resolved.grace_ms),)
    step = join(settle(run, outcome, at_ms), followups)
    return step._replace(effects=(*effects, *step.effects))


def _released(run: Run) -> Run:
    """The run as one that waits for nothing any more."""
    if run.retry.due_ms is not None:
        run = replace(run, retry=replace(run.retry, due_ms=None))
    if run.waiting.deadline_ms is not None:
        run = replace(run, waiting=replace(run.waiting, deadline_ms=None))
    if run.control.paused or run.control.steers or run.control.told:
        control = replace(run.control, paused=False, frozen_since_ms=None, steers=(), told=())
        run = replace(run, control=control)
    return run


def announce_again(run: Run, at_ms: int, *, inbox: SessionKey | None = None) -> Transition:
    """Try the delivery once more, from the beginning when it was given up.

    What was read already becomes unread, so that the next reader is given it; the journal keeps
    who had it before.
    """
    delivery = run.delivery or Delivery(target=run.requester)
    if run.phase in {P.COMPLETED, P.COMPLETED_GIVEUP} and delivery.consumed_at_ms is not None:
        run = replace(run, delivery=replace(delivery, consumed_at_ms=None))
        return Transition(run, followups=(ReopenAnnouncement(inbox=inbox or run.requester),))
    if run.phase is P.COMPLETED:
        return Transition(run, stale=True)
    if run.phase is P.COMPLETED_GIVEUP:
        # Giving up is by the time since the first failure, which begins again.
        delivery = replace(delivery, first_failure_ms=None, failures=0)
    run = enter(run, P.ANNOUNCING, at_ms, delivery=replace(delivery, due_ms=None))
    effect = Announce(delivery_id=announcement_id(run.id), number=delivery.tries_total + 1)
    return Transition(run, effects=(effect,))


def delivery_settled(run: Run, event: DeliverySettled) -> Transition:
    """What came of a try: done, tried again later, or given up; see ``delivery_policy``."""
    before = run.delivery or Delivery(target=run.requester)
    # A try that was under way in a crash is made again under its key, and may settle twice.
    if any(known.idempotency_key == event.record.idempotency_key for known in before.tries):
        return Transition(run, stale=True)
    delivery = record_try(before, event.record)
    run = replace(run, delivery=delivery)
    if run.phase is not P.ANNOUNCING:
        # Read by its requester while the try was under way: kept for the record only.
        return Transition(run)
    match next_step(run.id, delivery):
        case Done():
            return clean_up(run, event.at_ms)
        case TryAgain(due_ms=due_ms):
            deferred = replace(delivery, due_ms=due_ms)
            return Transition(enter(run, P.ANNOUNCE_DEFERRED, event.at_ms, delivery=deferred))
        case GiveUp():
            return Transition(enter(run, P.COMPLETED_GIVEUP, event.at_ms))


def clean_up(run: Run, at_ms: int) -> Transition:
    """Tidy up after a run whose result was delivered, or need not be."""
    effect = CleanUp(delete=run.spec.cleanup is Cleanup.DELETE)
    return Transition(enter(run, P.CLEANUP_PENDING, at_ms), effects=(effect,))


def consumed(run: Run, event: AnnouncementConsumed) -> Transition:
    """A reader took the announcement: it is handed over nowhere else."""
    if run.announcement_consumed_ms is not None:
        return Transition(run, stale=True)
    delivery = run.delivery or Delivery(target=run.requester)
    run = replace(run, delivery=replace(delivery, consumed_at_ms=event.at_ms))
    known: tuple[FollowUp, ...] = (MarkTold(),) if run.lineage.requester_run is not None else ()
    if run.alerts.number:
        known += (OutdateAlerts(reader=event.reader),)
    if run.phase in {P.ANNOUNCING, P.ANNOUNCE_DEFERRED}:
        return join(clean_up(run, event.at_ms), known)
    return Transition(run, followups=known)
