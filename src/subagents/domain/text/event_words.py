"""What each event says, in words: the one table behind timelines, transcripts and traces.

A new event needs a row here, or ``tests/domain/text/test_event_words.py`` fails. A row has the
event's sentence; the type of its line in the run's transcript, where it has one (the worker's own
stream says most things itself); and its name as a moment of a span, where a trace shows it.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol, TypeVar, assert_never

from subagents.domain.run import effects, events, signals
from subagents.domain.run.outcome import (
    DeferReason,
    Deferred,
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
    DeliveryPath,
    Outcome,
    Skipped,
    SkipReason,
    Status,
    Verdict,
    Verification,
    failures_text,
)
from subagents.domain.run.run import Decision, Exit, Run
from subagents.domain.run.usage import Amounts, Spent
from subagents.domain.run.values import RunId
from subagents.domain.run.worker_output import LineType, OutputItem
from subagents.domain.run.workspace import summary
from subagents.domain.text.announcement import ending
from subagents.text import (
    compact,
    cost_bound,
    counted,
    duration,
    iso,
    listed,
    money,
    one_line,
    signal_name,
    tools_in_words,
)

TEXT_CHARS_MAX: Final = 200
"""The longest text inside a brief sentence."""
NAMES_MAX: Final = 5
"""The most labels listed in one sentence."""

DETAILS: Final = frozenset(
    {
        *(events.SlotGranted, events.AttemptPlaced, events.WorktreePlanned, events.TokenIssued),
        *(events.BaselineTaken, events.FilesLeft, events.ChecksPassed),
        *(events.SteerSettled, events.ChildSettled, events.ChildReturned, events.ChildTold),
        *(events.ChildSpent, events.RequestHeld, events.CleanedUp, events.Archived),
        *(signals.UsageSeen, signals.ProgressSeen, signals.SessionSeen, signals.ToolSeen),
        *(signals.RemainsSeen, signals.Exited),  # what follows says what it came to
    }
)
"""Events, and what attempts were seen to do, that only who looks closely wants to know of."""
_ROUTINE: Final = frozenset(
    {events.TimerCause.RETRY_DUE, events.TimerCause.DELIVERY_DUE, events.TimerCause.SETTLE}
)

F = TypeVar("F", bound=events.Fact)
S = TypeVar("S", bound=signals.Signal)


class Texts(NamedTuple):
    """How the texts of workers and callers stand inside a sentence."""

    whole: bool
    """Texts stand as they are, for the record; else each on one line, short, and a written one in
    quotes."""

    def shown(self, text: str | None) -> str:
        return (text or "") if self.whole else brief(text or "")

    def quoted(self, text: str) -> str:
        return text if self.whole else f'"{brief(text)}"'

    def reason(self, text: str | None) -> str:
        """A reason that may be missing, behind a colon."""
        return f": {self.shown(text)}" if text else ""


BRIEF: Final = Texts(whole=False)
WHOLE: Final = Texts(whole=True)


class Words(NamedTuple):
    """One row: what an event says, and where else than in the timeline it is shown."""

    sentence: Callable[[events.Event, Run, Texts], str]
    line: LineType | None = None
    """The type of its line in the transcript; None = it has no line there."""
    mark: str | None = None
    """The name of its mark on a span; None = it has none."""
    line_sentence: Callable[[events.Event, Run, Texts], str] | None = None
    """Where the transcript wants other words than the timeline."""


def sentence(event: events.Event, run: Run, texts: Texts = BRIEF) -> str:
    """What the event says of the run, which is as it was after the event, or later."""
    return WORDS[type(event)].sentence(event, run, texts)


def is_detail(event: events.Event) -> bool:
    """Whether the story of a run is told without it."""
    match event:
        case events.SignalReceived(signal=signals.ResultSeen() as seen):
            return not (seen.is_error or seen.is_limit)
        case events.SignalReceived(signal=seen):
            return type(seen) in DETAILS
        case events.AttemptStarted():
            return event.turn == 1 and not event.adopted
        case events.DeliverySettled():
            return isinstance(event.record.outcome, Delivered)
        case events.TimerFired():
            return event.cause is None or event.cause in _ROUTINE
        case _:
            return type(event) in DETAILS


def journal_line(run: Run, seq: int, event: events.Event) -> OutputItem | None:
    """The event's line in the transcript; None = it has none, as the worker's stream shows it.

    The event that ended the run, as its number ``seq`` says, has a line in any case.
    """
    words = WORDS[type(event)]
    line = words.line
    if isinstance(event, events.SignalReceived):
        line = SIGNAL_WORDS[type(event.signal)][1]
    text = "" if line is None else (words.line_sentence or words.sentence)(event, run, WHOLE)
    if run.outcome is None or not run.is_settled_by(seq):
        return None if line is None else OutputItem(type=line, text=text)
    status = run.outcome.status
    ended = f"run ended: {status if status in {Status.OK, Status.CANCELLED} else 'failed'}"
    if why := run.outcome.reason or (None if ended.endswith(status) else status):
        ended += f" ({why.replace('_', ' ')})"
    return OutputItem(type=LineType.SYSTEM, text=ended if line is None else f"{text} — {ended}")


def span_mark(event: events.Event) -> str | None:
    """The event's name as a moment of a span; None = a trace does not show it as one."""
    return WORDS[type(event)].mark


