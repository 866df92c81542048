"""A run as spans of a distributed trace, from nothing but the run and its journal.

- One ``invoke_agent`` span per attempt. A retry is a span of its own, linked to the first attempt.
  A run that ended before any attempt is one span with attempt 0.
- A child's spans lie under the attempt that spawned it. One that outlived its parent is linked to
  it instead: a span must not end after the one it lies in.
- ``execute_tool`` per tool and ``verify`` per contract that was checked lie under the attempt.
- Deliveries, questions, alerts, stops are events of the attempt's span, by name and without texts.

Ids are hashes (``trace``): what is sent twice has the same ones. Content is left out unless it is
asked for.

Pure. Who sends them: ``telemetry``. Why so: docs/decisions/0022.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec

from subagents.domain.redaction.redact import redact
from subagents.domain.rules.provider_limits import agent_of
from subagents.domain.run.events import (
    Alerted,
    AnnouncementConsumed,
    ChecksPassed,
    ChildSettled,
    DeliverySettled,
    Event,
    RequestAnswered,
    RequestAsked,
    SignalReceived,
    SlotGranted,
    VerificationFinished,
)
from subagents.domain.run.outcome import (
    Deferred,
    Delivered,
    DeliveryOutcome,
    Outcome,
    Reason,
    Skipped,
    Status,
    Verdict,
    Verification,
)
from subagents.domain.run.run import Attempt, Run
from subagents.domain.run.signals import ToolSeen
from subagents.domain.run.spec import ResolvedAgent
from subagents.domain.run.values import Value, attempt_before
from subagents.domain.text.event_words import span_mark
from subagents.extensions.telemetry import span_names
from subagents.extensions.telemetry.trace_ids import (
    UNTRIED,
    Lineage,
    span_id,
    trace_id,
)
from subagents.text import shortened

TOOLS_MAX: Final = 1_000
"""Tool spans of one run; how many more there were stands on the attempt's span."""
TOOL_CHARS_MAX: Final = 100
EVENTS_MAX: Final = 128
"""The most events of one span, as OpenTelemetry's own libraries keep."""
CONTENT_CHARS_MAX: Final = 32 * 1024

Attribute: TypeAlias = str | int | float | bool


class SpanEvent(Value, frozen=True):
    """Something that happened at one moment of a span."""

    name: str
    at_ms: int
    attributes: dict[str, Attribute] = {}


class Link(Value, frozen=True):
    """To a span this one belongs to without lying in it."""

    span_id: str
    kind: str


class Span(Value, frozen=True):
    """One piece of work in the trace of its tree of runs."""

    trace_id: str
    """32 hexadecimal digits, the same for the whole tree."""
    span_id: str
    """16 hexadecimal digits."""
    parent_id: str | None
    name: str
    start_ms: int
    end_ms: int
    is_remote_call: bool = False
    """Another process did the work (OpenTelemetry's kind CLIENT)."""
    attributes: dict[str, Attribute] = {}
    events: tuple[SpanEvent, ...] = ()
    links: tuple[Link, ...] = ()
    has_failed: bool = False


@dataclass(slots=True)
class _Draft:
    """What the journal says of one attempt, while it is read."""

    end_ms: int = 0
    """Its own end, or that of what it waited for."""
    events: list[SpanEvent] = field(default_factory=list)
    events_left_out: int = 0
    tools: list[tuple[str, int]] = field(default_factory=list)
    tools_left_out: int = 0
    verification: Verification | None = None
    verified_ms: int = 0
    is_judged: bool = False
    """What it waits for from now on belongs to its verification."""

    def note(
        self, name: str, at_ms: int, attributes: Mapping[str, Attribute] | None = None
    ) -> None:
        if len(self.events) >= EVENTS_MAX:
            self.events_left_out += 1
            return
        self.events.append(SpanEvent(name=name, at_ms=at_ms, attributes=dict(attributes or {})))


@dataclass(slots=True)
class _Story:
    """What the journal says of the whole run, while it is read."""

    drafts: dict[int, _Draft]
    current: int = UNTRIED
    tools: int = 0
    path: str | None = None


# -- the spans ----------------------------------------------------------------------------------


