"""The one place where a run changes: ``reduce(run, event)``.

The rules, in the order they matter:

- Legal transitions are data: ``transitions.TRANSITIONS``.
- A late or doubled event is *stale*: journaled, changes nothing but ``seq``, is never news.
- Anything else raises ``IllegalTransition`` and changes nothing.
- Time and ids come inside events. Nothing here waits, reads a clock or does anything: what must
  be done leaves as effects (after the commit) and follow-ups (in the same commit).
- A run gets its outcome once, in ``settle``, and with it exactly one announcement.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from subagents.domain.alerts import allowance
from subagents.domain.lifecycle import accounting, conclusion, judging, open_questions, turns
from subagents.domain.lifecycle.conclusion import conclude, settle
from subagents.domain.lifecycle.erasure import erased
from subagents.domain.lifecycle.steps import consume, enter, join, steered, with_attempt
from subagents.domain.lifecycle.transitions import STALE, TRANSITIONS
from subagents.domain.rules import clock_steps, provider_limits
from subagents.domain.rules.budgets import budgets
from subagents.domain.rules.deadlines import longest_wait_ms, warn_at_ms
from subagents.domain.rules.evidence import decide, merge, with_report_from_text
from subagents.domain.rules.places import with_tree
from subagents.domain.rules.retry import resume_message, resumes
from subagents.domain.run import events
from subagents.domain.run.alert import AlertKind, OnStuck
from subagents.domain.run.baseline import rebased
from subagents.domain.run.effects import (
    CancelChildren,
    Effect,
    FollowUp,
    FreezeAttempt,
    InterruptAttempt,
    PassOn,
    ResumeAttempt,
    StartAttempt,
    SteerAttempt,
    StopAttempt,
    StopChildren,
    ThawAttempt,
    Transition,
)
from subagents.domain.run.linked_runs import Child, Dependencies, Dependency
from subagents.domain.run.outcome import OK, Outcome, Reason, Status, VerificationState
from subagents.domain.run.run import (
    NO_CAUSE,
    Answer,
    Attempt,
    AttemptSession,
    AttemptTimes,
    BudgetStop,
    Cancel,
    Control,
    Decision,
    Evidence,
    Lineage,
    Message,
    Phase,
    PlannedCancel,
    Priority,
    ProgressLog,
    Run,
    RunSession,
    RunTimes,
    Steer,
    StopCause,
    VerificationRecord,
    Waiting,
)
from subagents.domain.run.signals import PermissionAsked, ProgressSeen
from subagents.domain.run.spec import OnDependencyFailure
from subagents.domain.run.values import RunId, replace
from subagents.domain.run.workspace import PlacedTree
from subagents.domain.text import announcement
from subagents.errors import IllegalTransition
from subagents.text import one_line

FOLLOW_UPS_MAX: Final = 20
"""Further turns of one attempt. Each needs news (children that ended, messages); an agent that
spawns in every one of them must come to an end all the same."""

P = Phase
_LIVE: Final = (P.SPAWNING, P.RUNNING)


def reduce(run: Run | None, event: events.Event) -> Transition:
    """Return the run after ``event``, and what must now be done about it.

    Args:
        run: The run so far; None only for ``Spawned``.
        event: The next fact of this run.

    Raises:
        IllegalTransition: The phase neither expects the event nor knows it as stale.
    """
    if run is None:
        if not isinstance(event, events.Spawned):
            raise IllegalTransition("?", "none", type(event).__name__)
        return _spawned(event)
    # Events race: a worker exits while it is being cancelled, a timer fires for a run that moved
    # on. Such a pair is known as stale and harmless; any other is a bug and must not be stored.
    if (run.phase, type(event)) not in TRANSITIONS:
        if (run.phase, type(event)) in STALE:
            # It is journaled like any other event, and so takes the next number.
            return Transition(replace(run, seq=run.seq + 1), stale=True)
        raise IllegalTransition(run.id, run.phase, type(event).__name__)
    step = REACTIONS[type(event)](replace(run, seq=run.seq + 1), event)
    return accounting.settle_up(run, step, event, stop=_stop_for_budget)


# -- before the first attempt -------------------------------------------------------------------


def _spawned(event: events.Spawned) -> Transition:
    unsettled = any(dependency.outcome is None for dependency in event.dependencies)
    waits = bool(event.approval or event.spec.gate or event.spec.for_each)
    run = Run(
        id=event.run_id,
        spec=event.spec,
        resolved=event.resolved,
        requester=event.requester,
        lineage=Lineage(
            requester_run=event.requester_run,
            retry_from=event.retry_from,
            depth=event.depth,
            judges=event.judges,
        ),
        rules=event.rules,
        phase=P.WAITING if unsettled or waits else P.QUEUED,
        times=RunTimes(created_at_ms=event.at_ms, phase_since_ms=event.at_ms),
        session=RunSession(first_key=event.session_key, continues=event.continues),
        control=Control(planned=_end_of_plan(event)),
    )
    if event.dependencies:
        # One that is settled already is kept, too: its result may be wanted in the prompt.
        most_ms = longest_wait_ms(run)
        late_ms = event.at_ms + most_ms if unsettled and most_ms is not None else None
        waiting = Waiting(dependencies=Dependencies(event.dependencies), deadline_ms=late_ms)
        run = replace(run, waiting=waiting)
    if event.spec.verification is not None:
        record = VerificationRecord(
            state=VerificationState.PENDING,
            vacuous=event.vacuous,
            baseline=event.baseline,
            left=event.left,
        )
        run = replace(run, verification=record)
    if event.approval is not None:
        run = open_questions.asked(run, event.approval)
    step = _check_dependencies(run, event.at_ms, run.waiting.dependencies)
    if event.approval is not None and not step.run.is_settled:
        # Not when a dependency had failed before the spawn: such a run never begins.
        asked = announcement.question(run, event.approval)
        step = step._replace(messages=(*step.messages, asked))
    return accounting.report_spending(step) if step.run.is_settled else step


def _end_of_plan(event: events.Spawned) -> PlannedCancel | None:
    """When the time of its plan is over; what a step spawned ends with the step."""
    step, plan = event.resolved.step, event.resolved.plan
    if step is None or plan is None or (time_ms := budgets.limit_ms_of(plan.budget)) is None:
        return None
    reason = "the time for all runs of the plan is over"
    return PlannedCancel(by=event.requester, due_ms=event.at_ms + time_ms, reason=reason)


def _dependency_settled(run: Run, event: events.DependencySettled) -> Transition:
    known = run.waiting.dependencies
    settled = known.settled(event.run_id, event.outcome, event.result, event.left)
    run = replace(run, waiting=replace(run.waiting, dependencies=settled))
    found = settled.get(event.run_id)
    return _check_dependencies(run, event.at_ms, () if found is None else (found,))


def _check_dependencies(run: Run, at_ms: int, new: Iterable[Dependency] = ()) -> Transition:
    """Cancel or fall back on a failed dependency, queue when all are settled, else wait on.

    Those that are not ``new`` were looked at when they were.
    """
    if run.spec.on_dependency_failure is not OnDependencyFailure.RUN:
        for dependency in new:
            outcome = dependency.outcome
            if outcome is None or _is_usable(run, outcome):
                continue
            if run.spec.on_dependency_failure is OnDependencyFailure.FALLBACK:
                # One agent takes over, however many dependencies failed: the first is on record.
                run = _fallen_back(run, dependency.run_id)
                break
            error = outcome.error or outcome.reason or "no error text"
            text = f"Dependency run {dependency.run_id} {outcome.status}: {error}"
            return settle(
                run,
                Outcome(status=Status.ERROR, reason=Reason.DEPENDENCY_FAILED, error=text),
                at_ms,
            )
    if run.waiting.dependencies.active:
        return Transition(run)
    if run.waiting.deadline_ms is not None:
        run = replace(run, waiting=replace(run.waiting, deadline_ms=None))
    asked, gate = run.approval, run.spec.gate
    if asked is not None and asked.answer is None:
        return Transition(run)
    if gate is not None and (asked is None or asked.question != gate):
        return open_questions.gate_asked(run, gate, at_ms)
    if run.spec.task == gate:
        return settle(run, OK, at_ms)  # a gate and nothing behind it
    if run.phase is P.WAITING and run.spec.for_each is None:
        run = enter(run, P.QUEUED, at_ms)
    return Transition(run)


def _fanned_out(run: Run, event: events.FannedOut) -> Transition:
    """From now on it waits for its runs, as after an attempt; no worker was needed for it."""
    if run.spec.for_each is None or run.waiting.dependencies.active or run.pending_requests:
        return Transition(run, stale=True)
    if event.error is not None:
        failed = Outcome(Status.ERROR, Reason.DEPENDENCY_FAILED, event.error)
        return settle(run, failed, event.at_ms)
    attempt = Attempt(
        number=1,
        session=AttemptSession(key=run.session.first_key),
        times=AttemptTimes(requested_at_ms=event.at_ms, ended_at_ms=event.at_ms),
        evidence=Evidence(result=event.text),
        outcome=OK,
    )
    run = enter(run, P.ENDING, event.at_ms, attempts=(attempt,))
    run = replace(run, times=replace(run.times, started_at_ms=event.at_ms))
    return Transition(run) if event.items else _after_children(run, event.at_ms)


def _fallen_back(run: Run, failed: RunId) -> Run:
    if run.waiting.fell_back is not None:
        return run
    waiting = replace(run.waiting, fell_back=failed)
    return replace(run, waiting=waiting, resolved=run.resolved.fallen_back)


def _approved(run: Run, at_ms: int) -> Transition:
    """A person was asked whether the run may begin: only their yes lets it."""
    asked = run.approval
    given = None if asked is None else asked.answer
    if given is not None and given.decision is Decision.APPROVE:
        return _check_dependencies(run, at_ms)
    because = "nobody answered in time"
    if given is not None and given.decision in {Decision.DENY, Decision.ANSWER}:
        # A free answer is no consent, whatever it says.
        because = f"denied by {given.by}" + (f" ({given.text})" if given.text else "")
    access = run.resolved.access
    level = "more" if access is None else f'access "{access.level}"'
    text = (
        f"the user was asked to allow {level}: {because}; spawn without access to go on with less"
    )
    if asked is not None and asked.question == run.spec.gate:
        text = f'"{asked.question}": {because}'
    outcome = Outcome(status=Status.ERROR, reason=Reason.NOT_ALLOWED, error=text)
    return settle(run, outcome, at_ms)


def _is_usable(run: Run, outcome: Outcome) -> bool:
    if outcome.status is Status.PARTIAL:
        return run.spec.accept_partial_dependencies
    return outcome.status is Status.OK


def _slot_granted(run: Run, event: events.SlotGranted) -> Transition:
    number = len(run.attempts) + 1
    session = resumes(run)
    # The prompt of a new session does not mention children of the attempt before; a session that
    # goes on has spawned them, and waits for their results.
    untold = run.children.untold if session else ()
    attempt = Attempt(
        number=number,
        session=AttemptSession(
            key=event.session_key,
            resumes=session,
            opening=resume_message(run, untold) if session else None,
        ),
        times=AttemptTimes(requested_at_ms=event.at_ms),
        retry=run.retry.cause,
        token_hashes=(event.token_hash,) if event.token_hash else (),
        node=event.node,
        handed_over=run.retry.handed_over,
        steers_before=run.control.steers_total if run.control.steers or run.control.told else 0,
    )
    # Kept over retries: the run's budget of seconds counts from its first slot.
    started_ms = run.times.started_at_ms or event.at_ms
    run = replace(
        run,
        phase=P.SPAWNING,
        times=replace(run.times, phase_since_ms=event.at_ms, started_at_ms=started_ms),
        attempts=(*run.attempts, attempt),
        children=run.children.told(child.run_id for child in untold),
        retry=run.retry if attempt.retry is NO_CAUSE else replace(run.retry, cause=NO_CAUSE),
    )
    followups = consume(child.run_id for child in untold)
    return Transition(run, effects=(StartAttempt(attempt=number),), followups=followups)


def _provider_closed(run: Run, event: events.ProviderClosed) -> Transition:
    if run.phase is not P.QUEUED or provider_limits.step_of(run).agent is None:
        return Transition(run, stale=True)
    return Transition(provider_limits.handed_over(run, event.why))


def _attempt_placed(run: Run, event: events.AttemptPlaced) -> Transition:
    if event.attempt != run.attempt.number:
        return Transition(run, stale=True)
    return Transition(with_attempt(run, replace(run.attempt, node=event.node)))


def _worktree_planned(run: Run, event: events.WorktreePlanned) -> Transition:
    # Planned on a node from which the attempt was taken again: the next one plans its own.
    if event.worktree.node != run.attempt.node:
        return Transition(run, stale=True)
    tree = PlacedTree(worktree=event.worktree, cwd=event.cwd)
    return Transition(replace(run, placed_tree=tree, resolved=with_tree(run.resolved, tree)))


def _baseline_taken(run: Run, event: events.BaselineTaken) -> Transition:
    """What the files of the contract must differ from, from this attempt on."""
    record, found = run.verification, event.baseline
    if event.attempt:
        attempt = run.attempt
        if event.attempt != attempt.number or attempt.times.started_at_ms is not None:
            return Transition(run, stale=True)
    elif record.baseline is not None:
        return Transition(run, stale=True)
    if record.baseline is None:
        record = replace(record, baseline=found, vacuous=event.vacuous)
    elif record.left is not None:
        record = replace(record, baseline=rebased(record.baseline, record.left, found))
    if event.attempt:
        record = replace(record, looked=event.attempt, left=found)
    return Transition(replace(run, verification=record))


# -- while an attempt lives ---------------------------------------------------------------------


def _token_issued(run: Run, event: events.TokenIssued) -> Transition:
    attempt = run.attempt
    if event.attempt != attempt.number or event.token_hash in attempt.token_hashes:
        return Transition(run, stale=True)
    # The older ones stay valid: a worker that was started before the crash holds one of them.
    hashes = (*attempt.token_hashes, event.token_hash)
    return Transition(with_attempt(run, replace(attempt, token_hashes=hashes)))


def may_call(run: Run, number: int) -> bool:
    """Whether the worker of that attempt is one whose calls still count."""
    if run.is_settled or number != len(run.attempts):
        return False
    # The process of a next turn may speak before its start is on record.
    return run.attempt.outcome is None or (run.phase is P.ENDING and _awaits_turn(run))


def _attempt_started(run: Run, event: events.AttemptStarted) -> Transition:
    attempt = run.attempts[-1]
    is_first_turn = event.turn == 1
    expected_turn = 1 if run.phase is P.SPAWNING else attempt.turn.number + 1
    if event.attempt != attempt.number or event.turn != expected_turn:
        return Transition(run, stale=True)
    if run.phase is P.ENDING and not _awaits_turn(run):
        return Transition(run, stale=True)
    begun = turns.first if is_first_turn else turns.further
    attempt = begun(run, event)
    attempts = (*run.attempts[:-1], attempt)
    run = enter(run, P.RUNNING, event.at_ms, attempts=attempts)
    if run.control.frozen_since_ms is not None:
        # The attempt before was killed while it stood still.
        run = replace(run, control=replace(run.control, frozen_since_ms=None))
    if event.vacuous:
        run = replace(run, verification=replace(run.verification, vacuous=True))
    if run.verification.left is not None:
        # From now on what changes is the run's own work, until it stops and is looked at again.
        run = replace(run, verification=replace(run.verification, left=None))
    # Messages from before the start were part of the prompt (or of the turn); later ones go in now.
    effects: tuple[Effect, ...] = ()
    if run.control.steers:
        known = attempt.steers_before if is_first_turn else 0
        pending = tuple(each for each in run.control.steers if each.number > known)
        run = steered(run, pending)
        effects = tuple(
            SteerAttempt(attempt=attempt.number, number=steer.number, message=steer.message)
            for steer in pending
            if run.resolved.abilities.steer and not (steer.next_turn and is_first_turn)
        )
    if (ends := _ends(run)) is not None and attempt.evidence.stop is None:
        # Cancelled, or out of budget, while its next turn was being started.
        return _stop(run, ends, event.at_ms)
    if run.control.paused:
        frozen = _frozen(run, event.at_ms)
        return frozen._replace(effects=(*effects, *frozen.effects))
    return Transition(run, effects=effects)


def _ends(run: Run) -> StopCause | None:
    """Why a turn that starts now is stopped at once."""
    if run.control.cancel is not None:
        return run.control.cancel.stop_cause
    return StopCause.BUDGET if run.budget.stop is not None else None


def _start_failed(run: Run, event: events.AttemptStartFailed) -> Transition:
    attempt = run.attempt
    if event.attempt != attempt.number:
        return Transition(run, stale=True)
    if run.phase is P.ENDING:
        if attempt.outcome is None or not _awaits_turn(run):
            return Transition(run, stale=True)
        # The follow-up turn could not start: the children's results are appended instead.
        run = _append_children(replace(run, children=run.children.told_to_nobody()))
        ended = attempt.outcome
        if run.control.cancel is not None:
            ended = run.control.cancel.outcome
        elif run.budget.stop is not None:
            ended = budgets.stopped(run, run.budget.stop)
        return conclude(run, ended, event.at_ms)
    outcome = Outcome(status=Status.ERROR, reason=Reason.START_FAILED, error=event.error)
    if run.budget.stop is not None and attempt.evidence.stop is StopCause.BUDGET:
        # It came first; a cancellation behind it changes nothing.
        outcome = budgets.not_started(run, run.budget.stop)
    elif run.control.cancel is not None:
        outcome = run.control.cancel.outcome
    elif attempt.evidence.stop is StopCause.INTERRUPT:
        text = "interrupted before it was started"
        outcome = Outcome(status=Status.PARTIAL, reason=Reason.INTERRUPTED, error=text)
    attempt = _ended(attempt, outcome, event.at_ms)
    # It can have asked: started before a crash, and impossible to start again after it.
    run, followups = open_questions.close(with_attempt(run, attempt), event.at_ms)
    if run.children.active:
        # What it spawned then is awaited before the run is announced.
        return join(_after_children(run, event.at_ms), followups)
    # Retries would meet the same refusal, each after its delay.
    end = settle if event.permanent else conclude
    return join(end(run, outcome, event.at_ms), followups)


def _signal_received(run: Run, event: events.SignalReceived) -> Transition:
    # Evidence of an attempt that was decided can change nothing: its outcome is on record, perhaps
    # announced already.
    attempt = run.attempts[-1]
    if event.attempt != attempt.number or attempt.outcome is not None:
        return Transition(run, stale=True)
    # Most are neither: asked once.
    if isinstance(event.signal, ProgressSeen | PermissionAsked):
        if isinstance(event.signal, PermissionAsked):
            return open_questions.permission_asked(run, event.signal, event.at_ms)
        # Shown, and no evidence: what a worker says of its progress decides nothing.
        progress = replace(event.signal.progress, updated_at_ms=event.at_ms)
        lines = max(run.progress.lines, progress.number)
        paced_ms = event.at_ms if event.signal.is_paced else run.progress.paced_at_ms
        log = ProgressLog(latest=progress, lines=lines, paced_at_ms=paced_ms)
        return Transition(replace(run, progress=log))
    attempt = merge(attempt, event.signal, at_ms=event.at_ms)
    return _reconcile(with_attempt(run, attempt), event.at_ms)


def _lease_expired(run: Run, event: events.LeaseExpired) -> Transition:
    attempt = run.attempt
    if event.attempt != attempt.number or attempt.outcome is not None:
        return Transition(run, stale=True)
    # Not decided by itself: an exit that is on record outweighs a lease that ended.
    evidence = replace(attempt.evidence, lease_lost=True)
    return _reconcile(with_attempt(run, replace(attempt, evidence=evidence)), event.at_ms)


def _reconcile(run: Run, at_ms: int) -> Transition:
    """Ask the reconciler whether the attempt is over, and go on from there."""
    attempt = run.attempts[-1]
    outcome = decide(attempt, at_ms=at_ms)
    if outcome is None:
        # The exit is known and its stream was not read to the end: its last words may still decide.
        settling = attempt.evidence.exit is not None and run.phase is not P.ENDING
        return Transition(enter(run, P.ENDING, at_ms) if settling else run)
    # Only now: the report's text can be in the last line, and a report may lower the outcome.
    attempt = with_report_from_text(attempt)
    outcome = decide(attempt, at_ms=at_ms) or outcome
    if outcome.status is Status.CANCELLED and run.control.cancel is not None:
        outcome = run.control.cancel.outcome
    elif outcome.reason is Reason.BUDGET and run.budget.stop is not None:
        outcome = budgets.stopped(run, run.budget.stop)
    run = with_attempt(run, _ended(attempt, outcome, at_ms))
    run, taken = turns.took(run)
    run, followups = open_questions.close(run, at_ms)
    followups += consume(taken)
    is_interrupted = outcome.reason is Reason.INTERRUPTED
    # What a worker spawned goes on when it ended by itself, since its run waits for the results. It
    # is cancelled with one that we ended: the results would be of no use.
    ended_by_us = outcome.status in {Status.CANCELLED, Status.TIMEOUT} or is_interrupted
    if run.children.active and ended_by_us:
        end = "interrupted" if is_interrupted else str(outcome.status)
        followups += (CancelChildren(by=run.id, reason=f"parent run ended: {end}"),)
    step = join(_after_children(run, at_ms), followups)
    if run.resolved.abilities.survives_daemon:
        # A worker that ended by itself can leave children behind; before anything is verified or
        # tried again they end too.
        reap = StopAttempt(attempt=attempt.number, grace_ms=run.resolved.grace_ms)
        step = step._replace(effects=(reap, *step.effects))
    return step


def _ended(attempt: Attempt, outcome: Outcome, at_ms: int) -> Attempt:
    return replace(attempt, outcome=outcome, times=replace(attempt.times, ended_at_ms=at_ms))


def _after_children(run: Run, at_ms: int) -> Transition:
    """The attempt is over: wait for live descendants, tell the agent of ended ones, or go on."""
    outcome = run.attempt.outcome
    # A run announces once and for its whole subtree, so it waits for every live descendant.
    if outcome is None or run.children.active:
        return _awaiting(run, at_ms)
    # The attempt had ended, and the cancellation came while its descendants were awaited.
    if run.control.cancel is not None and outcome.status is not Status.CANCELLED:
        outcome = run.control.cancel.outcome
    if run.spec.for_each is not None:
        ended = conclusion.outcome_of_items(run.children) if outcome.is_ok else outcome
        return settle(_append_children(run), ended, at_ms)
    untold = run.children.untold
    # An interrupt asks for no further turn, unless messages came since.
    news = (
        run.control.steers
        if outcome.reason is Reason.INTERRUPTED
        else (*untold, *run.control.steers)
    )
    wants_turn = bool(news) and outcome.status in {Status.OK, Status.PARTIAL}
    may_follow_up = wants_turn and _may_follow_up(run, at_ms)
    if run.budget.stop is not None and wants_turn and (untold or may_follow_up):
        # No budget for one more turn: what there is goes up as it is.
        return conclude(_append_children(run), budgets.stopped(run, run.budget.stop), at_ms)
    if may_follow_up:
        if run.control.paused:
            return _awaiting(run, at_ms)
        return _follow_up(run, untold, at_ms)
    return conclude(_append_children(run), outcome, at_ms)


def _awaiting(run: Run, at_ms: int) -> Transition:
    """The attempt is over, and something else has to happen before the run goes on."""
    # The phase keeps its time: `status` shows since when it is awaited.
    return Transition(run if run.phase is P.ENDING else enter(run, P.ENDING, at_ms))


def _may_follow_up(run: Run, at_ms: int) -> bool:
    """Where the session can be resumed, and not only to be stopped at its deadline."""
    deadline_ms = run.attempt.times.deadline_ms
    in_time = deadline_ms is None or at_ms < deadline_ms
    is_left = run.attempt.turn.number <= FOLLOW_UPS_MAX
    return run.resolved.abilities.resume and is_left and in_time


def _awaits_turn(run: Run) -> bool:
    """A follow-up turn was asked for and neither started nor failed yet."""
    attempt = run.attempt
    return attempt.turn.next_asked and attempt.outcome is not None and not run.children.active


def _follow_up(run: Run, untold: tuple[Child, ...], at_ms: int) -> Transition:
    """One more turn in the same session, with all the children's results and waiting messages."""
    # The text is fixed here, in the event, and not when the turn starts: what comes in between is
    # for the turn after, and a start that is repeated says the same.
    message = announcement.follow_up(untold, run.control.steers)
    turn = replace(run.attempt.turn, next_asked=True, only_tells=not run.control.steers)
    attempt = replace(run.attempt, turn=turn)
    run = with_attempt(steered(enter(run, P.ENDING, at_ms), ()), attempt)
    run = replace(run, children=run.children.told(child.run_id for child in untold))
    effect = ResumeAttempt(attempt=attempt.number, turn=attempt.turn.number + 1, message=message)
    followups = consume(child.run_id for child in untold)
    return Transition(run, effects=(effect,), followups=followups)


