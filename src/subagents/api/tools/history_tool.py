"""``sessions_history``: what was said in a child session, read from the run's journal.

The journal is what both sides agreed on: the task, the messages on the way, the replies. What the
worker's program printed is in the log. Nothing is shown unredacted: a worker may have read a key
and quoted it.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final, NamedTuple

import msgspec

from subagents.api.answers.causes import played_back
from subagents.api.answers.explain import Folded
from subagents.api.calls.call import find_run
from subagents.api.tools.tool import Answer, Call
from subagents.api.tools.tool_arguments import Selector, decoded
from subagents.api.wire import requests as wire
from subagents.api.wire.message_answers import History, HistoryMessage
from subagents.api.wire.wire_struct import document_of, made
from subagents.domain.redaction.redact import redact
from subagents.domain.run import events as e
from subagents.domain.run import signals as s
from subagents.domain.run.run import Decision, Progress, Report, Request, Run
from subagents.domain.run.values import SessionKey
from subagents.domain.text import announcement, prompt
from subagents.text import iso, one_line, shortened

MESSAGE_CHARS_MAX: Final = 4_000
ANSWER_BYTES_MAX: Final = 80_000
"""The most that all messages of one answer have, as JSON."""
LIMIT: Final = 50
LIMIT_MAX: Final = 200
OFFSET_MAX: Final = 10**9
LINE_CHARS_MAX: Final = 200
"""How much of a message the answer's text shows; the whole is in its data."""

REQUESTER: Final = "requester"
WORKER: Final = "worker"
SYSTEM: Final = "system"
"""Neither of them: a deadline that passed, a run that was ended."""


class SessionMessage(NamedTuple):
    """One message of a child session."""

    role: str
    kind: str
    at_ms: int
    attempt: int
    """The number of the attempt in whose session it was said."""
    session_key: SessionKey
    text: str


class HistoryArguments(wire.Body, frozen=True):
    session_key: Annotated[Selector, msgspec.Meta(description="Or a run id or label")]
    limit: Annotated[int, msgspec.Meta(ge=1, le=LIMIT_MAX)] = LIMIT
    offset: Annotated[int, msgspec.Meta(ge=0, le=OFFSET_MAX)] = 0
    include_tools: Annotated[bool, msgspec.Meta(description="Progress too")] = False


async def sessions_history(call: Call) -> Answer:
    """A page of the messages of one child session, or of all attempts of one run."""
    asked = decoded(call, HistoryArguments)
    run = await find_run(call.services, asked.session_key, call.caller)
    key = asked.session_key if asked.session_key in run.session_keys else None
    messages = [
        each
        for each in await _messages(call, run)
        if (asked.include_tools or each.kind != "progress")
        and (key is None or each.session_key == key)
    ]
    shown = _fitting(messages[asked.offset : asked.offset + asked.limit])
    end = asked.offset + len(shown)
    next_offset = end if end < len(messages) else None
    lines = [f"{run.resolved.label}: {len(shown)} of {len(messages)} messages"]
    lines += [f"{each.role} {each.kind}: {one_line(each.text, LINE_CHARS_MAX)}" for each in shown]
    if next_offset is not None:
        lines.append(f"more: offset={next_offset}")
    found = History(
        run_id=run.id,
        label=run.resolved.label,
        session_key=key or run.session_key,
        messages=shown,
        total=len(messages),
        next_offset=next_offset,
    )
    return Answer(text="\n".join(lines), structured=document_of(found))


async def _messages(call: Call, run: Run) -> list[SessionMessage]:
    found: list[SessionMessage] = []
    async for step in played_back(call.services, run.id):
        if not step.stale:
            found += messages_in(step)
    return found


def _fitting(messages: Sequence[SessionMessage]) -> list[HistoryMessage]:
    """As many as fit into one answer, at least one; redacted before they are cut.

    The other way round a key that the cut goes through would lose its shape and be shown.
    """
    shown: list[HistoryMessage] = []
    size = 0
    for each in messages:
        text = shortened(redact(each.text), MESSAGE_CHARS_MAX)
        message = made(HistoryMessage, each, said_at=iso(each.at_ms), text=text)
        size += len(msgspec.json.encode(message)) + 1
        if shown and size > ANSWER_BYTES_MAX:
            break
        shown.append(message)
    return shown


# -- what an event says -------------------------------------------------------------------------


