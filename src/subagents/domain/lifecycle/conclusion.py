"""What an attempt came to: another one, or the run's one outcome, and what becomes of that.

A part of the reducer (``reduce``).
"""

from subagents.domain.lifecycle import open_questions
from subagents.domain.lifecycle.steps import consume, enter, join, with_attempt
from subagents.domain.rules import provider_limits
from subagents.domain.rules.budgets import budgets
from subagents.domain.rules.delivery_policy import Done, GiveUp, TryAgain, next_step, record_try
from subagents.domain.rules.retry import retry_delay_ms, why_no_retry
from subagents.domain.run import events
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
    Verify,
)
from subagents.domain.run.linked_runs import Children
from subagents.domain.run.outcome import (
    OK,
    Outcome,
    Reason,
    Status,
    Verdict,
    VerificationState,
    failures_text,
)
from subagents.domain.run.run import (
    BudgetStop,
    Conclusion,
    Decision,
    Delivery,
    Phase,
    RetryCause,
    Run,
)
from subagents.domain.run.spec import Cleanup, OnFailure
from subagents.domain.run.values import SessionKey, announcement_id, replace
from subagents.domain.run.workspace import NAMED_MAX
from subagents.domain.text import announcement
from subagents.text import listed

P = Phase


def conclude(run: Run, outcome: Outcome, at_ms: int) -> Transition:
    """The attempt came to ``outcome``: try again, verify, or settle the run."""
    if outcome.reason is Reason.PROVIDER_LIMIT and run.control.cancel is None:
        return _provider_refused(run, outcome, at_ms)
    # This attempt got past the provider, so a later refusal is the first of a new series.
    if run.retry.limited is not None:
        run = replace(run, retry=replace(run.retry, limited=None))
    delay = retry_delay_ms(run, outcome, at_ms)
    if delay is not None and run.control.cancel is None:
        cause = replace(run.retry.cause, reason=outcome.error or str(outcome.reason))
        run = replace(run, retry=replace(run.retry, cause=cause))
        used = run.retry.used + 1
        return _try_again(run, at_ms, due_ms=at_ms + delay, retries_used=used)
    is_checkable = outcome.status in {Status.OK, Status.PARTIAL} and (
        outcome.reason not in {Reason.BUDGET, Reason.INTERRUPTED}
    )
    if run.spec.verification is not None and is_checkable:
        record = replace(run.verification, state=VerificationState.RUNNING)
        run = enter(run, P.VERIFYING, at_ms, verification=record)
        return Transition(run, effects=(Verify(attempt=run.attempt.number),))
    return settle(run, outcome, at_ms)


def _provider_refused(run: Run, outcome: Outcome, at_ms: int) -> Transition:
    """Waiting is not failing: no retry is counted, and none is needed in its policy."""
    waits = provider_limits.limited(run, outcome, at_ms)
    if waits is None:
        return settle(run, provider_limits.given_up(run, outcome, at_ms), at_ms)
    run, due_ms = waits
    return _try_again(run, at_ms, due_ms=due_ms)


def _try_again(run: Run, at_ms: int, *, due_ms: int, retries_used: int | None = None) -> Transition:
    """One more attempt at ``due_ms``: it needs budget, not only a count."""
    if run.budget.stop is not None:
        return settle_unstarted(run, run.budget.stop, at_ms)
    if run.retry.cause.verifies:
        # The contract's one retry is used up, also when the attempt never begins.
        record = replace(run.verification, retried_at_ms=at_ms, state=VerificationState.PENDING)
        run = replace(run, verification=record)
    used = run.retry.used if retries_used is None else retries_used
    retry = replace(run.retry, used=used, due_ms=due_ms)
    run = enter(run, P.RETRY_WAIT, at_ms, retry=retry)
    return Transition(run, effects=look_after(run))


def settle_unstarted(run: Run, stop: BudgetStop, at_ms: int) -> Transition:
    """No budget is left for the next attempt."""
    outcome = budgets.not_started(run, stop)
    # The contract failed and its retry cannot be paid for: the failed check is the verdict.
    if run.retry.cause.verifies:
        record = replace(run.verification, state=VerificationState.FAILED)
        run = replace(run, verification=record)
    return settle(run, outcome, at_ms)


def verified(run: Run, event: events.VerificationFinished) -> Transition:
    """The contract's verdict: the run's outcome, or one more attempt at the work."""
    attempt_outcome = run.attempt.outcome
    if event.attempt != run.attempt.number or attempt_outcome is None:
        return Transition(run, stale=True)
    contract = run.spec.verification
    verification, before = event.verification, run.verification.result
    passed = verification.verdict is Verdict.PASSED
    record = replace(
        run.verification,
        result=verification,
        passed=(),
        state=VerificationState.PASSED if passed else VerificationState.FAILED,
    )
    run = replace(run, verification=record)
    if passed or contract is None:
        return settle(run, attempt_outcome, event.at_ms)
    # The folding of old journals gives what was announced then: 0.1.0 had the shorter text.
    shorter = "; ".join(f"{c.target}: {c.reason}" for c in verification.failures)
    text = failures_text(verification) if run.rules else shorter
    is_escalated = contract.on_failure is OnFailure.ESCALATE
    if verification.verdict is Verdict.COULD_NOT_CHECK:
        # Says nothing about the work, so the worker is not paid to do it again.
        outcome = Outcome(status=Status.ERROR, reason=Reason.COULD_NOT_CHECK, error=text)
        step = settle(run, outcome, event.at_ms)
        # A judge that gives no verdict leaves the decision to somebody else.
        is_undecided = contract.judge is not None
        return _escalated(step) if is_escalated and is_undecided else step
    is_once = contract.on_failure is OnFailure.RETRY_ONCE
    is_asked, because = is_once and run.verification.retried_at_ms is None, ""
    if run.spec.retry_until_verified:
        because = why_no_retry(run, before, verification, event.at_ms)
        is_asked = not because
    if is_asked:
        retry = replace(run.retry, cause=RetryCause(reason=text, verifies=True))
        run = replace(run, retry=retry)
        return _try_again(run, event.at_ms, due_ms=event.at_ms)
    if because:
        text = f"stopped after attempt {event.attempt}: {because}: {text}"
    outcome = Outcome(status=Status.ERROR, reason=Reason.VERIFICATION_FAILED, error=text)
    step = settle(run, outcome, event.at_ms)
    return _escalated(step) if is_escalated else step


def _escalated(step: Transition) -> Transition:
    return step._replace(messages=(*step.messages, announcement.escalation(step.run)))


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


def delivery_settled(run: Run, event: events.DeliverySettled) -> Transition:
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


def consumed(run: Run, event: events.AnnouncementConsumed) -> Transition:
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
