"""Many signals of one attempt → one terminal outcome.

Signals may come late, doubled or in any order. They are merged into ``Evidence``, and ``decide``
looks only at the merged evidence, so their order cannot matter. Rules, strongest first:

1. A stop that we asked for (cancel, deadline, budget) stays the outcome, also when the process
   then exits 0.
2. Exit evidence beats text: a non-zero exit is an error whatever the worker wrote.
3. A worker's report can lower an outcome (it says itself that it failed), never raise one.
4. No exit evidence and the lease over: lost.
"""

from operator import add
from typing import Final

from subagents.domain.rules.tool_kinds import REPORT_TOOL
from subagents.domain.run.outcome import OK, Outcome, Reason, Status
from subagents.domain.run.run import (
    Attempt,
    Evidence,
    Exit,
    LastStep,
    Report,
    Reported,
    ReportStatus,
    StopCause,
)
from subagents.domain.run.signals import (
    Exited,
    PermissionAsked,
    ProgressSeen,
    RemainsSeen,
    ReportSeen,
    ResultSeen,
    SessionSeen,
    Signal,
    ToolSeen,
    UsageSeen,
    Vanished,
)
from subagents.domain.run.usage import Usage, merged
from subagents.domain.run.values import replace
from subagents.domain.text.announcement import NO_REPLY
from subagents.domain.text.report_text import Unreadable, find_report
from subagents.text import signal_name

SETTLE_MS: Final = 2_000
"""How long after the exit a stream's final result still counts when the stream was not drained."""

ERROR_CHARS_MAX: Final = 2_000


def merge(attempt: Attempt, signal: Signal, *, at_ms: int) -> Attempt:
    """Return the attempt with one more signal; merging the same one twice changes nothing."""
    evidence = attempt.evidence
    match signal:
        case Exited():
            # The first exit stays, except where its status was not recorded: a later signal, read
            # from another file, may have it.
            if evidence.exit is not None and evidence.exit != Exit():
                return attempt if evidence.drained else _with(attempt, drained=signal.drained)
            return _with(
                attempt,
                exit=signal.exit,
                exit_at_ms=evidence.exit_at_ms or at_ms,
                drained=signal.drained or evidence.drained,
                stderr_tail=signal.stderr_tail or evidence.stderr_tail,
            )
        case Vanished():
            if evidence.exit is not None:
                return attempt
            return _with(attempt, lease_lost=True, error=evidence.error or signal.error)
        case ResultSeen():
            return _result_seen(attempt, signal)
        case RemainsSeen():
            return replace(attempt, remains=signal.remains)
        case SessionSeen():
            session = replace(attempt.session, native=signal.session_id)
            return replace(attempt, session=session)
        case ReportSeen():
            return replace(
                attempt,
                reported=Reported(report=signal.report),
                last=replace(attempt.last, tool=REPORT_TOOL, is_report=True),
            )
        case ToolSeen():
            return _tool_seen(attempt, signal.name)
        case UsageSeen():
            return replace(attempt, usage=most(attempt.usage or Usage(), signal.usage))
        case ProgressSeen() | PermissionAsked():
            return attempt


def _result_seen(attempt: Attempt, seen: ResultSeen) -> Attempt:
    attempt = replace(attempt, last=replace(attempt.last, is_result=True))
    if _adds_nothing(attempt, seen):
        return attempt
    return _with(
        attempt,
        result=seen.text,
        result_bytes=seen.bytes_total,
        result_file=seen.file,
        is_error=seen.is_error,
        # An error of before stays the better explanation for an exit code that is not 0.
        error=seen.error if seen.is_error else attempt.evidence.error,
        is_limit=seen.is_limit,
        retry_after_ms=seen.retry_after_ms if seen.is_limit else None,
    )


def _adds_nothing(attempt: Attempt, seen: ResultSeen) -> bool:
    """Whether a turn that only told how the children ended leaves the result as it is."""
    if not attempt.turn.only_tells or attempt.evidence.result is None or seen.is_error:
        return False
    return seen.text.strip() in {"", NO_REPLY}


def most(known: Usage, seen: Usage) -> Usage:
    """Totals only grow: an older one that comes late takes nothing back."""
    usage = merged(known, seen, max)
    read, whole = usage.tokens_cache_read, usage.tokens_in or 0
    # A part cannot be more than the whole: what others used would count for less.
    return usage if read is None or read <= whole else replace(usage, tokens_cache_read=whole)


def added(known: Usage | None, more: Usage | None) -> Usage | None:
    """Both together; a cost that is not known for one is not known at all."""
    if known is None or more is None:
        return known or more
    both = merged(known, more, add)
    return replace(both, cost_usd=None) if None in {known.cost_usd, more.cost_usd} else both


def _tool_seen(attempt: Attempt, name: str) -> Attempt:
    """The last tool; the stream may show the report's call later than the call itself arrived."""
    is_report = name.endswith(REPORT_TOOL)  # clients put their name of the server before it
    by_tool = attempt.reported.report is not None and not attempt.reported.is_text
    tool = REPORT_TOOL if is_report else name
    return replace(attempt, last=LastStep(tool=tool, is_report=is_report and by_tool))