def messages_in(step: Folded) -> Iterator[SessionMessage]:
    """The messages of one journal entry, given the run before and after it."""
    yield from _messages_of(step.entry.event, step.run)
    if step.before is not None:
        at_ms = step.entry.at_ms
        if not isinstance(step.entry.event, e.SteerRequested):
            # A message answers every notice; it is shown once, as the message.
            yield from _answers(step.before, step.run, at_ms)
        yield from _follow_up(step.before, step.run, at_ms)
        yield from _results(step.before, step.run, at_ms)


def _messages_of(event: e.Event, run: Run) -> Iterator[SessionMessage]:
    match event:
        case e.SlotGranted():
            yield _message(run, REQUESTER, "task", event.at_ms, prompt.compose(run))
        case e.SteerRequested():
            yield _message(run, REQUESTER, "steer", event.at_ms, event.message)
        case e.RequestAsked(request=request):
            text = _question(request)
            yield _message(run, WORKER, "question", event.at_ms, text, attempt=request.attempt)
        case e.ParentNotified():
            text = f"[{event.priority}] {event.message}"
            yield _message(run, WORKER, "notice", event.at_ms, text)
        case e.SignalReceived(signal=s.ReportSeen(report=report)):
            yield _message(run, WORKER, "report", event.at_ms, _report(report))
        case e.SignalReceived(signal=s.ProgressSeen(progress=progress)):
            yield _message(run, WORKER, "progress", event.at_ms, _progress(progress))
        case _:
            # Other events say nothing to either side; they are in the timeline.
            return


def _message(
    run: Run, role: str, kind: str, at_ms: int, text: str, *, attempt: int | None = None
) -> SessionMessage:
    """A message in the session of that attempt, the newest when None."""
    # The task is given with the slot, before there is an attempt.
    number = attempt or max(len(run.attempts), 1)
    key = run.attempts[number - 1].session.key if run.attempts else run.session.first_key
    return SessionMessage(role, kind, at_ms, number, key, text)


def _answers(before: Run, after: Run, at_ms: int) -> Iterator[SessionMessage]:
    """Questions settled by this event: by an answer, a deadline, or the end of their run."""
    open_before = {request.id for request in before.pending_requests}
    for request in after.questions.requests:
        given = request.answer
        if given is None or request.id not in open_before:
            continue
        by_hand = given.decision in {Decision.ANSWER, Decision.APPROVE, Decision.DENY}
        if request.priority is not None and not by_hand:
            continue  # a notice without an answer, for which its worker did not wait
        decided = "" if given.decision is Decision.ANSWER else f"[{given.decision}] "
        text = f"{decided}{given.text or ''}".strip()
        role = REQUESTER if by_hand else SYSTEM
        yield _message(after, role, "answer", at_ms, text, attempt=request.attempt)


def _follow_up(before: Run, after: Run, at_ms: int) -> Iterator[SessionMessage]:
    """One more turn, with the results of the worker's own children."""
    if before.is_follow_up_asked or not after.is_follow_up_asked:
        return
    untold = {child.run_id for child in before.children if not child.told}
    children = tuple(child for child in after.children if child.run_id in untold)
    yield _message(
        after, SYSTEM, "followup", at_ms, announcement.follow_up(children, before.control.steers)
    )


def _results(before: Run, after: Run, at_ms: int) -> Iterator[SessionMessage]:
    """What an attempt came to, once its outcome is known."""
    for old, new in zip(before.attempts, after.attempts, strict=False):
        if old.outcome is None and new.outcome is not None:
            text = new.evidence.result
            if text is None:
                error = new.outcome.error or new.outcome.reason
                text = f"({new.outcome.status}{f': {error}' if error else ''})"
            yield _message(after, WORKER, "result", at_ms, text, attempt=new.number)


def _question(request: Request) -> str:
    lines = [request.question]
    if request.context:
        lines.append(f"Context: {request.context}")
    if request.options:
        lines.append(f"Options: {' / '.join(request.options)}")
    return "\n".join(lines)


def _report(report: Report) -> str:
    sure = f", confidence {report.confidence}" if report.confidence else ""
    lines = [f"[{report.status}{sure}] {report.summary}"]
    lines += [f"artifact: {a.path} {a.description or ''}".rstrip() for a in report.artifacts]
    lines += [f"blocker: {text}" for text in report.blockers]
    lines += [f"warning: {text}" for text in report.warnings]
    return "\n".join(lines)


def _progress(progress: Progress) -> str:
    percent = progress.percent_complete
    return progress.phase if percent is None else f"{percent:g} % {progress.phase}"