def _append_children(run: Run) -> Run:
    """Without a turn to tell it in, the children's results become part of this run's result."""
    untold = tuple(
        child
        for child in run.children.untold
        if child.outcome and child.outcome.status is not Status.CANCELLED
    )
    if not untold or run.attempt.outcome is None or run.attempt.outcome.status is Status.CANCELLED:
        return run
    evidence = run.attempt.evidence
    text = announcement.append_children(evidence.result, untold)
    more = text[len(evidence.result or "") :]
    changes: dict[str, object] = {"result": text, "result_bytes": 0}
    if evidence.result_bytes and (run.rules or evidence.result_file is not None):
        # What stands before it was cut, and the whole is still that much longer.
        changes["result_bytes"] = evidence.result_bytes + len(more.encode())
    if evidence.result_file is not None:
        file = evidence.result_file
        changes["result_file"] = replace(file, more=file.more + more)
    return with_attempt(run, replace(run.attempt, evidence=replace(evidence, **changes)))


def _timer_fired(run: Run, at_ms: int, *, backs_off: bool) -> Transition:
    # One wake-up serves whatever is due. What that is follows from the run and the time alone, so a
    # wake-up that comes late, twice or for something that moved finds nothing to do.
    planned = run.planned
    if planned is not None and at_ms >= planned.due_ms:
        if planned.of_turn is not None:
            # Of that turn it is an interrupt: the session stays, and the run goes on by its rules.
            run = replace(run, control=replace(run.control, planned=None))
            return _interrupted(run, at_ms)
        return _cancel(run, Cancel(at_ms=at_ms, by=planned.by, reason=planned.reason))
    match run.phase:
        case P.WAITING:
            return _wait_timed_out(run, at_ms)
        case P.RETRY_WAIT | P.QUEUED if (
            late := provider_limits.past_deadline(run, at_ms)
        ) is not None:
            return settle(run, late, at_ms)
        case P.RETRY_WAIT:
            if run.control.paused or run.retry.due_ms is None or at_ms < run.retry.due_ms:
                return Transition(run, stale=True)
            retry = replace(run.retry, due_ms=None)
            return Transition(enter(run, P.QUEUED, at_ms, retry=retry))
        case P.ANNOUNCE_DEFERRED:
            due = run.delivery.due_ms if run.delivery else None
            if due is None or at_ms < due:
                return Transition(run, stale=True)
            return conclusion.announce_again(run, at_ms)
        case P.QUEUED | P.VERIFYING:
            return Transition(run, stale=True)
        case P.ENDING:
            if run.attempt.outcome is not None:
                return Transition(run, stale=True)
            return _reconcile(run, at_ms)
        case _:
            return _live_timer(run, at_ms, backs_off=backs_off)


