"""What workers put into events, without secrets; done once, where an event is taken in.

Words of workers and of programs are redacted before they are reduced, so that journal, run, inbox,
alerts and results hold what everybody may see. Words of callers (task, messages, answers) are
theirs: kept as they are.

Source: 4-observability §1; seed 000 §1, §4, §5.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from subagents.domain.redaction.redact import Redactor, own_secrets, redact
from subagents.domain.run.alert import Alert
from subagents.domain.run.events import (
    Alerted,
    AttemptStartFailed,
    DeliverySettled,
    Event,
    Fact,
    ParentNotified,
    RequestAsked,
    SignalReceived,
    VerificationFinished,
)
from subagents.domain.run.outcome import DeliveryFailed, Verification
from subagents.domain.run.run import (
    Progress,
    Report,
    Request,
    Run,
)
from subagents.domain.run.signals import (
    Exited,
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
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import OutputItem

T = TypeVar("T")

SPOKEN: Final[frozenset[type[Fact]]] = frozenset(
    {
        SignalReceived,
        AttemptStartFailed,
        VerificationFinished,
        RequestAsked,
        ParentNotified,
        DeliverySettled,
        Alerted,
    }
)
"""Events with words that are not a caller's."""


def secrets_of(run: Run) -> tuple[str, ...]:
    """See ``own_secrets``: those that are configured, not those of the daemon's environment."""
    return own_secrets(run.resolved.options)


def redact_value(value: T, own: Sequence[str] = ()) -> T:
    """All texts inside a value of JSON: names, too."""
    clean: object = value
    match value:
        case str():
            clean = redact(value, own)
        case Mapping():
            clean = {redact_value(k, own): redact_value(v, own) for k, v in value.items()}
        case tuple():
            clean = tuple(_redacted(value, own))
        case list():
            clean = _redacted(value, own)
    return clean  # type: ignore[return-value]  # of the same kind


def _redacted(values: Sequence[object], own: Sequence[str]) -> list[object]:
    """Texts one behind the other may be the lines of one."""
    texts = [each for each in values if isinstance(each, str)]
    shown = iter(Redactor().fold(texts, own)[0])
    return [next(shown) if isinstance(each, str) else redact_value(each, own) for each in values]


def redact_event(event: Event, own: Sequence[str] = ()) -> Event:
    """The event without secrets in words that are not a caller's; itself when it has none."""
    match event:
        case SignalReceived(signal=signal):
            return replace(event, signal=redact_signal(signal, own))
        case AttemptStartFailed(error=error):
            return replace(event, error=redact(error, own))
        case VerificationFinished(verification=verification):
            return replace(event, verification=_verification(verification, own))
        case RequestAsked(request=request):
            return replace(event, request=redact_request(request, own))
        case ParentNotified(message=message):
            return replace(event, message=redact(message, own))
        case Alerted(alert=alert):
            return replace(event, alert=redact_alert(alert, own))
        case DeliverySettled(record=record) if isinstance(record.outcome, DeliveryFailed):
            failed = replace(record.outcome, error=redact(record.outcome.error, own))
            return replace(event, record=replace(record, outcome=failed))
        case _:
            return event


def redact_signal(signal: Signal, own: Sequence[str] = ()) -> Signal:
    """What a runtime saw, without secrets."""
    match signal:
        case Exited(stderr_tail=tail):
            return replace(signal, stderr_tail=redact_value(tail, own))
        case ResultSeen(text=text, error=error):
            return replace(signal, text=redact(text, own), error=redact_value(error, own))
        case ReportSeen(report=report):
            return replace(signal, report=redact_report(report, own))
        case ProgressSeen(progress=progress):
            return replace(signal, progress=redact_progress(progress, own))
        case ToolSeen(name=name):
            return replace(signal, name=redact(name, own))
        case Vanished(error=error):
            return replace(signal, error=redact(error, own))
        case RemainsSeen(remains=remains):
            clean = replace(
                remains,
                words=redact_value(remains.words, own),
                files=redact_value(remains.files, own),
            )
            return replace(signal, remains=clean)
        case UsageSeen() | SessionSeen():
            return signal


def redact_report(report: Report, own: Sequence[str] = ()) -> Report:
    """A worker's claim of completion."""
    artifacts = tuple(
        replace(
            each,
            path=redact(each.path, own),
            description=redact_value(each.description, own),
        )
        for each in report.artifacts
    )
    return replace(
        report,
        summary=redact(report.summary, own),
        artifacts=artifacts,
        blockers=redact_value(report.blockers, own),
        warnings=redact_value(report.warnings, own),
    )


def redact_progress(progress: Progress, own: Sequence[str] = ()) -> Progress:
    """A worker's progress."""
    return replace(
        progress,
        phase=redact(progress.phase, own),
        metrics=redact_value(progress.metrics, own),
    )


def redact_request(request: Request, own: Sequence[str] = ()) -> Request:
    """A worker's question."""
    return replace(
        request,
        question=redact(request.question, own),
        context=redact_value(request.context, own),
        options=redact_value(request.options, own),
        default_answer=redact_value(request.default_answer, own),
    )


def redact_alert(alert: Alert, own: Sequence[str] = ()) -> Alert:
    """News of a worker."""
    return replace(
        alert, text=redact(alert.text, own), fields=redact_value(dict(alert.fields), own)
    )


def redact_said(
    said: Sequence[OutputItem], redactor: Redactor, own: Sequence[str] = ()
) -> tuple[Sequence[OutputItem], Redactor]:
    """Pieces of a stream, for lines and detectors; most come out as the same objects.

    Args:
        said: In order.
        redactor: The state behind the pieces before.
        own: See ``own_secrets``.
    """
    texts, redactor = redactor.fold([each.text for each in said], own)
    clean: list[OutputItem] = []
    for each, text in zip(said, texts, strict=True):
        if text is not each.text:
            each = replace(each, text=text)  # noqa: PLW2901  # the same, cleaned
        if each.tool is not None or each.api_error is not None:
            each = _beside_text(each, own)  # noqa: PLW2901
        clean.append(each)
    return clean, redactor


def _beside_text(said: OutputItem, own: Sequence[str]) -> OutputItem:
    tool, error = said.tool, said.api_error
    if tool is not None:
        plan = tool.plan
        if plan is not None:
            texts = redact_value(tuple(item.text for item in plan), own)
            pairs = zip(plan, texts, strict=True)
            plan = tuple(replace(item, text=text) for item, text in pairs)
        tool = replace(
            tool,
            name=redact(tool.name, own),
            input=redact(tool.input, own),
            command=redact_value(tool.command, own),
            path=redact_value(tool.path, own),
            plan=plan,
            team=redact_value(tool.team, own),
            output=redact(tool.output, own),
        )
    if error is not None:
        error = replace(error, message=redact(error.message, own))
    return replace(said, tool=tool, api_error=error)


def _verification(verification: Verification, own: Sequence[str]) -> Verification:
    checks = tuple(
        replace(
            each,
            reason=redact_value(each.reason, own),
            evidence=redact_value(each.evidence, own),
        )
        for each in verification.checks
    )
    return replace(verification, checks=checks)