# -- the table ----------------------------------------------------------------------------------


def _row(
    kind: type[F],
    words: Callable[[F, Run, Texts], str],
    *,
    line: LineType | None = None,
    mark: str | None = None,
    line_words: Callable[[F, Run, Texts], str] | None = None,
) -> tuple[type[events.Fact], Words]:
    """A row whose words may rely on the event's own type."""
    row = Words(sentence=words, line=line, mark=mark, line_sentence=line_words)  # type: ignore[arg-type]  # looked up by the same type
    return kind, row


def _signal_row(
    kind: type[S], words: Callable[[S, Texts], str], line: LineType | None = None
) -> tuple[type[signals.Signal], tuple[Callable[[signals.Signal, Texts], str], LineType | None]]:
    return kind, (words, line)  # type: ignore[return-value]  # looked up by the same type


def _spawned(event: events.Spawned, run: Run, _texts: Texts) -> str:
    resolved = event.resolved
    text = f'spawned by {person(event.requester)} for agent "{resolved.agent_id}"'
    if resolved.chosen is not None:
        text += f", chosen as the {resolved.chosen.text}"
    if resolved.scheduled is not None:
        due = "by hand" if resolved.scheduled.by_hand else f"due {iso(resolved.scheduled.due_ms)}"
        text += f', for schedule "{resolved.scheduled.name}", {due}'
    if resolved.access is not None and resolved.access.sees is not None:
        text += f"; it {resolved.access.text}"
    text += "".join(f"; {each}" for each in tools_in_words(None, (), resolved.mcp_servers))
    if event.retry_from is not None:
        text += f", again like {event.retry_from}"
    if event.continues is not None:
        text += f", to continue the session of {event.continues.run_id}"
    if event.judges is not None:
        text += f", to judge attempt {event.judges} of {event.requester_run}"
    open_labels = [each.label for each in event.dependencies if each.outcome is None]
    if open_labels:
        text += f"; waits for {label_list(open_labels)}"
    for each in event.dependencies:
        if each.outcome is not None and (instead := _instead(run, each.run_id)):
            text += f"; {each.run_id} {outcome_text(each.outcome)}{instead}"
    return f"{text}; its contract is met already (vacuous)" if event.vacuous else text


def _instead(run: Run, dependency: RunId) -> str:
    is_reason = run.waiting.fell_back == dependency
    return f'; agent "{run.resolved.agent_id}" takes over' if is_reason else ""