def _wait_timed_out(run: Run, at_ms: int) -> Transition:
    run, resolved, _ = open_questions.expire(run, at_ms)
    if resolved:
        return join(_approved(run, at_ms), resolved)
    if run.waiting.deadline_ms is None or at_ms < run.waiting.deadline_ms:
        return Transition(run, stale=True)
    late = next(d for d in run.waiting.dependencies if d.outcome is None)
    text = f"Timed out after {longest_wait_ms(run)}ms waiting for run {late.run_id}"
    outcome = Outcome(status=Status.TIMEOUT, reason=Reason.DEPENDENCY_TIMEOUT, error=text)
    return settle(run, outcome, at_ms)


def _live_timer(run: Run, at_ms: int, *, backs_off: bool) -> Transition:
    run, followups, told = open_questions.expire(run, at_ms)
    attempt = run.attempt
    effects: tuple[Effect, ...] = told
    warn = warn_at_ms(run, attempt)
    deadline = attempt.times.deadline_ms
    if deadline is not None and attempt.evidence.stop is None:
        if at_ms >= deadline:
            cause = StopCause.PROVIDER if backs_off else StopCause.DEADLINE
            stopped = _stop(run, cause, at_ms)
            run, effects = stopped.run, (*told, *stopped.effects)
        elif warn is not None and at_ms >= warn:
            text = announcement.deadline_warning(deadline - at_ms)
            run = with_attempt(run, replace(attempt, times=replace(attempt.times, warned=True)))
            # Numbered like any message, but not kept: in a next turn it would be out of date.
            number = run.control.steers_total + 1
            run = replace(run, control=replace(run.control, steers_total=number))
            warning = SteerAttempt(attempt=attempt.number, number=number, message=text)
            effects = (*told, warning)
    run, digest = allowance.roll(run, at_ms=at_ms)
    followups += _passed_on(run, digest)
    if attempt.evidence.exit is not None:
        step = join(_reconcile(run, at_ms), followups)
        return step._replace(messages=(*digest, *step.messages))
    return Transition(run, effects=effects, followups=followups, messages=digest)


