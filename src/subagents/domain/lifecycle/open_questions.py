"""The questions of a run as they are answered, run out of time, or end with their attempt."""

from collections.abc import Iterable
from typing import Final

from subagents.domain.run.effects import FollowUp, PermitAttempt, ResolveMessages, Transition
from subagents.domain.run.events import ParentNotified
from subagents.domain.run.run import Answer, Decision, Priority, Request, Run
from subagents.domain.run.signals import PermissionAsked
from subagents.domain.run.values import MessageId, RequestId, RunId, replace
from subagents.domain.text import announcement
from subagents.text import one_line

ONCE, LASTING, FOR_AGENT, DENY = "once", "for this run", "for this agent", "deny"
"""Answers to a program that asks whether it may use a tool."""
PERMISSION_MS: Final = 24 * 3_600_000
SHOWN_CHARS_MAX: Final = 200
PERMISSIONS_MAX: Final = 20
"""How many tool calls of a run may wait for an answer; those beyond are denied."""


def asked(run: Run, request: Request) -> Run:
    """The run with one more question, or notice that wants an answer."""
    requests = (*run.questions.requests, request)
    return replace(run, questions=replace(run.questions, requests=requests))


def by_person(run_id: RunId, question: str, *, number: int, at_ms: int) -> Request:
    """The question to a person before which a run does not begin."""
    return Request(
        id=RequestId(f"{run_id}:q{number}"),
        attempt=0,
        question=question,
        options=("approve", DENY),
        asked_at_ms=at_ms,
        deadline_ms=None,
        by_spawn=True,
    )


def gate_asked(run: Run, gate: str, at_ms: int) -> Transition:
    """A person is asked whether the run may begin; no answer in time is a no."""
    request = by_person(run.id, gate, number=len(run.questions.requests) + 1, at_ms=at_ms)
    if (wait_s := run.spec.dependency_timeout_seconds) is not None:
        late_ms = at_ms + int(wait_s * 1000)
        request = replace(request, deadline_ms=late_ms, default_answer=DENY)
    return Transition(asked(run, request), messages=(announcement.question(run, request),))


def notified(run: Run, event: ParentNotified) -> Transition:
    """A message to the requester; one that is no mere information waits for an answer."""
    run = replace(run, questions=replace(run.questions, notices=run.questions.notices + 1))
    message = announcement.notice(run, event)
    if event.priority is not Priority.INFO:
        request = Request(
            id=RequestId(message.id),
            attempt=len(run.attempts),
            question=event.message,
            asked_at_ms=event.at_ms,
            deadline_ms=None,
            priority=event.priority,
        )
        run = asked(run, request)
    return Transition(run, messages=(message,))


def permission_asked(run: Run, seen: PermissionAsked, at_ms: int) -> Transition:
    """A question whether the worker's program may use a tool; denied where nobody answers."""
    # Lists and notifications show the question alone: it names the command, too.
    question = f"May it use {seen.tool}? {one_line(seen.what, SHOWN_CHARS_MAX)}".strip()
    before = [each for each in run.questions.requests if each.permits]
    if any(each.call_id == seen.call_id and each.attempt == len(run.attempts) for each in before):
        return Transition(run)
    # Where other calls read the same, only the program knows what is meant by the answer.
    same = [each for each in before if each.call == seen.call] if seen.call else ()
    is_lasting = any(each.answer and each.answer.text == LASTING for each in same)
    allow = is_lasting or seen.is_allowed
    if allow or sum(each.answer is None for each in before) >= PERMISSIONS_MAX:
        told = PermitAttempt(len(run.attempts), seen.call_id, allow=allow, lasting=is_lasting)
        return Transition(run, effects=(told,))
    number = sum(each.priority is None for each in run.questions.requests) + 1
    request = Request(
        id=RequestId(f"{run.id}:q{number}"),
        attempt=len(run.attempts),
        question=question,
        context=seen.what,
        options=(ONCE, LASTING, *((FOR_AGENT,) if seen.call else ()), DENY),
        asked_at_ms=at_ms,
        deadline_ms=at_ms + PERMISSION_MS,
        default_answer=DENY,
        call_id=seen.call_id,
        permits=True,
        call=seen.call,
    )
    run = asked(run, request)
    return Transition(run, messages=(announcement.question(run, request),))


def permits(run: Run, requests: Iterable[Request]) -> tuple[PermitAttempt, ...]:
    """What programs are told that asked whether they may use a tool, of these answered questions.

    Whatever is no clear yes is a no.
    """
    answered = {each.id for each in requests}
    told: list[PermitAttempt] = []
    for each in run.questions.requests:
        if not each.permits or each.answer is None or each.id not in answered:
            continue
        text, decision = (each.answer.text or "").strip().lower(), each.answer.decision
        is_yes = decision is Decision.APPROVE or text in each.options[:-1]
        allow = is_yes and decision is not Decision.DENY
        told.append(
            PermitAttempt(each.attempt, each.call_id or "", allow=allow, lasting=text == LASTING)
        )
    return tuple(told)


def allowed_call(request: Request, text: str, decision: Decision) -> str | None:
    """What its agent may do in all runs, if it is answered so; None = nothing."""
    is_meant = text.strip().lower() == FOR_AGENT and decision is not Decision.DENY
    return request.call if is_meant else None


def answer(run: Run, request_id: str, given: Answer) -> Run:
    """The run with its question answered."""
    requests = tuple(
        replace(request, answer=given) if request.id == request_id else request
        for request in run.questions.requests
    )
    return replace(run, questions=replace(run.questions, requests=requests))


def expire(run: Run, at_ms: int) -> tuple[Run, tuple[FollowUp, ...], tuple[PermitAttempt, ...]]:
    """What passed its deadline gets its default answer, or none, and its message is resolved."""
    late = tuple(
        each
        for each in run.pending_requests
        if each.deadline_ms is not None and each.deadline_ms <= at_ms
    )
    for request in late:
        decision = Decision.TIMEOUT if request.default_answer is None else Decision.DEFAULT
        given = Answer(decision=decision, text=request.default_answer, by="deadline", at_ms=at_ms)
        run = answer(run, request.id, given)
    return run, resolved(late), permits(run, late)


def close(run: Run, at_ms: int) -> tuple[Run, tuple[FollowUp, ...]]:
    """The attempt is over, and no answer is awaited any more: the questions are resolved."""
    pending = run.pending_requests
    for request in pending:
        given = Answer(decision=Decision.CANCELLED, text=None, by="attempt ended", at_ms=at_ms)
        run = answer(run, request.id, given)
    # An unread notice is still news: it may say why the attempt ended.
    return run, resolved(request for request in pending if request.priority is None)


def resolved(requests: Iterable[Request]) -> tuple[FollowUp, ...]:
    """The follow-up by which these are no longer news to their requester, if there are any."""
    messages = tuple(MessageId(request.id) for request in requests)
    return (ResolveMessages(messages=messages),) if messages else ()
