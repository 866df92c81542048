"""Why a run is where it is, in words: one sentence for now, one line per event for the past.

Pure: a run, its journal and the time go in, text comes out. No word here decides anything.

Source: 2-lifecycle §1 ("``subagents why RUN`` and ``timeline`` read this journal"), §7.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, assert_never

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.rules import budgets
from subagents.domain.rules import provider_limits as limits
from subagents.domain.rules.admission import LaneUse
from subagents.domain.rules.deadlines import timer_event
from subagents.domain.rules.evidence import signal_name
from subagents.domain.run import events as e
from subagents.domain.run import signals as s
from subagents.domain.run import spending
from subagents.domain.run.outcome import (
    DeferReason,
    Deferred,
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
    Outcome,
    Skipped,
    Verdict,
    Verification,
)
from subagents.domain.run.run import (
    Exit,
    Phase,
    Priority,
    Request,
    Run,
    Spent,
    StopCause,
)
from subagents.domain.run.workspace import Remains, summary
from subagents.domain.text.announcement import ending
from subagents.ports import JournalEntry
from subagents.text import compact, counted, duration, listed, money, one_line

TEXT_CHARS_MAX: Final = 200
"""Of a quoted text, an error or a list in one sentence."""
NAMES_MAX: Final = 5
"""Of labels listed in one sentence."""


class Step(NamedTuple):
    """One line of a run's history."""

    at_ms: int
    text: str


class Folded(NamedTuple):
    """A journal entry, and the run before and after it."""

    entry: JournalEntry
    before: Run | None
    run: Run
    stale: bool


def fold(entries: Iterable[JournalEntry], run: Run | None = None) -> Iterator[Folded]:
    """Play entries back in order, from the first one or on from ``run``.

    Raises:
        IllegalTransition: The journal is not one this version wrote.
    """
    for entry in entries:
        step = reduce(run, entry.event)
        yield Folded(entry=entry, before=run, run=step.run, stale=step.stale)
        run = step.run


# -- now ----------------------------------------------------------------------------------------


def why_now(  # noqa: C901, PLR0912 - one sentence per phase
    run: Run, now_ms: int, *, lane: LaneUse | None = None, paused_by: str | None = None
) -> str:
    """One sentence: why the run is in its phase, and until when.

    Args:
        run: As stored.
        now_ms: Now, in ms since the epoch.
        lane: The load of the run's lane, when it is known.
        paused_by: Who paused it, when that is known.
    """
    if run.paused and run.phase in {Phase.WAITING, Phase.QUEUED, Phase.RETRY_WAIT}:
        who = f" by {paused_by}" if paused_by else ""
        return f"paused{who}; it goes on after: subagents resume {run.id}"
    match run.phase:
        case Phase.WAITING:
            return _waiting(run, now_ms)
        case Phase.QUEUED:
            return _queued(run, lane)
        case Phase.SPAWNING:
            runtime = run.resolved.runtime
            text = f'runtime "{runtime}" was told to start attempt {run.attempt.number}'
            return f"{text}; not yet confirmed"
        case Phase.RUNNING:
            return _running(run, now_ms)
        case Phase.ENDING:
            return _ending(run)
        case Phase.VERIFYING:
            return f"its contract is being checked ({_contract(run)})"
        case Phase.RETRY_WAIT:
            return _retry_wait(run, now_ms)
        case Phase.ANNOUNCING:
            tries = (run.delivery.tries_total if run.delivery else 0) + 1
            return f"{_outcome(run.outcome)}; telling {run.requester} (delivery try {tries})"
        case Phase.ANNOUNCE_DEFERRED:
            return _deferred(run, now_ms)
        case Phase.CLEANUP_PENDING:
            return f"{_outcome(run.outcome)}; delivered, cleaning up"
        case Phase.COMPLETED:
            return _completed(run)
        case Phase.COMPLETED_GIVEUP:
            return _given_up(run)
        case _:
            assert_never(run.phase)


def _waiting(run: Run, now_ms: int) -> str:
    labels = [each.label for each in run.dependencies if each.outcome is None]
    noun = "run" if len(labels) == 1 else f"{len(labels)} runs"
    text = f"waits for {noun} {_listed(labels)}"
    if run.wait_deadline_ms is None:
        return text
    return f"{text}, for at most {_left(run.wait_deadline_ms, now_ms)} more"