# -- what is asked of a run: to stop, to pause, and messages for its worker ----------------------


def _stop(run: Run, cause: StopCause, at_ms: int) -> Transition:
    """Begin to end the live attempt; what its run comes to is decided by its exit."""
    evidence = replace(run.attempt.evidence, stop=cause, stop_at_ms=at_ms)
    attempt = replace(run.attempt, evidence=evidence)
    effect = StopAttempt(attempt=attempt.number, grace_ms=run.resolved.grace_ms)
    return Transition(with_attempt(run, attempt), effects=(effect,))


def _interrupted(run: Run, at_ms: int) -> Transition:
    """Politely first: what its program says at a turn's end is worth the seconds."""
    if run.attempt.evidence.stop is not None:
        return Transition(run, stale=True)
    step = _stop(run, StopCause.INTERRUPT, at_ms)
    return step._replace(effects=(InterruptAttempt(attempt=run.attempt.number), *step.effects))


def _cancel_planned(run: Run, event: events.CancelPlanned) -> Transition:
    """Until its time comes, or it is taken back, the run goes on as if there were no plan."""
    if run.control.cancel is not None:
        return Transition(run, stale=True)
    planned = PlannedCancel(
        by=event.by, due_ms=event.due_ms, reason=event.reason, of_turn=event.of_turn
    )
    return Transition(replace(run, control=replace(run.control, planned=planned)))


