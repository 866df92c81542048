"""The questions of a run as they are answered, run out of time, or end with their attempt."""

from subagents.domain.run.run import Answer, Decision, Run
from subagents.domain.run.values import MessageId, replace


def answer(run: Run, request_id: str, given: Answer) -> Run:
    """The run with its question answered."""
    requests = tuple(
        replace(request, answer=given) if request.id == request_id else request
        for request in run.questions.requests
    )
    return replace(run, questions=replace(run.questions, requests=requests))


def expire(run: Run, at_ms: int) -> tuple[Run, tuple[MessageId, ...]]:
    """What passed its deadline gets its default answer, or none; also whose messages are over."""
    late = tuple(
        each
        for each in run.pending_requests
        if each.deadline_ms is not None and each.deadline_ms <= at_ms
    )
    for request in late:
        decision = Decision.TIMEOUT if request.default_answer is None else Decision.DEFAULT
        given = Answer(decision=decision, text=request.default_answer, by="deadline", at_ms=at_ms)
        run = answer(run, request.id, given)
    return run, tuple(MessageId(request.id) for request in late)


def close(run: Run, at_ms: int) -> tuple[Run, tuple[MessageId, ...]]:
    """The attempt is over: nobody waits for answers any more; returns whose messages are over."""
    pending = run.pending_requests
    for request in pending:
        given = Answer(decision=Decision.CANCELLED, text=None, by="attempt ended", at_ms=at_ms)
        run = answer(run, request.id, given)
    # A notice that nobody read is news still: it may say why the attempt ended.
    questions = tuple(request for request in pending if request.priority is None)
    return run, tuple(MessageId(request.id) for request in questions)