def _queued(run: Run, lane: LaneUse | None) -> str:
    name = run.resolved.lane
    if lane is None:
        return f'waits for a slot in lane "{name}" ({run.resolved.lane_slots} slots)'
    if lane.limit is not None:
        return lane.limit
    if lane.used < lane.slots:
        return f'about to get a slot in lane "{name}" ({lane.used}/{lane.slots} used)'
    return f'no slot in lane "{name}" ({lane.used}/{lane.slots} used)'


def _running(run: Run, now_ms: int) -> str:
    stop = run.attempt.evidence.stop
    if stop is not None:
        return f"{_stopping(run, stop)}; attempt {run.attempt.number} is being stopped"
    if run.pending_requests:
        return _asks(run.pending_requests[0], now_ms)
    text = f"{_attempt(run)} is working"
    if run.attempt.deadline_ms is not None:
        text += f", for at most {_left(run.attempt.deadline_ms, now_ms)} more"
    if run.active_children:
        text += f"; {_children(run)}"
    return text


def _stopping(run: Run, stop: StopCause) -> str:
    match stop:
        case StopCause.CANCEL | StopCause.PARENT:
            return _cancelled(run)
        case StopCause.DEADLINE:
            return "its deadline passed"
        case StopCause.BUDGET:
            found = run.budget_stop
            return _cut(budgets.why(run, found)) if found else "its budget is used up"
        case StopCause.INTERRUPT:
            return "interrupted"
        case _:
            assert_never(stop)


def _cancelled(run: Run) -> str:
    cancel = run.cancel
    if cancel is None:
        return "cancelled"
    reason = f" ({_cut(cancel.reason)})" if cancel.reason else ""
    return f"cancelled by {cancel.by}{reason}"


def _asks(request: Request, now_ms: int) -> str:
    verb = "is blocked" if request.priority is Priority.BLOCKER else "asks"
    text = f'{verb}: "{_cut(request.question)}" (subagents answer {request.id} TEXT'
    if request.deadline_ms is None:
        return f"{text})"
    then = "its default answer is taken" if request.default_answer is not None else "it times out"
    return f"{text}; {then} in {_left(request.deadline_ms, now_ms)})"


def _ending(run: Run) -> str:
    if run.active_children:
        reason = DeferReason.DESCENDANTS_ACTIVE
        return f"its own work is done; it waits for {_children(run)} [{reason}]"
    if run.cancel is not None:
        return f"{_cancelled(run)}; what it left is being read"
    if run.attempt.outcome is None:
        return f"attempt {run.attempt.number} ended; its output is read to the end"
    return f"attempt {run.attempt.number} ended; a follow-up turn is being started"


def _children(run: Run) -> str:
    labels = [child.label for child in run.active_children]
    noun = "sub-agent" if len(labels) == 1 else "sub-agents"
    return f"{len(labels)} active {noun} ({_listed(labels)})"


def _contract(run: Run) -> str:
    contract = run.spec.verification
    if contract is None:
        return "no checks"
    parts = [
        counted(len(contract.artifacts), "artifact") if contract.artifacts else "",
        counted(len(contract.commands), "command") if contract.commands else "",
        "a completion report" if contract.require_completion_report else "",
    ]
    return ", ".join(part for part in parts if part)


def _retry_wait(run: Run, now_ms: int) -> str:
    due = "due" if run.retry_due_ms is None else f"due in {_left(run.retry_due_ms, now_ms)}"
    if run.limited is not None:
        times = f" (wait {run.limited.waits})" if run.limited.waits > 1 else ""
        going = "goes on" if limits.resumes(run) is not None else "one more attempt"
        return f"waiting for its model's provider: {_cut(run.limited.text)}; {going}, {due}{times}"
    reason = _cut(run.next_attempt_reason or "the attempt before failed")
    if run.next_attempt_verifies:
        return f"one more attempt {due} because verification failed: {reason}"
    return f"retry {run.retries_used} of {run.spec.retry_count} {due} because: {reason}"


def _deferred(run: Run, now_ms: int) -> str:
    delivery = run.delivery
    if delivery is None or not delivery.tries:
        return f"{_outcome(run.outcome)}; its delivery is deferred"
    newest = delivery.tries[-1]
    until = "" if delivery.due_ms is None else f" for {_left(delivery.due_ms, now_ms)}"
    return (
        f"{_outcome(run.outcome)}; delivery to {newest.target} deferred{until} because "
        f"{_delivery(newest.outcome)} (try {delivery.tries_total})"
    )


