"""The questions of a run as they are answered, run out of time, or end with their attempt."""

from collections.abc import Iterable

from subagents.domain.run.effects import FollowUp, ResolveMessages, Transition
from subagents.domain.run.events import ParentNotified
from subagents.domain.run.run import Answer, Decision, Priority, Request, Run
from subagents.domain.run.values import MessageId, RequestId, replace
from subagents.domain.text import announcement


def asked(run: Run, request: Request) -> Run:
    """The run with one more question, or notice that wants an answer."""
    requests = (*run.questions.requests, request)
    return replace(run, questions=replace(run.questions, requests=requests))


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


def answer(run: Run, request_id: str, given: Answer) -> Run:
    """The run with its question answered."""
    requests = tuple(
        replace(request, answer=given) if request.id == request_id else request
        for request in run.questions.requests
    )
    return replace(run, questions=replace(run.questions, requests=requests))


def expire(run: Run, at_ms: int) -> tuple[Run, tuple[FollowUp, ...]]:
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
    return run, resolved(late)


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