def _started(event: events.AttemptStarted, _run: Run, _texts: Texts) -> str:
    pid = f" (pid {event.pid})" if event.pid else ""
    if event.adopted:
        return f"attempt {event.attempt} was found alive and adopted{pid}"
    if event.turn > 1:
        return f"attempt {event.attempt} started turn {event.turn}{pid}"
    return f"attempt {event.attempt} started{pid}"


def _start_failed(event: events.AttemptStartFailed, _run: Run, texts: Texts) -> str:
    end = "; the same launch can never start" if event.permanent else ""
    return f"attempt {event.attempt} could not start: {texts.shown(event.error)}{end}"


def _cancelled(event: events.CancelRequested, _run: Run, texts: Texts) -> str:
    above = " with the run above it" if event.cascaded else ""
    return f"cancelled {_by(event)}{above}{texts.reason(event.reason)}"


def _cancel_planned(event: events.CancelPlanned, _run: Run, texts: Texts) -> str:
    after = duration(max(event.due_ms - event.at_ms, 0))
    does = "cancels it" if event.of_turn is None else "ends its turn"
    return f"{person(event.by)} {does} in {after}{texts.reason(event.reason)}"


def _answered(event: events.RequestAnswered, _run: Run, texts: Texts) -> str:
    answer = event.answer
    text = "" if answer.text is None else f": {texts.quoted(answer.text)}"
    decided = _DECIDED[answer.decision]
    by = "" if answer.decision in _BY_ITSELF else f" by {person(answer.by)}"
    return f"question {event.request_id} {decided}{by}{text}"


def _budget_exhausted(event: events.BudgetExhausted, _run: Run, texts: Texts) -> str:
    stop = event.stop
    return f"{stop.whose} is used up: {texts.shown(stop.used)}"


def _delivered(event: events.DeliverySettled, _run: Run, texts: Texts) -> str:
    return f"delivery to {event.record.target}: {delivery_text(event.record.outcome, texts)}"


def _refused(event: events.CallRefused, _run: Run, texts: Texts) -> str:
    who = f"{texts.shown(event.call)} by {texts.shown(event.by)}"
    return f"refused {who}: {texts.shown(event.reason)}"


def _signal(event: events.SignalReceived, _run: Run, texts: Texts) -> str:
    words, _ = SIGNAL_WORDS[type(event.signal)]
    return f"attempt {event.attempt} {words(event.signal, texts)}"


def _clock_stepped(event: events.ClockStepped, _run: Run, _texts: Texts) -> str:
    time = duration(abs(event.by_ms))
    back = f"the clock was set back by {time}"
    forward = f"the clock was set forward by {time}, or the machine slept so long"
    return f"{back if event.by_ms < 0 else forward}; deadlines moved along"


_TIMER_WORDS: Final = {
    None: "a timer fired",
    events.TimerCause.CANCEL: "the cancel or interrupt that was planned is due",
    events.TimerCause.DEPENDENCY_TIMEOUT: "waited too long for its dependencies",
    events.TimerCause.PROVIDER_WAIT: "its deadline passed while it waited for its model's provider",
    events.TimerCause.RETRY_DUE: "the retry is due",
    events.TimerCause.DELIVERY_DUE: "the next delivery try is due",
    events.TimerCause.DEADLINE: "its deadline passed; the attempt is stopped",
    events.TimerCause.BUDGET: "its budget of seconds reached a limit",
    events.TimerCause.QUESTION_TIMEOUT: "a question passed its deadline",
    events.TimerCause.SETTLE: "the end of its output was awaited long enough",
    events.TimerCause.DEADLINE_WARNING: "the worker was warned of its deadline",
    events.TimerCause.DIGEST: "alerts that were held back are sent as one line",
}


def _report_seen(signal: signals.ReportSeen, texts: Texts) -> str:
    report = signal.report
    sure = f", confidence {report.confidence}" if report.confidence else ""
    return f"reported {report.status}{sure}: {texts.quoted(report.summary)}"