def _cancel_withdrawn(run: Run, _: events.CancelWithdrawn) -> Transition:
    if run.control.planned is None:
        return Transition(run, stale=True)
    return Transition(replace(run, control=replace(run.control, planned=None)))


def _cancel_requested(run: Run, event: events.CancelRequested) -> Transition:
    cancel = Cancel(at_ms=event.at_ms, by=event.by, reason=event.reason, cascaded=event.cascaded)
    if run.control.cancel is not None:
        return Transition(run, stale=True)
    return _cancel(run, cancel)


def _cancel(run: Run, cancel: Cancel) -> Transition:
    # Recorded in every phase, so that whatever is decided later (a start, a verdict) sees it.
    run = replace(run, control=replace(run.control, cancel=cancel, planned=None))
    followups: tuple[FollowUp, ...] = ()
    if run.children.active:
        reason = cancel.reason or "parent run cancelled"
        followups = (CancelChildren(by=cancel.by, reason=reason),)
    if run.phase in _LIVE:
        if run.attempt.evidence.stop is not None:
            return Transition(run, followups=followups)
        # Not stopped already: the first reason why an attempt is stopped stays its outcome.
        return _stop(run, cancel.stop_cause, cancel.at_ms)._replace(followups=followups)
    if run.phase is P.ENDING:
        if run.control.paused and run.attempt.outcome is not None:
            return join(_after_children(run, cancel.at_ms), followups)
        # The worker is gone; only its descendants (or a stream's last words) are awaited.
        return Transition(run, followups=followups)
    if run.phase is P.VERIFYING and run.children.active:
        return Transition(run, followups=followups)  # it ends when its judge has
    return join(settle(run, cancel.outcome, cancel.at_ms), followups)


