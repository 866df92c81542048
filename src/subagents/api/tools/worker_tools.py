"""The tools of workers: report, show progress, notify and ask the requester.

A worker speaks for the run and the attempt that its token names, and for no other; none of these
tools takes a run id. Being too early is an answer (``rate_limited``), not an error: a model that
reads "error" tries again, one that reads "again in 12 s" continues its work.
"""

import asyncio
from typing import Annotated, Final

from msgspec import Meta

from subagents.api.answers import message_building
from subagents.api.calls.call import own_attempt
from subagents.api.tools.tool import Answer, Audience, Call, Tool
from subagents.api.tools.tool_schemas import schema
from subagents.api.wire import requests as wire
from subagents.api.wire.decoding import decode, one_of
from subagents.api.wire.run_answers import WorkerReport
from subagents.api.wire.wire_struct import Document, document_of, iso_or_none, made
from subagents.domain.run.run import Decision, Priority, Report, Request, Run
from subagents.domain.run.values import RequestId
from subagents.errors import Forbidden, NotFound, RateLimited, UsageError
from subagents.text import iso

ANSWER_WAIT_S: Final = 50.0
"""``request_orchestrator`` holds a call at most so long: many clients give up after 60 s."""
HEARD_WAIT_S: Final = 270.0
"""The same where the client hears that the call lives: each return costs a turn of a model, for
hours maybe, and providers keep what they have read of its context for five minutes."""
TELL_S: Final = 20.0
"""The pause between two signs of life of a call that waits."""


async def speaker(call: Call) -> Run:
    """The run on whose behalf the caller speaks.

    Raises:
        Forbidden: The caller is no worker.
        Conflict: Its attempt is over; another one is under way.
    """
    run_id = call.caller.run_id
    if run_id is None:
        raise Forbidden(
            f"{call.caller.session} is no worker: this tool speaks for the run that a worker's"
            " token (SUBAGENTS_TOKEN) names",
            guardrail="role",
        )
    return await own_attempt(call.services, run_id, call.caller)


# -- report_completion --------------------------------------------------------------------------


async def _report_completion(call: Call) -> Answer:
    run = await speaker(call)
    report = wire.report_of(call.arguments)
    await call.services.engine.reports.report(run.id, report)
    shown = made(WorkerReport, report)
    return Answer(
        text=f"Report stored ({report.status}). The last report counts; end your work now.",
        structured={
            "status": "stored",
            "runId": run.id,
            "report": document_of(shown),
        },
    )


# -- report_progress ----------------------------------------------------------------------------


async def _report_progress(call: Call) -> Answer:
    run = await speaker(call)
    progress = wire.progress_of(call.arguments, now_ms=call.services.now_ms())
    taken = await call.services.engine.reports.progress(run.id, progress)
    found = message_building.progress_taken(run, taken)
    text = f"Shown, {found.note}." if taken.is_latest_only else "Progress stored."
    if taken.retry_after_s is not None:
        text = f"Not stored: too soon, again in {taken.retry_after_s} s."
    return Answer(text=text, structured=document_of(found))


def _too_soon(error: RateLimited) -> Answer:
    document: Document = {"status": "rate_limited", "limit": error.limit}
    if error.retry_after_s is not None:
        document["retryAfterSeconds"] = error.retry_after_s
    again = "" if error.retry_after_s is None else f", again in {error.retry_after_s} s"
    return Answer(text=f"Not stored: {error.limit}{again}.", structured=document)


# -- notify_parent ------------------------------------------------------------------------------


async def _notify_parent(call: Call) -> Answer:
    run = await speaker(call)
    body = decode(dict(call.arguments), wire.NotifyBody)
    priority = one_of("priority", body.priority, [*Priority])
    try:
        await call.services.engine.questions.notify(run.id, body.message, priority=priority)
    except RateLimited as error:
        return _too_soon(error)
    return Answer(
        text=f"Told {run.requester} ({priority}).",
        structured={"status": "stored", "runId": run.id, "priority": priority},
    )


# -- request_orchestrator -----------------------------------------------------------------------


class _Ask(wire.Asking, frozen=True):
    question: Annotated[
        wire.Message | None, Meta(description="Required, except with requestId")
    ] = None
    request_id: Annotated[str | None, Meta(description="Go on waiting for this one")] = None