def _result_seen(signal: signals.ResultSeen, texts: Texts) -> str:
    if signal.is_limit:
        return f"was refused by its model's provider: {texts.shown(signal.error or signal.text)}"
    size = signal.bytes_total or len(signal.text.encode())
    kind = "an error as its result" if signal.is_error else "its result"
    return f"gave {kind} ({counted(size, 'byte')})"


def _progress_seen(signal: signals.ProgressSeen, texts: Texts) -> str:
    percent = signal.progress.percent_complete
    done = "" if percent is None else f" ({percent:g} %)"
    return f"is at: {texts.shown(signal.progress.phase)}{done}"


def _remains_seen(signal: signals.RemainsSeen, _texts: Texts) -> str:
    remains = signal.remains
    parts = [
        "its last words" if remains.words else "",
        f"{counted(len(remains.files), 'file')} of its contract" if remains.files else "",
        f"in its worktree: {brief(summary(remains.changes))}" if remains.changes else "",
    ]
    return f"left {', '.join(filter(None, parts)) or 'nothing'}"


def _exited(exit_: Exit) -> str:
    if exit_.signal is not None:
        return f"was ended by {signal_name(exit_.signal)}"
    if exit_.code is None:
        return "is gone; nobody saw how it ended"
    return f"exited with code {exit_.code}"


SIGNAL_WORDS: Final = dict(
    [
        _signal_row(signals.Exited, lambda signal, _: _exited(signal.exit), LineType.SYSTEM),
        _signal_row(signals.ResultSeen, _result_seen),
        _signal_row(signals.ReportSeen, _report_seen, LineType.TOOL),
        _signal_row(signals.UsageSeen, lambda *_: "reported its usage"),
        _signal_row(signals.ProgressSeen, _progress_seen, LineType.SYSTEM),
        _signal_row(
            signals.SessionSeen,
            lambda signal, texts: f"works in session {texts.shown(signal.session_id)}",
        ),
        _signal_row(
            signals.ToolSeen, lambda signal, texts: f"used tool {texts.shown(signal.name)}"
        ),
        _signal_row(
            signals.PermissionAsked,
            lambda signal, texts: (
                f"{'may' if signal.is_allowed else 'asks to'} use {texts.shown(signal.tool)}"
            ),
        ),
        _signal_row(signals.RemainsSeen, _remains_seen),
        _signal_row(
            signals.Vanished,
            lambda signal, texts: f"is gone: {texts.shown(signal.error)}",
            LineType.ERROR,
        ),
    ]
)
"""What a runtime saw of an attempt, behind ``attempt 1``, and the type of its line."""

