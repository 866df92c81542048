"""Messages between a run and its requester: wait, inbox, questions, reports."""

from collections.abc import Callable, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from subagents.api.answers import message_building, run_building, run_questions
from subagents.api.calls.auth import Caller, note_if_refused
from subagents.api.calls.call import (
    answer,
    body_of,
    find_run,
    on_run,
    own_attempt,
    path_part,
    query_of,
    require_own,
    resolve,
    while_connected,
)
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.services import Services, services_of
from subagents.api.routes.daemon_routes import channels_of
from subagents.api.wire import requests as wire
from subagents.api.wire.decoding import one_of, parse_object
from subagents.api.wire.listing import Truncated
from subagents.api.wire.message_answers import (
    Acknowledged,
    Attention,
    Inbox,
    Message,
    ProgressLog,
    Taken,
    WorkerRequest,
)
from subagents.api.wire.parameters import flag, number
from subagents.api.wire.run_answers import RunResult, RunState, WaitError, WaitResult
from subagents.api.wire.usage_answers import RequestHold
from subagents.api.wire.wire_struct import made
from subagents.domain.rules.budgets.request_holds import Counted, Need
from subagents.domain.run import run as domain
from subagents.domain.run.run import Priority, Report, Run
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import MessageId, RunId
from subagents.domain.text.announcement import ANSWER_SUFFIX
from subagents.errors import Elsewhere, Forbidden, SubagentsError
from subagents.ports import InboxRow

INBOX: Final = (
    flag("all", "Read messages, too."),
    number("limit", "At most so many.", low=1, high=wire.INBOX_LIMIT_MAX, default=200),
)
ANSWER: Final = (
    number("waitSeconds", "Hold the line for an answer.", high=wire.WAIT_SECONDS_MAX, default=0),
)


# -- for requesters -----------------------------------------------------------------------------


async def wait(request: Request) -> Response:
    """POST /v1/wait: hold the line until any or all of the runs ended, at most 600 s.

    Never an error on timeout. What ended is offered to the reader of this call; acknowledging
    consumes it.
    """
    services, caller = services_of(request), Caller.of(request)
    body = wire.parse_body(await body_of(request), wire.WaitBody)
    until = one_of("until", body.until, wire.UNTIL)
    run_ids: list[RunId] = []
    errors: list[WaitError] = []
    for selector in dict.fromkeys(body.run_ids):
        try:
            run_ids.append((await find_run(services, selector, caller)).id)
        except Elsewhere:
            raise
        except SubagentsError as error:
            note_if_refused(request, error)
            errors.append(WaitError(run_id=selector, error=error.message))
    # An empty list would mean all of the session's runs.
    if body.run_ids and not run_ids:
        return answer(WaitResult(errors=errors))
    found = await while_connected(
        request,
        services.engine.mailbox.wait(
            run_ids,
            session=caller.session,
            until=until,
            timeout_s=body.timeout_seconds,
            reader=caller.reader,
            returns_on_needs=body.returns_on_needs,
        ),
        unwanted=lambda found: services.engine.mailbox.release(found.offered, reader=caller.reader),
    )
    # Before the answer leaves: a worker may end before it can acknowledge what it has read.
    await services.engine.mailbox.note_returned(found.offered, session=caller.session)
    services.engine.mailbox.note_told((each.id for each in found.needs), session=caller.session)
    now_ms = services.now_ms()
    errors += [WaitError(run_id=each, error=f"run {each} does not exist") for each in found.missing]
    return answer(
        WaitResult(
            completed=[run_building.shown(RunResult, run) for run in found.completed],
            pending=[
                run_building.shown(RunState, run, now_ms, status=None) for run in found.pending
            ],
            errors=errors,
            needs=[message_building.need(each) for each in found.needs],
            messages=list(found.offered),
        )
    )


async def take_inbox(request: Request) -> Response:
    """POST /v1/inbox: offer unread messages to this reader; acknowledging consumes them."""
    services, caller = services_of(request), Caller.of(request)
    body = wire.parse_body(await body_of(request), wire.InboxBody)
    as_of = services.as_of()
    rows = await services.engine.mailbox.offer_inbox(
        caller.session, reader=caller.reader, limit=body.limit, only=body.message_ids
    )
    ids = [row.message.id for row in rows]
    await services.engine.mailbox.note_returned(ids, session=caller.session)
    return answer(Inbox(**as_of, messages=await _messages(services, rows)))


