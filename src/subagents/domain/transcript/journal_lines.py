"""Lines of a transcript that only the journal knows: starts, messages to the worker, verdicts.

Source: 4-observability §1 (``system``, ``user``).
"""

from subagents.domain.rules.evidence import REPORT_TOOL, signal_name
from subagents.domain.run.events import (
    AttemptStarted,
    AttemptStartFailed,
    AttemptTakenOver,
    CancelRequested,
    Continued,
    Event,
    InterruptRequested,
    ParentNotified,
    Paused,
    RequestAnswered,
    RequestAsked,
    Resumed,
    SignalReceived,
    Spawned,
    SteerRequested,
    VerificationFinished,
)
from subagents.domain.run.run import Exit, Progress, Run
from subagents.domain.run.signals import (
    Exited,
    ProgressSeen,
    ReportSeen,
    Vanished,
)
from subagents.domain.run.worker_output import LineType, OutputItem
from subagents.text import one_line


def output_item_of(run: Run, seq: int, event: Event) -> OutputItem | None:
    """The line of one event; None = it has none, because the stream says so itself or nobody asks.

    Args:
        run: As it is now, or later than the event.
        seq: The event's number.
        event: What happened.
    """
    found = _line(run, event)
    if seq != run.settled_seq or run.outcome is None:
        return found
    ending = f"run ended: {run.outcome.status}"
    if run.outcome.reason is not None:
        ending += f" ({run.outcome.reason})"
    before = f"{found.text} — " if found is not None else ""
    return OutputItem(type=LineType.SYSTEM, text=f"{before}{ending}")


def _line(run: Run, event: Event) -> OutputItem | None:  # noqa: C901, PLR0912 - one branch per event
    match event:
        case Spawned():
            return OutputItem(
                type=LineType.USER, text=f"task from {event.requester}: {event.spec.task}"
            )
        case AttemptStarted():
            what = f"attempt {event.attempt} started"
            if event.turn > 1:
                what = f"attempt {event.attempt}, turn {event.turn} started"
            return _system(what if event.pid is None else f"{what} (pid {event.pid})")
        case AttemptStartFailed():
            return OutputItem(
                type=LineType.ERROR, text=f"attempt {event.attempt} did not start: {event.error}"
            )
        case AttemptTakenOver():
            return _system(f"attempt {event.attempt} is watched on after a restart")
        case SignalReceived(signal=Exited(exit=exit_)):
            return _system(_exit(exit_))
        case SignalReceived(signal=Vanished(error=error)):
            return OutputItem(type=LineType.ERROR, text=error)
        case SignalReceived(signal=ReportSeen(report=report)):
            sure = f", confidence {report.confidence}" if report.confidence else ""
            text = f"{REPORT_TOOL} ({report.status}{sure}): {report.summary}"
            return OutputItem(type=LineType.TOOL, text=text)
        case SignalReceived(signal=ProgressSeen(progress=progress)):
            return _system(f"progress: {_progress(progress)}")
        case VerificationFinished(verification=verification):
            passed = sum(check.passed for check in verification.checks)
            return _system(
                f"verification {verification.verdict}: {passed}/{len(verification.checks)} checks"
            )
        case CancelRequested():
            because = f": {event.reason}" if event.reason else ""
            return _system(f"cancelled by {event.by}{because}")
        case InterruptRequested():
            because = f": {event.reason}" if event.reason else ""
            return _system(f"interrupted by {event.by}{because}")
        case Continued(run_id=run_id):
            return _system(f"its session goes on in run {run_id}")
        case Paused():
            return _system(f"paused by {event.by}")
        case Resumed():
            return _system(f"resumed by {event.by}")
        case SteerRequested():
            return OutputItem(type=LineType.USER, text=f"message from {event.by}: {event.message}")
        case RequestAsked():
            return OutputItem(type=LineType.TOOL, text=f"asks: {event.request.question}")
        case RequestAnswered():
            answer = event.answer
            said = f": {answer.text}" if answer.text is not None else ""
            return OutputItem(type=LineType.USER, text=f"{answer.decision} from {answer.by}{said}")
        case ParentNotified():
            return OutputItem(
                type=LineType.TOOL, text=f"notify_parent ({event.priority}): {event.message}"
            )
        case _:
            del run
            return None


def _system(text: str) -> OutputItem:
    return OutputItem(type=LineType.SYSTEM, text=text)


def _exit(exit_: Exit) -> str:
    if exit_.signal is not None:
        return f"ended by {signal_name(exit_.signal)}"
    return "ended, exit status unknown" if exit_.code is None else f"exit code {exit_.code}"


def _progress(progress: Progress) -> str:
    percent = progress.percent_complete
    phase = one_line(progress.phase)
    return phase if percent is None else f"{phase} ({percent:g} %)"