WORDS: Final = dict(
    [
        _row(
            events.Spawned,
            _spawned,
            line=LineType.USER,
            line_words=lambda event, *_: f"task from {person(event.requester)}: {event.spec.task}",
        ),
        _row(
            events.DependencySettled,
            lambda event, run, *_: (
                f"dependency {event.run_id} {outcome_text(event.outcome)}"
                f"{_instead(run, event.run_id)}"
            ),
        ),
        _row(
            events.FannedOut,
            lambda event, *_: event.error or f"the list was read: {counted(event.items, 'run')}",
        ),
        _row(
            events.SlotGranted,
            lambda _, run, __: (
                f'slot granted in lane "{run.resolved.lane}" for attempt {len(run.attempts)}'
            ),
        ),
        _row(
            events.ProviderClosed, lambda event, run, _: f"{event.why}; {run.resolved.taken_over}"
        ),
        _row(
            events.AttemptPlaced,
            lambda event, *_: f"attempt {event.attempt} has its place on node {event.node}",
        ),
        _row(
            events.WorktreePlanned,
            lambda event, *_: f"its worktree is {event.worktree.path} on {event.worktree.node}",
        ),
        _row(events.TokenIssued, lambda event, *_: f"attempt {event.attempt} got one more token"),
        _row(
            events.BaselineTaken,
            lambda event, *_: (
                f"looked at its contract's files: {len(event.baseline.files)} are there already"
            ),
        ),
        _row(
            events.FilesLeft,
            lambda event, *_: (
                f"attempt {event.attempt} left {len(event.files.files)} of its contract's files"
            ),
        ),
        _row(events.AttemptStarted, _started, line=LineType.SYSTEM),
        _row(events.AttemptStartFailed, _start_failed, line=LineType.ERROR),
        _row(
            events.AttemptTakenOver,
            lambda event, *_: f"a restarted daemon took over attempt {event.attempt}",
            line=LineType.SYSTEM,
            mark="taken over after a restart",
        ),
        _row(events.SignalReceived, _signal),
        _row(
            events.LeaseExpired,
            lambda event, *_: f"nobody vouched for attempt {event.attempt} until its lease ran out",
            mark="lease expired",
        ),
        _row(events.TimerFired, lambda event, *_: _TIMER_WORDS[event.cause]),
        _row(events.ClockStepped, _clock_stepped),
        _row(
            events.Repaired,
            lambda event, _, texts: f"its record was repaired: {texts.shown(event.found)}",
            line=LineType.SYSTEM,
            mark="repaired",
        ),
        _row(
            events.ChecksPassed,
            lambda event, run, _: (
                f"{counted(len(event.checks), 'check')} passed; now"
                f" agent {'' if run.resolved.judge is None else run.resolved.judge.agent_id} judges"
            ),
        ),
        _row(
            events.VerificationFinished,
            lambda event, run, texts: _verification(event.verification, run, texts),
            line=LineType.SYSTEM,
        ),
        _row(events.CancelRequested, _cancelled, line=LineType.SYSTEM, mark="cancel requested"),
        _row(events.CancelPlanned, _cancel_planned, line=LineType.SYSTEM, mark="cancel planned"),
        _row(
            events.CancelWithdrawn,
            lambda event, *_: f"what was planned was taken back {_by(event)}",
            line=LineType.SYSTEM,
            mark="cancel taken back",
        ),
        _row(
            events.Paused, lambda event, *_: f"paused by {person(event.by)}", line=LineType.SYSTEM
        ),
        _row(
            events.Resumed, lambda event, *_: f"resumed by {person(event.by)}", line=LineType.SYSTEM
        ),
        _row(
            events.Prioritized,
            lambda event, *_: f"priority {event.priority} given {_by(event)}",
            line=LineType.SYSTEM,
        ),
        _row(
            events.SteerRequested,
            lambda event, _, texts: (
                f"message from {person(event.by)}: {texts.quoted(event.message)}"
                f"{_raised(event.added or Amounts())}"
            ),
            line=LineType.USER,
            mark="steered",
        ),
        _row(
            events.SteerSettled,
            lambda event, *_: (
                f"message {event.number} "
                + ("reached the worker" if event.taken else "waits for the next turn")
            ),
        ),
        _row(
            events.InterruptRequested,
            lambda event, _, texts: f"interrupted {_by(event)}{texts.reason(event.reason)}",
            line=LineType.SYSTEM,
            mark="interrupt requested",
        ),
        _row(
            events.Continued,
            lambda event, *_: f"run {event.run_id} continues its session",
            line=LineType.SYSTEM,
        ),
        _row(
            events.ChildSpawned,
            lambda event, *_: (
                f'spawned sub-agent "{event.child.label}" ({event.child.run_id})'
                if event.child.judges is None
                else f"run {event.child.run_id} judges attempt {event.child.judges}"
            ),
        ),
        _row(
            events.ChildSettled,
            lambda event, run, _: (
                f"{_who(event.child, run)} {event.child} {outcome_text(event.outcome)}"
            ),
        ),
        _row(
            events.ChildReturned,
            lambda event, *_: f"is being handed the result of sub-agent {event.child}",
        ),
        _row(events.ChildTold, lambda event, *_: f"took the result of sub-agent {event.child}"),
        _row(
            events.ChildSpent,
            lambda event, run, _: (
                f"{_who(event.child, run)} {event.child} and all below it: {_spent(event.spent)}"
            ),
        ),
        _row(
            events.RequestHeld,
            lambda event, *_: (
                f"attempt {event.attempt} keeps {compact(event.tokens)} tokens free for a request"
            ),
        ),
        _row(events.BudgetExhausted, _budget_exhausted, mark="budget exhausted"),
        _row(
            events.RequestAsked,
            lambda event, _, texts: (
                f"asks: {texts.quoted(event.request.question)} ({event.request.id})"
            ),
            line=LineType.TOOL,
            mark="question",
        ),
        _row(events.RequestAnswered, _answered, line=LineType.USER, mark="answer"),
        _row(
            events.ParentNotified,
            lambda event, _, texts: (
                f"tells its requester ({event.priority}): {texts.quoted(event.message)}"
            ),
            line=LineType.TOOL,
        ),
        _row(
            events.Alerted,
            lambda event, _, texts: f"alert: {texts.shown(event.alert.text)}",
            mark="alert",
        ),
        _row(
            events.ChildAlerted,
            lambda event, _, texts: (
                f"its agent was notified of {event.child}: {texts.shown(event.text)}"
            ),
        ),
        _row(events.DeliverySettled, _delivered, mark="delivery"),
        _row(
            events.AnnouncementConsumed,
            lambda event, *_: f"its result was {TAKEN_WORDS[event.path]}",
            mark="consumed",
        ),
        _row(
            events.Redelivered,
            lambda event, *_: f"its result was asked for once more {_by(event)}",
        ),
        _row(events.CallRefused, _refused),
        _row(events.CleanedUp, lambda *_: "cleaned up"),
        _row(
            events.Dismissed,
            lambda event, *_: f"marked as {'unread' if event.withdrawn else 'read'} {_by(event)}",
        ),
        _row(events.Archived, lambda *_: "archived"),
    ]
)