def _paused(run: Run, at_ms: int) -> Transition:
    run = replace(run, control=replace(run.control, paused=True))
    return _frozen(run, at_ms) if run.phase is P.RUNNING else Transition(run)


def _frozen(run: Run, at_ms: int) -> Transition:
    """A paused run's live worker stands still, where its runtime can do that."""
    attempt = run.attempt
    if not run.resolved.abilities.freeze or attempt.evidence.stop is not None:
        return Transition(run)
    if run.control.frozen_since_ms is None:
        run = replace(run, control=replace(run.control, frozen_since_ms=at_ms))
    return Transition(run, effects=(FreezeAttempt(attempt=attempt.number),))


def _resumed(run: Run, at_ms: int) -> Transition:
    if not run.control.paused:
        return Transition(run, stale=True)
    since_ms = run.control.frozen_since_ms
    run = replace(run, control=replace(run.control, paused=False, frozen_since_ms=None))
    if since_ms is not None and run.phase is P.RUNNING:
        return _thawed(run, since_ms, at_ms)
    is_held = run.phase is P.ENDING and run.attempt.outcome is not None
    return _after_children(run, at_ms) if is_held else Transition(run)


def _thawed(run: Run, since_ms: int, at_ms: int) -> Transition:
    """Its worker goes on, and has the time that was left when it was stopped."""
    attempt, deadline_ms = run.attempt, run.attempt.times.deadline_ms
    if deadline_ms is not None:
        times = replace(attempt.times, deadline_ms=deadline_ms + max(0, at_ms - since_ms))
        run = with_attempt(run, replace(attempt, times=times))
    return Transition(run, effects=(ThawAttempt(attempt=attempt.number),))