def _completed(run: Run) -> str:
    text = _outcome(run.outcome)
    consumed = run.announcement_consumed_ms is not None
    text += "; its requester took the result" if consumed else "; the result waits in the inbox"
    if run.continued_by is not None:
        text += f"; run {run.continued_by} goes on with its session"
    return f"{text}; archived" if run.archived_at_ms is not None else text


def _given_up(run: Run) -> str:
    tries = run.delivery.tries if run.delivery else ()
    because = f" because {_delivery(tries[-1].outcome)}" if tries else ""
    number = run.delivery.tries_total if run.delivery else 0
    return (
        f"{_outcome(run.outcome)}; its delivery was given up after "
        f"{counted(number, 'try', 'tries')}{because}; the result is kept"
    )


def _outcome(outcome: Outcome | None) -> str:
    return _cut(ending(outcome)).removeprefix("just ") if outcome else "over"


def _attempt(run: Run) -> str:
    of = f" of {run.spec.retry_count + 1}" if run.spec.retry_count else ""
    pid = f" (pid {run.attempt.pid})" if run.attempt.pid else ""
    return f"attempt {run.attempt.number}{of}{pid}"


# -- the past -----------------------------------------------------------------------------------


def steps(entries: Iterable[JournalEntry]) -> list[Step]:
    """One line per event, in order, each followed by what it led to.

    Args:
        entries: A run's journal from its first event on.
    """
    return [step for folded in fold(entries) for step in steps_of(folded)]


def steps_of(folded: Folded) -> list[Step]:
    """The line of one event, followed by what it led to."""
    at_ms = folded.entry.at_ms
    text = _event(folded)
    if folded.stale:
        return [Step(at_ms, f"{text} (late or doubled: changed nothing)")]
    return [Step(at_ms, line) for line in (text, *_led_to(folded))]


def paused_by(entries: Iterable[JournalEntry]) -> str | None:
    """Who paused the run last."""
    who: str | None = None
    for entry in entries:
        if isinstance(entry.event, e.Paused):
            who = entry.event.by
    return who


def _event(folded: Folded) -> str:  # noqa: C901, PLR0912 - one line of text per event
    event = folded.entry.event
    match event:
        case e.Spawned():
            return _spawned(event)
        case e.DependencySettled():
            return f"dependency {event.run_id} {_outcome(event.outcome)}"
        case e.SlotGranted():
            number = len(folded.run.attempts)
            return f'slot granted in lane "{folded.run.resolved.lane}" for attempt {number}'
        case e.TokenIssued():
            return f"attempt {event.attempt} got one more token"
        case e.AttemptStarted():
            return _started(event)
        case e.AttemptStartFailed():
            end = "; the same launch can never start" if event.permanent else ""
            return f"attempt {event.attempt} could not start: {_cut(event.error)}{end}"
        case e.AttemptTakenOver():
            return (
                f"a restarted daemon took attempt {event.attempt} over "
                f"and reads on from byte {event.cursor}"
            )
        case e.SignalReceived():
            return f"attempt {event.attempt} {_signal(event.signal)}"
        case e.LeaseExpired():
            return f"nobody vouched for attempt {event.attempt} until its lease ran out"
        case e.TimerFired():
            return _timer(event, folded.before)
        case e.VerificationFinished():
            return _verification(event.verification)
        case e.CancelRequested():
            above = " with the run above it" if event.cascaded else ""
            reason = f": {_cut(event.reason)}" if event.reason else ""
            return f"cancelled by {event.by}{above}{reason}"
        case e.Paused():
            return f"paused by {event.by}"
        case e.Resumed():
            return f"resumed by {event.by}"
        case e.SteerRequested():
            return f'message from {event.by}: "{_cut(event.message)}"'
        case e.SteerSettled():
            taken = "reached the worker" if event.taken else "waits for the next turn"
            return f"message {event.number} {taken}"
        case e.InterruptRequested():
            reason = f": {_cut(event.reason)}" if event.reason else ""
            return f"interrupted by {event.by}{reason}"
        case e.Continued():
            return f"run {event.run_id} goes on with its session"
        case e.ChildSpawned():
            return f'spawned sub-agent "{event.child.label}" ({event.child.run_id})'
        case e.ChildSettled():
            return f"sub-agent {event.child} {_outcome(event.outcome)}"
        case e.ChildTold():
            return f"took the result of sub-agent {event.child}"
        case e.ChildSpent():
            return f"sub-agent {event.child} and all below it: {_spent(event.spent)}"
        case e.BudgetExhausted():
            stop = event.stop
            return f'the budget of run "{stop.label}" ({stop.by}) is used up: {_cut(stop.used)}'
        case e.RequestAsked():
            return f'asks: "{_cut(event.request.question)}" ({event.request.id})'
        case e.RequestAnswered():
            answer = event.answer
            said = f': "{_cut(answer.text)}"' if answer.text is not None else ""
            return f"{event.request_id} got {answer.decision} by {answer.by}{said}"
        case e.ParentNotified():
            return f'tells its requester ({event.priority}): "{_cut(event.message)}"'
        case e.Alerted():
            return f"alert: {_cut(event.alert.text)}"
        case e.ChildAlerted():
            return f"told its agent of {event.child}: {_cut(event.text)}"
        case e.DeliverySettled():
            record = event.record
            tried = f" ({' → '.join(record.phases)})" if record.phases else ""
            return f"delivery to {record.target}: {_delivery(record.outcome)}{tried}"
        case e.AnnouncementConsumed():
            return f"result consumed by {event.reader} ({event.path})"
        case e.Redelivered():
            return f"delivery asked for again by {event.by}"
        case e.CallRefused():
            return f"refused {_cut(event.call)} by {_cut(event.by)}: {_cut(event.reason)}"
        case e.CleanedUp():
            return "cleaned up"
        case e.Archived():
            return "archived"
        case _:
            assert_never(event)


