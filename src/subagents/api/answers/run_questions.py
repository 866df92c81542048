"""Workers' questions from the requester's side: find one, answer it, once."""

from collections.abc import Mapping
from typing import Final

from subagents.api.answers import message_building
from subagents.api.calls.auth import Caller
from subagents.api.calls.call import require_own
from subagents.api.calls.services import Services
from subagents.api.wire import requests as wire
from subagents.api.wire.message_answers import WorkerRequest
from subagents.domain.lifecycle import open_questions
from subagents.domain.rules import ceilings
from subagents.domain.rules.continuation import way_on
from subagents.domain.run.run import Decision, Run
from subagents.domain.run.values import RequestId, RunId
from subagents.errors import AlreadyAnswered, Forbidden, NotFound, UsageError

ANSWERED_BEFORE: Final = "already answered"
_OVER: Final[Mapping[str | None, str]] = {
    Decision.CANCELLED: "was withdrawn when its attempt ended",
    Decision.TIMEOUT: "was not answered in time, and its worker was told so",
}


def answered_before(found: WorkerRequest, run: Run) -> AlreadyAnswered:
    """The refusal of an answer to a question that has one, or is over; the run asked it."""
    became = _OVER.get(found.decision, f"was answered before, by {found.by}")
    on = way_on(run) if run.is_settled else f"tell its worker: subagents steer {run.id} TEXT"
    return AlreadyAnswered(
        f"request {found.request_id} {became}: yours changed nothing",
        hint=on,
        details={
            "requestId": found.request_id,
            "runId": found.run_id,
            "by": found.by,
            "answeredAt": found.answered_at,
            "decision": found.decision,
            "answer": found.answer,
        },
    )


async def asking_run(services: Services, caller: Caller, request_id: str) -> Run:
    """The run that asked, when the caller may see it.

    Raises:
        NotFound: No such question.
        Forbidden: It is in somebody else's tree.
    """
    # A question's id begins with its run's: ``<runId>:q<n>``.
    run_id = RunId(request_id.rpartition(":")[0])
    try:
        run = await services.engine.queries.run(run_id)
    except NotFound as error:
        raise NotFound(
            f"request {request_id} does not exist", hint="see: subagents inbox --attention"
        ) from error
    await require_own(services, run, caller)
    return run


async def respond(
    services: Services,
    caller: Caller,
    request_id: str,
    body: wire.RespondBody,
    *,
    is_person: bool = False,
) -> WorkerRequest:
    """Answer a worker's question; the first answer counts, and the status says so to the second.

    Args:
        services: The daemon's.
        caller: Who answers.
        request_id: The question.
        body: The answer.
        is_person: Whether a person typed it into a form of the caller's client.

    Raises:
        NotFound: No such question.
        Forbidden: Somebody else's tree, or the worker's own question.
        UsageError: An unknown decision, or none where one is asked for.
    """
    run = await asking_run(services, caller, request_id)
    if not caller.is_operator and caller.session in run.session_keys:
        raise Forbidden("a worker cannot answer its own question", guardrail="ownership")
    decision = wire.parse_decision(body.decision)
    for each in run.questions.requests:
        if each.id != request_id or not each.permits:
            continue
        # A yes lets it do what it may: whoever says so must be allowed that, too.
        may, at = run.resolved.access, run.resolved.project
        ceilings.check_message(may, caller.ceiling, run_id=run.id, cwd=at)
        is_standing = open_questions.allowed_call(each, body.response, decision) is not None
        if is_standing and not caller.is_operator:
            raise Forbidden(
                "only the user can allow a call for all runs of an agent",
                guardrail="access",
                hint='answer "once", "for this run" or "deny"; or tell the user: '
                f"subagents answer {request_id} '{open_questions.FOR_AGENT}'",
            )
    approval = run.approval
    if approval is not None and approval.id == request_id:
        if not (caller.is_operator or is_person):
            raise Forbidden(
                "only the user can allow a run more than its requester may do",
                guardrail="access",
                hint=f"tell the user: subagents answer {request_id} --decision approve",
            )
        if decision is Decision.ANSWER and body.response.strip().lower() in approval.options:
            decision = Decision(body.response.strip().lower())
        if decision is Decision.ANSWER:
            # Other words would be taken for a no, also a "yes".
            raise UsageError(
                f"request {request_id} wants a decision, not an answer in words",
                hint=f"subagents answer {request_id} --decision approve, or --decision deny",
                details={"field": "decision"},
            )
    taken = await services.engine.questions.answer(
        RequestId(request_id), body.response, decision=decision, by=caller.session
    )
    status = "answered" if taken else ANSWERED_BEFORE
    return await request_answer(services, request_id, wait_s=0.0, status=status)


async def request_answer(
    services: Services, request_id: str, *, wait_s: float, status: str | None = None
) -> WorkerRequest:
    """The question as it stands, after waiting at most ``wait_s`` seconds for its answer."""
    found = await services.engine.questions.answer_of(RequestId(request_id), wait_s=wait_s)
    run = await services.engine.queries.run(RunId(request_id.rpartition(":")[0]))
    return message_building.request(run, found, services.around(), status=status)