def _steer_requested(run: Run, event: events.SteerRequested) -> Transition:
    """Whoever writes to the worker has read its notices: the message answers them all."""
    run = replace(run, control=replace(run.control, last_steer_ms=event.at_ms))
    if event.added is not None and run.spec.budget is not None:
        run = budgets.with_raised(run, event.added, event.at_ms)
    notices = tuple(each for each in run.pending_requests if each.priority is not None)
    given = Answer(decision=Decision.ANSWER, text=event.message, by=event.by, at_ms=event.at_ms)
    for notice in notices:
        run = open_questions.answer(run, notice.id, given)
    step = _steer(run, event.message, by=event.by, at_ms=event.at_ms, next_turn=event.next_turn)
    return join(step, open_questions.resolved(notices))


def _steer(run: Run, message: str, *, by: str, at_ms: int, next_turn: bool = False) -> Transition:
    """A message for the worker: into the live attempt where its runtime can, else kept."""
    number = run.control.steers_total + 1
    steer = Steer(number=number, message=message, by=by, at_ms=at_ms, next_turn=next_turn)
    control = replace(run.control, steers=(*run.control.steers, steer), steers_total=number)
    run = replace(run, control=control)
    if run.phase is P.RUNNING and run.resolved.abilities.steer and not next_turn:
        effect = SteerAttempt(attempt=run.attempt.number, number=number, message=message)
        return Transition(run, effects=(effect,))
    return Transition(run)


def _steer_settled(run: Run, event: events.SteerSettled) -> Transition:
    if not event.taken:
        return Transition(run)
    left = tuple(steer for steer in run.control.steers if steer.number != event.number)
    return Transition(steered(run, left))


# -- children -----------------------------------------------------------------------------------


def _child_settled(run: Run, event: events.ChildSettled) -> Transition:
    settled = run.children.settled(event.child, event.outcome, event.result)
    if settled is run.children:
        return Transition(run, stale=True)
    run = replace(run, children=settled)
    if run.phase is P.VERIFYING:
        cancel = run.control.cancel
        if cancel is not None:
            return settle(run, cancel.outcome, event.at_ms)
        return judging.judge_settled(run, event)
    return _after_children(run, event.at_ms) if run.phase is P.ENDING else Transition(run)


# -- budgets ------------------------------------------------------------------------------------


def _stop_for_budget(run: Run, stop: BudgetStop, at_ms: int) -> Transition:
    """End the run with what it has so far; what is being verified or announced continues."""
    if run.budget.stop is not None:
        return Transition(run, stale=True)
    run = replace(run, budget=replace(run.budget, stop=stop))
    below: tuple[FollowUp, ...] = (StopChildren(stop=stop),) if run.children.active else ()
    if run.phase in _LIVE:
        if run.attempt.evidence.stop is not None:
            return Transition(run, followups=below)
        return _stop(run, StopCause.BUDGET, at_ms)._replace(followups=below)
    if run.phase is P.ENDING:
        # A pause holds back the further turn for which there is no budget any more.
        is_held = run.control.paused and run.attempt.outcome is not None
        step = _after_children(run, at_ms) if is_held else Transition(run)
        return join(step, below)
    if run.phase is P.VERIFYING:
        return Transition(run, followups=below)
    return conclusion.settle_unstarted(run, stop, at_ms)


# -- questions ----------------------------------------------------------------------------------


def _request_answered(run: Run, event: events.RequestAnswered) -> Transition:
    asked = {request.id: request for request in run.pending_requests}
    request = asked.get(event.request_id)  # type: ignore[call-overload]  # str on the wire, RequestId here
    if request is None:
        return Transition(run, stale=True)
    run = open_questions.answer(run, request.id, event.answer)
    step = _approved(run, event.at_ms) if request.by_spawn else Transition(run)
    abilities = run.resolved.abilities
    resolved = open_questions.resolved((request,))
    if request.priority is None:
        told = open_questions.permits(run, (request,))
        return join(step._replace(effects=(*told, *step.effects)), resolved)
    # No call of the worker waits for a notice's answer: it goes to the worker as a message, or into
    # the inbox that the worker can look into.
    if abilities.steer or abilities.resume:
        text = announcement.answer_to(request, event.answer)
        step = _steer(run, text, by=event.answer.by, at_ms=event.at_ms)
    else:
        step = Transition(run, messages=(announcement.answer_message(run, request, event.answer),))
    return join(step, resolved)


def _alerted(run: Run, event: events.Alerted) -> Transition:
    if run.is_settled:
        # The announcement is out: what comes behind it is for the record.
        return Transition(run)
    if event.alert.kind is AlertKind.STUCK and run.pending_requests:
        return Transition(run)  # it waits for an answer: that is what there is to be told
    if event.alert.kind is AlertKind.STUCK and _is_silent(run):
        return _stuck(run, event)
    return _admitted(run, event)


def _admitted(run: Run, event: events.Alerted) -> Transition:
    run, messages = allowance.admit(run, event.alert, at_ms=event.at_ms)
    return Transition(run, followups=_passed_on(run, messages), messages=messages)


def _is_silent(run: Run) -> bool:
    """Whether nothing but the worker itself explains its silence, and it is not stopped already."""
    return (
        run.phase is P.RUNNING
        and run.attempt.evidence.stop is None
        and run.control.frozen_since_ms is None
        and not run.children.active
        and not run.pending_requests
    )