def _spent(used: Spent) -> str:
    tokens = spending.tokens(used)
    parts = [
        counted(used.runs, "run"),
        f"{compact(tokens)} tokens" if tokens is not None else "",
        money(used.cost_usd) if used.cost_usd is not None else "",
    ]
    return ", ".join(filter(None, parts))


def _spawned(event: e.Spawned) -> str:
    resolved = event.resolved
    text = f'spawned by {event.requester} for agent "{resolved.agent_id}" ({resolved.runtime})'
    if event.retry_from is not None:
        text += f", again like {event.retry_from}"
    if event.continues is not None:
        text += f", to go on with the session of {event.continues.run_id}"
    open_labels = [each.label for each in event.dependencies if each.outcome is None]
    if open_labels:
        text += f"; waits for {_listed(open_labels)}"
    return f"{text}; its contract is met already (vacuous)" if event.vacuous else text


def _started(event: e.AttemptStarted) -> str:
    pid = f" (pid {event.pid})" if event.pid else ""
    if event.adopted:
        return f"attempt {event.attempt} was found alive and adopted{pid}"
    if event.turn > 1:
        return f"attempt {event.attempt} started turn {event.turn}{pid}"
    return f"attempt {event.attempt} started{pid}"


def _signal(signal: s.Signal) -> str:
    match signal:
        case s.Exited():
            return _exited(signal.exit)
        case s.ResultSeen(is_limit=True):
            return f"was refused by its model's provider: {_cut(signal.error or signal.text)}"
        case s.ResultSeen():
            size = signal.bytes_total or len(signal.text.encode())
            kind = "an error as its result" if signal.is_error else "its result"
            return f"gave {kind} ({counted(size, 'byte', 'bytes')})"
        case s.ReportSeen():
            report = signal.report
            sure = f", confidence {report.confidence}" if report.confidence else ""
            return f'reported {report.status}{sure}: "{_cut(report.summary)}"'
        case s.UsageSeen():
            return "reported its usage"
        case s.ProgressSeen():
            percent = signal.progress.percent_complete
            done = "" if percent is None else f" ({percent:g} %)"
            return f"is at: {_cut(signal.progress.phase)}{done}"
        case s.SessionSeen():
            return f"works in session {_cut(signal.session_id)} of its program"
        case s.ToolSeen():
            return f"used tool {_cut(signal.name)}"
        case s.RemainsSeen():
            return f"left {_remains(signal.remains)}"
        case s.Vanished():
            return f"is gone: {_cut(signal.error)}"
        case _:
            assert_never(signal)


def _remains(remains: Remains) -> str:
    parts = [
        "its last words" if remains.words else "",
        counted(len(remains.files), "file") + " of its contract" if remains.files else "",
        f"in its worktree: {_cut(summary(remains.changes))}" if remains.changes else "",
    ]
    return ", ".join(filter(None, parts)) or "nothing"