async def look_at_inbox(request: Request) -> Response:
    """GET /v1/inbox: unread messages, with ``all=1`` the read ones too; takes nothing.

    ``awaited`` marks what a call under way, or a client that polls, is about to bring.
    """
    services, caller = services_of(request), Caller.of(request)
    query = query_of(request, INBOX)
    limit, is_all = query.number("limit"), query.flag("all")
    session = services.engine.queries.inbox_of(caller.session)
    as_of = services.as_of()
    rows = await services.engine.queries.inbox(session, unconsumed=not is_all, limit=limit + 1)
    truncated = None
    if len(rows) > limit:
        # Of all messages the newest are shown, of unread ones the oldest; how many more is unknown.
        rows = rows[-limit:] if is_all else rows[:limit]
        truncated = Truncated(shown=limit, total=limit, total_is_bound=True)
    found = await _messages(services, rows, is_awaited=services.engine.mailbox.is_under_way)
    return answer(Inbox(**as_of, truncated=truncated, messages=found))


async def _messages(
    services: Services,
    rows: Sequence[InboxRow],
    *,
    is_awaited: Callable[[domain.Message], bool] = lambda _: False,
) -> list[Message]:
    # A message outlives a run that is set aside.
    runs = await services.engine.queries.these([row.message.run_id for row in rows])
    return [
        message_building.message(row, runs.get(row.message.run_id), awaited=is_awaited(row.message))
        for row in rows
    ]


async def acknowledge(request: Request) -> Response:
    """POST /v1/inbox/ack: consume messages, and give others back; repeating is harmless."""
    services, caller = services_of(request), Caller.of(request)
    body = wire.parse_body(await body_of(request), wire.AckBody)
    message_ids = [MessageId(each) for each in body.message_ids]
    if not caller.is_operator:
        for run_id, is_answer in dict.fromkeys(map(_about, message_ids)):
            run = await services.engine.queries.run(run_id)
            if is_answer and caller.session in run.session_keys:
                continue  # the only kind of message about a run that is for its own worker
            await require_own(services, run, caller)
            if caller.session in run.session_keys:
                raise Forbidden("a worker cannot read what it said", guardrail="ownership")
    consumed = await services.engine.mailbox.acknowledge(message_ids, reader=caller.reader)
    services.engine.mailbox.release(map(MessageId, body.release), reader=caller.reader)
    return answer(Acknowledged(consumed=consumed))


def _about(message_id: MessageId) -> tuple[RunId, bool]:
    """Which run a message is about, and whether it is an answer to that run's worker."""
    return RunId(message_id.partition(":")[0]), message_id.endswith(ANSWER_SUFFIX)


async def attention(request: Request) -> Response:
    """GET /v1/attention: what needs a person; the operator sees everybody's."""
    services, caller = services_of(request), Caller.of(request)
    as_of = services.as_of()
    found = await services.engine.queries.attention(
        None if caller.is_operator else services.engine.queries.inbox_of(caller.session)
    )
    around = services.around()
    asked = [(each.run, each.request) for each in found if each.request is not None]
    return answer(
        Attention(
            **as_of,
            items=[message_building.attention_item(each) for each in found],
            requests=[message_building.request(run, value, around) for run, value in asked],
            channels=[each for each in channels_of(services) if each.problem is not None]
            if caller.is_operator
            else [],
        )
    )


async def respond(request: Request) -> Response:
    """POST /v1/requests/{id}/respond: the first answer counts.

    A later one is a conflict, whose details say who answered, when and what; but not the same
    answer once more, from a client that did not hear of its success.
    """
    services, caller = services_of(request), Caller.of(request)
    request_id = path_part(request, "id")
    run = await run_questions.asking_run(services, caller, request_id)
    body = wire.parse_body(await body_of(request), wire.RespondBody)
    found = await run_questions.respond(services, caller, request_id, body)
    is_same = (found.by, found.answer) == (caller.session, body.response)
    is_same = is_same and body.decision in {found.decision, "answer"}  # one may be typed as text
    if found.status == run_questions.ANSWERED_BEFORE and not is_same:
        raise run_questions.answered_before(found, run)
    return answer(found)


# -- for workers --------------------------------------------------------------------------------


async def ask(request: Request) -> Response:
    """POST /v1/requests: a question for the requester, durable on return."""
    services, caller = services_of(request), Caller.of(request)
    body = wire.parse_body(await body_of(request), wire.AskBody)
    run_id = await resolve(services, body.run_id, caller)
    run = await own_attempt(services, run_id, caller)
    await services.engine.reports.tool_used(run.id, len(run.attempts), "request_orchestrator")
    asked = await services.engine.questions.ask(
        run.id,
        body.question,
        context=body.context,
        options=body.options,
        timeout_s=body.timeout_seconds,
        default_answer=body.default_answer,
    )
    return answer(message_building.request(run, asked, services.around()), status=201)


async def answer_of(request: Request) -> Response:
    """GET /v1/requests/{id}: the question, after waiting ``waitSeconds`` for its answer."""
    services, caller = services_of(request), Caller.of(request)
    query = query_of(request, ANSWER)
    wait_s = float(query.number("waitSeconds"))
    request_id = path_part(request, "id")
    await run_questions.asking_run(services, caller, request_id)
    waiting = run_questions.request_answer(services, request_id, wait_s=wait_s)
    return answer(await while_connected(request, waiting))