def with_report_from_text(attempt: Attempt) -> Attempt:
    """The attempt with the report its result text holds, unless it reported by tool.

    For an attempt that is over: before that, the text may not be its last message. A worker that
    gives its next turn's message no report keeps the one of the turn before.
    """
    if attempt.reported.report is not None and not attempt.reported.is_text:
        return attempt
    match find_report(attempt.evidence.result or ""):
        case None:
            return attempt
        case Unreadable(reason=reason):
            return replace(
                attempt,
                reported=replace(attempt.reported, report=None, problem=reason),
                last=replace(attempt.last, is_report=False),
            )
        case Report() as report:
            return replace(
                attempt,
                reported=Reported(report=report, is_text=True),
                last=replace(attempt.last, is_report=attempt.last.is_result),
            )


def _with(attempt: Attempt, **changes: object) -> Attempt:
    return replace(attempt, evidence=replace(attempt.evidence, **changes))


def settle_due_ms(evidence: Evidence) -> int | None:
    """When an exit whose stream was not drained stops waiting for the stream."""
    if evidence.exit_at_ms is None or evidence.drained:
        return None
    return evidence.exit_at_ms + SETTLE_MS


def decide(attempt: Attempt, *, at_ms: int) -> Outcome | None:
    """The attempt's one outcome, or None while more evidence must be awaited."""
    evidence = attempt.evidence
    if evidence.exit is None:
        return _lost(evidence) if evidence.lease_lost else None
    due = settle_due_ms(evidence)
    if due is not None and at_ms < due:
        return None
    # Why it was stopped outranks how it ended, and how it ended outranks what it claims: a worker
    # killed at its deadline was not "cancelled by SIGTERM", and exit code 1 is no success.
    return (
        _stopped(evidence) or _exited(evidence, evidence.exit) or _reported(attempt.reported.report)
    )


def _lost(evidence: Evidence) -> Outcome:
    # Why we stopped it outranks how it looks dead: it is gone because we ended it.
    stopped = _stopped(evidence)
    if stopped is not None:
        return stopped
    # Lost and not failed: nothing says how it ended, and it may even be at work somewhere.
    text = evidence.error or "the worker is gone and its exit was never seen"
    return Outcome(status=Status.LOST, reason=Reason.LEASE_LOST, error=text[:ERROR_CHARS_MAX])


def _stopped(evidence: Evidence) -> Outcome | None:
    return None if evidence.stop is None else _STOPPED[evidence.stop]


_REFUSED: Final = "its provider refused it until its deadline (runTimeoutSeconds)"
_LATE: Final = "stopped at its deadline (runTimeoutSeconds)"
_SILENT: Final = 'stopped: no output for too long (alerts.on_stuck = "cancel")'
_STOPPED: Final = {
    StopCause.CANCEL: Outcome(Status.CANCELLED, Reason.CANCELLED_BY_CALLER),
    StopCause.PARENT: Outcome(Status.CANCELLED, Reason.PARENT_ENDED),
    StopCause.STUCK: Outcome(Status.CANCELLED, Reason.STUCK, _SILENT),
    StopCause.DEADLINE: Outcome(Status.TIMEOUT, Reason.DEADLINE, _LATE),
    StopCause.PROVIDER: Outcome(Status.ERROR, Reason.PROVIDER_LIMIT, _REFUSED),
    StopCause.BUDGET: Outcome(Status.PARTIAL, Reason.BUDGET, "stopped: budget used up"),
    StopCause.INTERRUPT: Outcome(Status.PARTIAL, Reason.INTERRUPTED, "interrupted at work"),
}


def _exited(evidence: Evidence, exit_: Exit) -> Outcome | None:
    if evidence.is_limit and evidence.is_error:
        # The program says so itself; however it then ended, waiting is all that helps.
        text = evidence.error or "the model's provider refused for now"
        error = text[:ERROR_CHARS_MAX]
        return Outcome(status=Status.ERROR, reason=Reason.PROVIDER_LIMIT, error=error)
    # Before the signal: the kernel's SIGKILL alone would explain nothing.
    if exit_.limit is not None and exit_.code != 0:
        how = "" if exit_.code is None else f", and it ended with exit code {exit_.code}"
        text = f"the kernel ended processes of it at its {exit_.limit}{how}"
        return _error(Reason.RESOURCE_LIMIT, text, evidence)
    if exit_.signal is not None:
        return _error(
            Reason.SIGNAL, f"signal:{exit_.signal} ({signal_name(exit_.signal)})", evidence
        )
    if exit_.code is None:
        return Outcome(
            status=Status.LOST, reason=Reason.EXIT_UNKNOWN, error="its exit status was not recorded"
        )
    if exit_.code != 0:
        return _error(Reason.EXIT_CODE, f"exit code {exit_.code}", evidence)
    if evidence.is_error:
        return _error(
            Reason.RUNTIME_ERROR, evidence.error or "the worker ended with an error", evidence
        )
    return None


def _error(reason: Reason, text: str, evidence: Evidence) -> Outcome:
    tail = (evidence.stderr_tail or "").strip()
    error = f"{text}: {tail}" if tail else text
    return Outcome(status=Status.ERROR, reason=reason, error=error[:ERROR_CHARS_MAX])


def _reported(report: Report | None) -> Outcome:
    # The last word, and only downwards: "complete" adds nothing to a good exit (decision 0010).
    if report is None or report.status is ReportStatus.COMPLETE:
        return OK
    if report.status is ReportStatus.PARTIAL:
        return Outcome(
            status=Status.PARTIAL, reason=Reason.REPORTED_PARTIAL, error=_blockers(report)
        )
    return Outcome(status=Status.ERROR, reason=Reason.REPORTED_FAILED, error=_blockers(report))


def _blockers(report: Report) -> str:
    return "; ".join(report.blockers)[:ERROR_CHARS_MAX] or report.summary[:ERROR_CHARS_MAX]