async def _request_orchestrator(call: Call) -> Answer:
    run = await speaker(call)
    asked = decode(dict(call.arguments), _Ask)
    if asked.request_id is not None:
        request_id = _own_request(run, asked.request_id)
    elif asked.question is None:
        raise UsageError("question is required", details={"field": "question"})
    else:
        try:
            request = await call.services.engine.questions.ask(
                run.id,
                asked.question,
                context=asked.context,
                options=asked.options,
                timeout_s=asked.timeout_seconds,
                default_answer=asked.default_answer,
                call_id=call.call_id,
            )
        except RateLimited as error:
            return _too_soon(error)
        request_id = request.id
    return _settled(await _answer_of(call, request_id))


def _own_request(run: Run, request_id: str) -> RequestId:
    """A question this run asked, by whichever of its attempts.

    Raises:
        NotFound: It asked none of that id.
    """
    for request in run.questions.requests:
        if request.id == request_id:
            return request.id
    raise NotFound(
        f"run {run.id} has asked no question {request_id!r}",
        hint="leave requestId out to ask anew",
    )


async def _answer_of(call: Call, request_id: RequestId) -> Request:
    loop = asyncio.get_running_loop()
    until = loop.time() + (HEARD_WAIT_S if call.hears_progress else ANSWER_WAIT_S)
    while True:
        left = max(until - loop.time(), 0.0)
        found = await call.services.engine.questions.answer_of(request_id, wait_s=min(left, TELL_S))
        if found.answer is not None or left <= TELL_S:
            return found
        await call.tell(f"no answer to {request_id} yet")


def _settled(request: Request) -> Answer:
    """How the question stands, in words for the model that asked it."""
    given = request.answer
    if given is None:
        return Answer(
            text=f"No answer yet. Call request_orchestrator again with requestId={request.id}.",
            structured={
                "status": "pending",
                "requestId": request.id,
                "deadlineAt": iso_or_none(request.deadline_ms),
            },
        )
    words = {
        Decision.DEFAULT: ("default", "Nobody answered in time; your default answer holds"),
        Decision.TIMEOUT: ("timeout", "Nobody answered in time, and there is no default answer"),
        Decision.CANCELLED: ("cancelled", "The question was withdrawn: the run is ending"),
        Decision.APPROVE: ("answered", "Approved"),
        Decision.DENY: ("answered", "Denied"),
        Decision.ANSWER: ("answered", "Answer"),
    }
    status, word = words[given.decision]
    return Answer(
        text=f"{word}: {given.text}" if given.text else f"{word}.",
        structured={
            "status": status,
            "requestId": request.id,
            "answer": given.text,
            "decision": given.decision,
            "answeredBy": given.by,
            "answeredAt": iso(given.at_ms),
        },
    )


# -- the table ----------------------------------------------------------------------------------

WORKER_TOOLS: Final[tuple[Tool, ...]] = (
    Tool(
        name="report_completion",
        description=(
            "Claim the end of your task: what was done and what is left. Make it your last tool"
            " call; the last report counts. Say partial or failed when that is the truth."
        ),
        schema=schema(Report),
        handler=_report_completion,
        audience=Audience.WORKER,
        idempotent=True,
    ),
    Tool(
        name="report_progress",
        description=(
            "Show how far you are; returns at once. At most one per 30 seconds, an earlier one is"
            " not stored."
        ),
        schema=schema(wire.ProgressBody),
        handler=_report_progress,
        audience=Audience.WORKER,
    ),
    Tool(
        name="notify_parent",
        description=(
            "Send your requester a one-way message. question and blocker mark you as blocked"
            " until it answers; to wait for the answer use request_orchestrator."
        ),
        schema=schema(wire.NotifyBody),
        handler=_notify_parent,
        audience=Audience.WORKER,
    ),
    Tool(
        name="request_orchestrator",
        description=(
            "Ask your requester and wait for the answer. Returns after at most 50 seconds; when"
            " status is pending, call again with requestId. At most 5 questions a minute, 3 open."
        ),
        schema=schema(_Ask),
        handler=_request_orchestrator,
        audience=Audience.WORKER,
    ),
)