def _stuck(run: Run, event: events.Alerted) -> Transition:
    at_ms, silence = event.at_ms, one_line(event.alert.text).removeprefix("⚠️ ")
    act = run.resolved.alerts.on_stuck
    if act is OnStuck.STEER and not run.resolved.abilities.steer:
        act = OnStuck.ESCALATE  # a message would wait for a turn that a stuck worker never ends
    match act:
        case OnStuck.TELL:
            return _admitted(run, event)
        case OnStuck.STEER:
            alerted = _admitted(run, event)
            text = announcement.silence(silence)
            sent = _steer(alerted.run, text, by="on_stuck", at_ms=at_ms)
            return sent._replace(followups=alerted.followups, messages=alerted.messages)
        case OnStuck.CANCEL:
            alerted = _admitted(run, event)
            cancel = Cancel(at_ms=at_ms, by="on_stuck", reason=silence, stuck=True)
            step = _cancel(alerted.run, cancel)
            messages = (*alerted.messages, *step.messages)
            return join(step._replace(messages=messages), alerted.followups)
        case OnStuck.ESCALATE:
            blocker = events.ParentNotified(at_ms=at_ms, message=silence, priority=Priority.BLOCKER)
            step = open_questions.notified(run, blocker)
            return join(step, _passed_on(step.run, step.messages))


def _passed_on(run: Run, messages: tuple[Message, ...]) -> tuple[FollowUp, ...]:
    """The follow-ups that bring them into the live attempt of a requester that is a run."""
    # Its agent works, and does not look into its inbox by itself.
    if run.lineage.requester_run is None:
        return ()
    return tuple(PassOn(message=each.id, text=each.text) for each in messages)


# -- the table ----------------------------------------------------------------------------------


def _asked(run: Run, event: events.RequestAsked) -> Transition:
    asked = open_questions.asked(run, event.request)
    return Transition(asked, messages=(announcement.question(asked, event.request),))


def _dismissed(run: Run, event: events.Dismissed) -> Transition:
    record = replace(run.verification, dismissed_at_ms=None if event.withdrawn else event.at_ms)
    return Transition(replace(run, verification=record))


def _repaired(run: Run, event: events.Repaired) -> Transition:
    if event.outcome is None:
        return Transition(run)
    return conclusion.record_lost(run, event.outcome, event.at_ms)


def _cleaned_up(run: Run, event: events.CleanedUp) -> Transition:
    run = erased(run, event.at_ms) if event.erased else run
    return Transition(enter(run, P.COMPLETED, event.at_ms))


REACTIONS: Final[dict[type, Callable[[Run, Any], Transition]]] = {
    events.DependencySettled: _dependency_settled,
    events.FannedOut: _fanned_out,
    events.SlotGranted: _slot_granted,
    events.ProviderClosed: _provider_closed,
    events.BaselineTaken: _baseline_taken,
    # What others change from now on is no work of the run.
    events.FilesLeft: lambda run, event: Transition(
        replace(run, verification=replace(run.verification, left=event.files))
    ),
    events.AttemptPlaced: _attempt_placed,
    events.WorktreePlanned: _worktree_planned,
    events.TokenIssued: _token_issued,
    events.AttemptStarted: _attempt_started,
    events.AttemptStartFailed: _start_failed,
    events.AttemptTakenOver: lambda run, _: Transition(run),  # for the record alone
    events.SignalReceived: _signal_received,
    events.LeaseExpired: _lease_expired,
    events.TimerFired: lambda run, event: _timer_fired(run, event.at_ms, backs_off=event.backs_off),
    events.ClockStepped: lambda run, event: Transition(clock_steps.moved(run, event.by_ms)),
    events.ChecksPassed: judging.checks_passed,
    events.VerificationFinished: conclusion.verified,
    events.CancelRequested: _cancel_requested,
    events.CancelPlanned: _cancel_planned,
    events.CancelWithdrawn: _cancel_withdrawn,
    events.Paused: lambda run, event: _paused(run, event.at_ms),
    events.Resumed: lambda run, event: _resumed(run, event.at_ms),
    events.Prioritized: lambda run, event: Transition(
        replace(run, control=replace(run.control, priority=event.priority))
    ),
    events.SteerRequested: _steer_requested,
    events.SteerSettled: _steer_settled,
    events.InterruptRequested: lambda run, event: _interrupted(run, event.at_ms),
    events.Continued: lambda run, event: Transition(
        replace(run, session=replace(run.session, continued_by=event.run_id))
    ),
    events.ChildSpawned: lambda run, event: Transition(
        replace(run, children=run.children.added(event.child))
    ),
    events.ChildSettled: _child_settled,
    events.ChildTold: lambda run, event: Transition(
        replace(run, children=run.children.told((event.child,)))
    ),
    events.ChildReturned: turns.returned,
    events.ChildSpent: accounting.child_spent,
    events.RequestHeld: accounting.request_held,
    events.BudgetExhausted: lambda run, event: _stop_for_budget(run, event.stop, event.at_ms),
    events.RequestAsked: _asked,
    events.RequestAnswered: _request_answered,
    events.ParentNotified: open_questions.notified,
    events.Alerted: _alerted,
    events.ChildAlerted: lambda run, event: _steer(
        run, event.text, by=event.child, at_ms=event.at_ms
    ),
    events.DeliverySettled: conclusion.delivery_settled,
    events.AnnouncementConsumed: conclusion.consumed,
    events.Redelivered: lambda run, event: conclusion.announce_again(
        run, event.at_ms, inbox=event.inbox
    ),
    events.Dismissed: _dismissed,
    events.CallRefused: lambda run, _: Transition(replace(run, refusals=run.refusals + 1)),
    events.Repaired: _repaired,
    events.CleanedUp: _cleaned_up,
    events.Archived: lambda run, event: Transition(
        replace(run, times=replace(run.times, archived_at_ms=event.at_ms))
    ),
}
"""What each event does to a run in a phase where it is legal; ``Spawned`` makes a run instead.

A table, not a ``match`` of forty cases: one look instead of a comparison for each case before.
"""