def spans_of(
    run: Run,
    journal: Iterable[Event],
    where: Lineage,
    *,
    description: str | None = None,
    content: bool = False,
) -> list[Span]:
    """All spans of a settled run: its attempts in order, each before what lies in it.

    Args:
        run: Has an outcome.
        journal: Its events, in order; read once, none is kept.
        where: See ``lineage``.
        description: Of its agent.
        content: Task, result and error texts too, redacted and cut; else none of them.
    """
    story = _read(run, journal)
    if not run.attempts:
        return [_untried(run, story, where, description=description, content=content)]
    found: list[Span] = []
    for attempt in run.attempts:
        draft = story.drafts[attempt.number]
        span = _of_attempt(run, attempt, story, where, description=description, content=content)
        found.append(span)
        found += _tools(span, run, attempt.number, draft)
        if draft.verification is not None:
            found.append(_verification(span, run, attempt, draft, draft.verification))
    return found


def _read(run: Run, journal: Iterable[Event]) -> _Story:
    numbers = [UNTRIED, *(attempt.number for attempt in run.attempts)]
    story = _Story(drafts={number: _Draft() for number in numbers})
    for event in journal:
        _take(story, event)
    # What came before the first attempt is shown on it.
    before = story.drafts[UNTRIED].events
    if run.attempts and before:
        first = story.drafts[run.attempts[0].number]
        first.events[:0] = before
    return story


def _take(story: _Story, event: Event) -> None:
    draft = story.drafts[story.current]
    match event:
        case SlotGranted():
            story.current += 1
        case SignalReceived(signal=ToolSeen(name=name), attempt=number) if number in story.drafts:
            _take_tool(story, story.drafts[number], name, event.at_ms)
        case VerificationFinished(attempt=number) if number in story.drafts:
            checked = story.drafts[number]
            checked.verification, checked.verified_ms = event.verification, event.at_ms
        case ChecksPassed(attempt=number) if number in story.drafts:
            story.drafts[number].is_judged = True
        case ChildSettled() if not draft.is_judged:
            draft.end_ms = max(draft.end_ms, event.at_ms)
        case DeliverySettled(record=record) if isinstance(record.outcome, Delivered):
            story.path = story.path or str(record.outcome.path)
        case AnnouncementConsumed(path=path):
            story.path = str(path)
        case _:
            pass
    mark = span_mark(event)
    if mark is not None:
        draft.note(mark, event.at_ms, _about_mark(event))


def _about_mark(event: Event) -> dict[str, Attribute]:
    """What a moment of a span says besides its name: no text of anybody."""
    match event:
        case RequestAsked(request=request):
            return {span_names.REQUEST_ID: request.id}
        case RequestAnswered(request_id=request_id, answer=answer):
            return {span_names.REQUEST_ID: request_id, span_names.DECISION: str(answer.decision)}
        case Alerted(alert=alert):
            return {span_names.ALERT_KIND: str(alert.kind)}
        case DeliverySettled(record=record):
            known: dict[str, Attribute] = {
                span_names.DELIVERY_TARGET: record.target,
                span_names.DELIVERY_OUTCOME: delivery_word(record.outcome),
            }
            if isinstance(record.outcome, Delivered):
                known[span_names.DELIVERY_PATH] = str(record.outcome.path)
            return known
        case AnnouncementConsumed(path=path):
            return {span_names.DELIVERY_PATH: str(path)}
        case _:
            return {}


def _take_tool(story: _Story, draft: _Draft, name: str, at_ms: int) -> None:
    if story.tools >= TOOLS_MAX:
        draft.tools_left_out += 1
        return
    story.tools += 1
    draft.tools.append((redact(name)[:TOOL_CHARS_MAX], at_ms))


def delivery_word(outcome: DeliveryOutcome) -> str:
    """``delivered``, ``failed``, or why not yet (``deferred: …``) or never (``skipped: …``)."""
    match outcome:
        case Delivered():
            return "delivered"
        case Deferred(reason=reason):
            return f"deferred: {reason}"
        case Skipped(reason=why):
            return f"skipped: {why}"
        case _:
            return "failed"