# -- words for codes, which no sentence shows ----------------------------------------------------

PATH_WORDS: Final[Mapping[DeliveryPath, str]] = {
    DeliveryPath.DIRECT: "pushed to its session",
    DeliveryPath.QUEUED: "it waits in the inbox",
    DeliveryPath.STEERED: "put into its live turn",
    DeliveryPath.PULLED: "fetched by its reader",
}
TAKEN_WORDS: Final[Mapping[DeliveryPath, str]] = {
    DeliveryPath.DIRECT: "read in its session",
    DeliveryPath.QUEUED: "read in the inbox",
    DeliveryPath.STEERED: "read in a live turn",
    DeliveryPath.PULLED: "fetched",
}
"""How a result was taken."""
_DEFERRED: Final[Mapping[DeferReason, str]] = {
    DeferReason.DESCENDANTS_ACTIVE: "runs below it are still at work",
    DeferReason.REQUESTER_BUSY: "its requester is busy",
    DeferReason.QUIET: "its requester wants quiet now",
}
_SKIPPED: Final[Mapping[SkipReason, str]] = {
    SkipReason.ANNOUNCE_SKIP: "its result says that nobody need be told",
    SkipReason.SILENT: "it was spawned to be silent",
    SkipReason.NOT_EXPECTED: "its requester does not expect it",
}
_DECIDED: Final[Mapping[Decision, str]] = {
    Decision.ANSWER: "was answered",
    Decision.APPROVE: "was approved",
    Decision.DENY: "was denied",
    Decision.DEFAULT: "got its default answer",
    Decision.TIMEOUT: "ran out of time",
    Decision.CANCELLED: "was withdrawn",
}
_BY_ITSELF: Final = frozenset({Decision.DEFAULT, Decision.TIMEOUT, Decision.CANCELLED})
EFFECT_WORDS: Final[Mapping[type, str]] = {
    effects.StartAttempt: "starting its worker",
    effects.ResumeAttempt: "starting its worker's next turn",
    effects.StopAttempt: "ending its worker",
    effects.SteerAttempt: "handing a message to its worker",
    effects.PermitAttempt: "telling its worker what it may use",
    effects.InterruptAttempt: "interrupting its worker",
    effects.FreezeAttempt: "pausing its worker",
    effects.ThawAttempt: "letting its worker go on",
    effects.Verify: "checking its contract",
    effects.LookAfter: "looking at what it left",
    effects.StartJudge: "asking its judge",
    effects.Announce: "telling its requester",
    effects.CleanUp: "cleaning up after it",
}
"""What the engine does for a run, where this keeps failing."""