async def report(request: Request) -> Response:
    """POST /v1/runs/{sel}/report: the worker's claim of completion; the last one counts."""
    services, _, run = await _spoken_for(request)
    await services.engine.reports.report(
        run.id, wire.report_of(parse_object(await body_of(request)))
    )
    return answer(Taken(run_id=run.id, status="stored"))


async def progress(request: Request) -> Response:
    """POST /v1/runs/{sel}/progress: at most one per 30 s; being too early is no error."""
    services, _, run = await _spoken_for(request)
    given = wire.progress_of(parse_object(await body_of(request)), now_ms=services.now_ms())
    await services.engine.reports.tool_used(run.id, len(run.attempts), "report_progress")
    taken = await services.engine.reports.progress(run.id, given)
    return answer(message_building.progress_taken(run, taken))


async def progress_of(request: Request) -> Response:
    """GET /v1/runs/{sel}/progress: the updates that were kept, oldest first, at most 100."""
    services, _, run = await on_run(request)
    query_of(request, ())
    found = await services.engine.reports.progress_of(run.id)
    return answer(
        ProgressLog(
            run_id=run.id,
            latest=message_building.progress(run.progress.latest),
            updates=[message_building.progress_update(each) for each in found],
        )
    )


async def notify(request: Request) -> Response:
    """POST /v1/runs/{sel}/notify: one way, into the requester's inbox."""
    services, _, run = await _spoken_for(request)
    body = wire.parse_body(await body_of(request), wire.NotifyBody)
    priority = one_of("priority", body.priority, [*Priority])
    await services.engine.reports.tool_used(run.id, len(run.attempts), "notify_parent")
    await services.engine.questions.notify(run.id, body.message, priority=priority)
    able = run.resolved.abilities
    reads_inbox = priority != "info" and not (able.steer or able.resume)
    note = "an answer comes into your inbox: subagents inbox" if reads_inbox else None
    return answer(Taken(run_id=run.id, status="stored", note=note))


async def hold(request: Request) -> Response:
    """POST /v1/runs/{sel}/hold: before a request to the model; holds the line up to 20 s."""
    services, caller, run = await _spoken_for(request)
    body = wire.parse_body(await body_of(request), wire.HoldBody)
    # The operator may ask in a worker's place, and then means the newest attempt.
    number = len(run.attempts) if caller.attempt is None else caller.attempt
    need, counted = made(Need, body), made(Counted, body, usage=made(Usage, body))
    waiting = services.engine.request_desk.hold(run.id, number, need, counted, is_firm=body.firm)
    found = await while_connected(request, waiting)
    return answer(made(RequestHold, found, limited=found.is_limited))


async def _spoken_for(request: Request) -> tuple[Services, Caller, Run]:
    services, caller = services_of(request), Caller.of(request)
    run_id = await resolve(services, path_part(request, "sel"), caller)
    return services, caller, await own_attempt(services, run_id, caller)


OPERATIONS: Final = {
    ("POST", "/v1/wait"): Operation(wait, body=wire.WaitBody, answers=(WaitResult,)),
    ("POST", "/v1/inbox"): Operation(take_inbox, body=wire.InboxBody, answers=(Inbox,)),
    ("GET", "/v1/inbox"): Operation(look_at_inbox, query=INBOX, answers=(Inbox,)),
    ("POST", "/v1/inbox/ack"): Operation(acknowledge, body=wire.AckBody, answers=(Acknowledged,)),
    ("GET", "/v1/attention"): Operation(attention, answers=(Attention,)),
    ("POST", "/v1/requests"): Operation(
        ask, body=wire.AskBody, status=201, answers=(WorkerRequest,)
    ),
    ("GET", "/v1/requests/{id}"): Operation(answer_of, query=ANSWER, answers=(WorkerRequest,)),
    ("POST", "/v1/requests/{id}/respond"): Operation(
        respond, body=wire.RespondBody, answers=(WorkerRequest,)
    ),
    ("POST", "/v1/runs/{sel}/report"): Operation(report, body=Report, answers=(Taken,)),
    ("POST", "/v1/runs/{sel}/progress"): Operation(
        progress, body=wire.ProgressBody, answers=(Taken,)
    ),
    ("GET", "/v1/runs/{sel}/progress"): Operation(progress_of, answers=(ProgressLog,)),
    ("POST", "/v1/runs/{sel}/notify"): Operation(notify, body=wire.NotifyBody, answers=(Taken,)),
    ("POST", "/v1/runs/{sel}/hold"): Operation(hold, body=wire.HoldBody, answers=(RequestHold,)),
}
ROUTES: Final = routes(OPERATIONS)