def _of_attempt(
    run: Run,
    attempt: Attempt,
    story: _Story,
    where: Lineage,
    *,
    description: str | None,
    content: bool,
) -> Span:
    draft = story.drafts[attempt.number]
    is_last = attempt is run.attempts[-1]
    outcome = _outcome(run, attempt, draft)
    ended_ms = attempt.times.ended_at_ms or attempt.times.requested_at_ms
    end_ms = max(ended_ms, draft.end_ms, draft.verified_ms)
    if is_last:
        end_ms = max(end_ms, run.ended_at_ms or end_ms)
    attributes = _about(run, agent_of(run, attempt.number), description=description)
    attributes[span_names.ATTEMPT] = attempt.number
    attributes[span_names.CONVERSATION_ID] = attempt.session.key
    _put_outcome(attributes, outcome)
    if (before := attempt_before(run.id, attempt.number)) is not None:
        attributes[span_names.RETRY_OF] = before
    if attempt.number == 1:
        attributes[span_names.QUEUED_MS] = max(
            attempt.times.requested_at_ms - run.times.created_at_ms, 0
        )
    usage = attempt.usage
    if usage is not None:
        counts = {
            span_names.INPUT_TOKENS: usage.tokens_in,
            span_names.OUTPUT_TOKENS: usage.tokens_out,
            span_names.CACHE_READ_TOKENS: usage.tokens_cache_read,
            span_names.CACHE_WRITE_TOKENS: usage.tokens_cache_write,
            span_names.COST_USD: usage.cost_usd,
        }
        attributes |= {name: count for name, count in counts.items() if count is not None}
    if run.spec.verification is not None:
        attributes[span_names.CONTRACT_STATUS] = _contract(draft.verification)
    if is_last and story.path is not None:
        attributes[span_names.DELIVERY_PATH] = story.path
    if draft.tools_left_out:
        attributes[span_names.TOOLS_LEFT_OUT] = draft.tools_left_out
    if draft.events_left_out:
        attributes[span_names.EVENTS_LEFT_OUT] = draft.events_left_out
    if content:
        output = run.result if is_last else attempt.evidence.result
        attributes |= _content(run.spec.task, output, outcome)
    first = (Link(span_id=span_id(run.id, 1), kind="retry_of"),) if attempt.number > 1 else ()
    times = (attempt.times.requested_at_ms, end_ms)
    return _span(run, where, draft, attributes, outcome, times=times, links=first)


def _untried(
    run: Run, story: _Story, where: Lineage, *, description: str | None, content: bool
) -> Span:
    """A run that ended while it waited: cancelled, or its dependencies failed."""
    attributes = _about(run, run.resolved, description=description)
    attributes[span_names.ATTEMPT] = UNTRIED
    attributes[span_names.CONVERSATION_ID] = run.session.first_key
    _put_outcome(attributes, run.outcome)
    if story.path is not None:
        attributes[span_names.DELIVERY_PATH] = story.path
    if content:
        attributes |= _content(run.spec.task, run.result, run.outcome)
    times = (run.times.created_at_ms, run.ended_at_ms or run.times.created_at_ms)
    return _span(run, where, story.drafts[UNTRIED], attributes, run.outcome, times=times)


def _span(
    run: Run,
    where: Lineage,
    draft: _Draft,
    attributes: dict[str, Attribute],
    outcome: Outcome | None,
    *,
    times: tuple[int, int],
    links: tuple[Link, ...] = (),
) -> Span:
    begun_ms, end_ms = times
    parent, apart = _parent(run, where)
    number = attributes[span_names.ATTEMPT]
    return Span(
        trace_id=trace_id(where.root),
        span_id=span_id(run.id, int(number)),
        parent_id=parent,
        name=f"{span_names.INVOKE_AGENT} {attributes[span_names.AGENT_ID]}",
        start_ms=begun_ms,
        end_ms=max(end_ms, begun_ms),
        is_remote_call=True,
        attributes=attributes,
        events=tuple(draft.events),
        links=(*links, *apart),
        has_failed=_has_failed(outcome),
    )


def _about(run: Run, agent: ResolvedAgent, *, description: str | None) -> dict[str, Attribute]:
    """What every span of an attempt says of its run, and of the agent that it was of."""
    found: dict[str, Attribute] = {
        span_names.OPERATION_NAME: span_names.INVOKE_AGENT,
        span_names.PROVIDER_NAME: span_names.PROVIDERS.get(agent.runtime, agent.runtime),
        span_names.AGENT_ID: agent.agent_id,
        span_names.AGENT_NAME: agent.agent_id,
        span_names.RUN_ID: run.id,
        span_names.LABEL: redact(run.resolved.label),
        span_names.RUNTIME: agent.runtime,
        span_names.DEPTH: run.lineage.depth,
    }
    if description and agent.agent_id == run.resolved.agent_id:
        found[span_names.AGENT_DESCRIPTION] = description
    if agent.model is not None:
        found[span_names.REQUEST_MODEL] = agent.model
    if run.lineage.requester_run is not None:
        found[span_names.PARENT_ID] = run.lineage.requester_run
    if run.lineage.retry_from is not None:
        found[span_names.RETRY_OF] = run.lineage.retry_from
    return found