def _exited(exit_: Exit) -> str:
    if exit_.signal is not None:
        return f"was ended by {signal_name(exit_.signal)}"
    if exit_.code is None:
        return "is gone; nobody saw how it ended"
    return f"exited with code {exit_.code}"


def _timer(event: e.TimerFired, before: Run | None) -> str:
    cause = event.cause
    if cause is None and before is not None:
        # Journals of 0.1.0 hold no cause; the same deadlines are found in the run as it was.
        found = timer_event(before, event.at_ms)
        cause = None if found is None else found.cause
    return "a timer fired" if cause is None else _TIMER_WORDS[cause]


_TIMER_WORDS: Final = {
    e.TimerCause.DEPENDENCY_TIMEOUT: "waited too long for its dependencies",
    e.TimerCause.PROVIDER_WAIT: "its deadline passed while it waited for its model's provider",
    e.TimerCause.RETRY_DUE: "the retry is due",
    e.TimerCause.DELIVERY_DUE: "the next delivery try is due",
    e.TimerCause.DEADLINE: "its deadline passed; the attempt is stopped",
    e.TimerCause.BUDGET: "its budget of seconds reached a limit",
    e.TimerCause.QUESTION_TIMEOUT: "a question passed its deadline",
    e.TimerCause.SETTLE: "the end of its output was awaited long enough",
    e.TimerCause.DEADLINE_WARNING: "the worker was warned of its deadline",
    e.TimerCause.DIGEST: "alerts that were held back are sent as one line",
}


def _verification(verification: Verification) -> str:
    checks = verification.checks
    if verification.verdict is Verdict.PASSED:
        return f"verification passed: {len(checks)}/{len(checks)} checks"
    failures = "; ".join(f"{check.target}: {check.reason}" for check in verification.failures)
    if verification.verdict is Verdict.COULD_NOT_CHECK:
        return f"verification could not check: {_cut(failures)}"
    return f"verification failed: {_cut(failures)}"


def _delivery(outcome: DeliveryOutcome) -> str:
    match outcome:
        case Delivered():
            return f"delivered ({outcome.path})"
        case Deferred():
            return f"deferred ({outcome.reason})"
        case Skipped():
            return f"not pushed ({outcome.reason})"
        case DeliveryFailed():
            again = "" if outcome.retryable else ", for good"
            return f"failed{again}: {_cut(outcome.error)}"
        case _:
            assert_never(outcome)


def _led_to(folded: Folded) -> list[str]:
    """What changed besides the event itself."""
    before, run = folded.before, folded.run
    if before is None:
        return []
    entered = _entered(before, run, folded.entry.at_ms) if before.phase is not run.phase else []
    return [*_read_in_text(before, run), *entered]


def _read_in_text(before: Run, run: Run) -> list[str]:
    """What the end of the attempt found in its text."""
    if not run.attempts or not before.attempts or run.attempt == before.attempt:
        return []
    now, then = run.attempt, before.attempt
    if now.report_problem is not None and now.report_problem != then.report_problem:
        return [f"no report: {_cut(now.report_problem)}"]
    if now.report is not None and now.report_is_text and now.report != then.report:
        return [f'its text reports {now.report.status}: "{_cut(now.report.summary)}"']
    return []


def _entered(before: Run, run: Run, at_ms: int) -> list[str]:
    match run.phase:
        case Phase.QUEUED:
            return [f'queued in lane "{run.resolved.lane}"']
        case Phase.ENDING if run.active_children:
            return [f"its own work is done; waits for {_children(run)}"]
        case Phase.VERIFYING:
            return [f"verifying ({_contract(run)})"]
        case Phase.RETRY_WAIT:
            return [_retry_wait(run, at_ms)]
        case Phase.ANNOUNCING if before.outcome is None:
            return [f"{_outcome(run.outcome)}; announced to {run.requester}"]
        case Phase.ANNOUNCE_DEFERRED if run.delivery and run.delivery.due_ms is not None:
            return [f"next delivery try in {_left(run.delivery.due_ms, at_ms)}"]
        case Phase.COMPLETED_GIVEUP:
            return ["delivery given up; the result is kept"]
        case _:
            return []


# -- words --------------------------------------------------------------------------------------


def _left(due_ms: int, now_ms: int) -> str:
    return duration(max(due_ms - now_ms, 0))


def _listed(labels: list[str]) -> str:
    return listed([f'"{label}"' for label in labels], NAMES_MAX)


def _cut(text: str) -> str:
    return one_line(text, TEXT_CHARS_MAX)