# -- parts of sentences -------------------------------------------------------------------------


def brief(text: str) -> str:
    """A text inside a sentence: on one line, at most ``TEXT_CHARS_MAX`` characters."""
    return one_line(text, TEXT_CHARS_MAX)


def person(key: str) -> str:
    """Who a session is, in a word: ``main``, ``a run of claude``; anything else as it is."""
    match key.split(":"):
        case ["agent", "main", name]:
            return name
        case ["agent", agent, "subagent", *_]:
            return f"a run of {agent}"
        case _:
            return key


class _ByOne(Protocol):
    @property
    def by(self) -> str: ...


def _by(event: _ByOne) -> str:
    return f"by {person(event.by)}"


def label_list(names: list[str]) -> str:
    """``"a", "b" and 3 more``."""
    return listed([f'"{name}"' for name in names], NAMES_MAX)


def outcome_text(outcome: Outcome | None) -> str:
    """``completed successfully``, ``failed: exit code 1``, …; ``over`` when it is not known."""
    return brief(ending(outcome)).removeprefix("just ") if outcome else "over"


def delivery_text(outcome: DeliveryOutcome, texts: Texts = BRIEF) -> str:
    """What came of one delivery try."""
    match outcome:
        case Delivered():
            return f"delivered: {PATH_WORDS[outcome.path]}"
        case Deferred():
            return f"deferred: {_DEFERRED[outcome.reason]}"
        case Skipped():
            return f"not pushed: {_SKIPPED[outcome.reason]}"
        case DeliveryFailed():
            again = "" if outcome.retryable else ", for good"
            return f"failed{again}: {texts.shown(outcome.error)}"
        case _:
            assert_never(outcome)


def _verification(verification: Verification, run: Run, texts: Texts) -> str:
    checks = verification.checks
    if verification.verdict is Verdict.PASSED:
        already = ", as before the work (vacuous)" if run.verification.vacuous else ""
        return f"verification passed: {len(checks)}/{len(checks)} checks{already}"
    failures = failures_text(verification)
    if verification.verdict is Verdict.COULD_NOT_CHECK:
        return f"verification could not check: {texts.shown(failures)}"
    return f"verification failed: {texts.shown(failures)}"


def _who(child_id: RunId, run: Run) -> str:
    child = run.children.get(child_id)
    return "judge" if child is not None and child.judges is not None else "sub-agent"


def _raised(added: Amounts) -> str:
    parts = [f"{compact(added.tokens)} tokens"] if added.tokens else []
    parts += [money(added.cost_usd)] if added.cost_usd else []
    return f"; its budget is raised by {' and '.join(parts)}" if parts else ""


def _spent(used: Spent) -> str:
    parts = [
        counted(used.runs, "run"),
        f"{compact(used.tokens)} tokens" if used.tokens is not None else "",
        cost_bound(used.cost_usd, unknown_runs=used.cost_unknown_runs, runs=used.runs)
        if used.cost_usd is not None
        else "",
    ]
    return ", ".join(filter(None, parts))