def _outcome(run: Run, attempt: Attempt, draft: _Draft) -> Outcome | None:
    """What the attempt came to, and the verdict on its contract."""
    if attempt is run.attempts[-1]:
        return run.outcome
    verdict = draft.verification.verdict if draft.verification is not None else None
    if verdict is Verdict.FAILED:
        return Outcome(status=Status.ERROR, reason=Reason.VERIFICATION_FAILED)
    return attempt.outcome


def _put_outcome(attributes: dict[str, Attribute], outcome: Outcome | None) -> None:
    if outcome is None:
        return
    attributes[span_names.OUTCOME] = str(outcome.status)
    if _has_failed(outcome):
        attributes[span_names.ERROR_TYPE] = str(outcome.reason or outcome.status)


def _has_failed(outcome: Outcome | None) -> bool:
    return outcome is not None and outcome.status not in {Status.OK, Status.PARTIAL}


def _contract(verification: Verification | None) -> str:
    """``passed``, ``failed`` or ``skipped`` (never ran, or could not check)."""
    if verification is None or verification.verdict is Verdict.COULD_NOT_CHECK:
        return "skipped"
    return str(verification.verdict)


def _parent(run: Run, where: Lineage) -> tuple[str | None, tuple[Link, ...]]:
    """The span it lies in, or a link to the one it should have lain in."""
    parent = where.parent
    if parent is None:
        return None, ()
    spawner = UNTRIED
    for attempt in parent.attempts:
        if attempt.times.requested_at_ms <= run.times.created_at_ms or spawner == UNTRIED:
            spawner = attempt.number
    found = span_id(parent.id, spawner)
    over_ms, ended_ms = parent.ended_at_ms, run.ended_at_ms
    if over_ms is not None and ended_ms is not None and over_ms < ended_ms:
        return None, (Link(span_id=found, kind="parent"),)
    return found, ()


def _content(task: str, result: str | None, outcome: Outcome | None) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {span_names.INPUT_MESSAGES: _messages("user", task)}
    output = result or (outcome.error if outcome is not None else None)
    if output:
        found[span_names.OUTPUT_MESSAGES] = _messages("assistant", output)
    return found


def _messages(role: str, text: str) -> str:
    shown = shortened(redact(text), CONTENT_CHARS_MAX)
    message = {"role": role, "parts": [{"type": "text", "content": shown}]}
    return msgspec.json.encode([message]).decode()


def _tools(span: Span, run: Run, number: int, draft: _Draft) -> list[Span]:
    """The journal knows when a tool was seen, not how long it took: spans without a length."""
    return [
        Span(
            trace_id=span.trace_id,
            span_id=span_id(run.id, number, "tool", str(index)),
            parent_id=span.span_id,
            name=f"{span_names.EXECUTE_TOOL} {name}",
            start_ms=at_ms,
            end_ms=at_ms,
            attributes={
                span_names.OPERATION_NAME: span_names.EXECUTE_TOOL,
                span_names.TOOL_NAME: name,
                span_names.RUN_ID: run.id,
                span_names.ATTEMPT: number,
            },
        )
        for index, (name, at_ms) in enumerate(draft.tools)
    ]


def _verification(
    span: Span, run: Run, attempt: Attempt, draft: _Draft, found: Verification
) -> Span:
    begun_ms = max(attempt.times.ended_at_ms or draft.verified_ms, draft.end_ms)
    return Span(
        trace_id=span.trace_id,
        span_id=span_id(run.id, attempt.number, "verification"),
        parent_id=span.span_id,
        name="verify",
        start_ms=min(begun_ms, draft.verified_ms),
        end_ms=draft.verified_ms,
        attributes={
            span_names.RUN_ID: run.id,
            span_names.ATTEMPT: attempt.number,
            span_names.CONTRACT_STATUS: _contract(found),
            span_names.CHECKS: len(found.checks),
            span_names.CHECKS_FAILED: len(found.failures),
        },
        has_failed=found.verdict is Verdict.FAILED,
    )
