"""``/v1/runs/…`` and ``/v1/tree``: look at runs and change them (``spawn_routes`` starts them)."""

from collections.abc import AsyncIterator
from typing import Final

from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from subagents.api.answers import causes, event_building, log_pages, log_summary, run_building
from subagents.api.answers import status as statuses
from subagents.api.calls.auth import Caller
from subagents.api.calls.call import (
    answer,
    body_of,
    find_run,
    on_run,
    plan_id_of,
    query_of,
    while_connected,
)
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.run_search import (
    END_SORTS,
    SEARCH,
    SORTS,
    cursor_of,
    page_in,
    page_parameters,
    search_in,
    truncated_of,
)
from subagents.api.calls.services import Services, services_of
from subagents.api.wire import requests as wire
from subagents.api.wire.event_answers import Timeline, TimelineEvent, Why
from subagents.api.wire.log_answers import LogPage, LogSummary
from subagents.api.wire.parameters import flag, number, word
from subagents.api.wire.run_answers import (
    NextTime,
    RunDetail,
    RunForest,
    RunNode,
    RunPage,
    RunRow,
    RunState,
    RunStatus,
    StoredResult,
)
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, replace
from subagents.engine.runs.queries import TREE_NODES_MAX
from subagents.text import iso

OFFSET_MAX: Final = 10**9
RESULT_OFFSET_MAX: Final = 2**40
NEXT_MAX: Final = 3
LIST: Final = (
    *SEARCH,
    word("tree", "Only this run and those below it."),
    word("plan", "Only the steps of this plan: its id, a unique prefix of it, its name or last."),
    word("parent", "Only runs that this run spawned itself."),
    flag("roots", "Only runs that no other run spawned, each with counts of those below it."),
    flag("folded", "Of a plan only its first step, with counts of the other ones."),
    *page_parameters(limit=50, limit_max=1000, sorts=(*SORTS, *END_SORTS, *run_building.RANKS)),
)
FOREST: Final = (*SEARCH, *page_parameters(limit=50, limit_max=200))
RESULT_TEXT: Final = (
    number("offset", "From this byte on.", high=RESULT_OFFSET_MAX, default=0),
    number("limit", "At most this many bytes.", low=1, high=RESULT_OFFSET_MAX),
)
TIMELINE: Final = (
    number("afterSeq", "Only events behind this number.", high=OFFSET_MAX, default=0),
    number("limit", "At most so many.", low=1, high=1000, default=200),
)


# -- look ---------------------------------------------------------------------------------------


async def list_runs(request: Request) -> Response:
    """GET /v1/runs: newest first; an agent sees its own tree."""
    services, caller = services_of(request), Caller.of(request)
    query = query_of(request, LIST)
    where = page_in(query, search_in(query, now_ms=services.now_ms()))
    where = replace(where, top=query.flag("roots"), folded=query.flag("folded"))
    if "plan" in query:
        where = replace(where, steps_of=(await plan_id_of(services, query["plan"], caller),))
    if "parent" in query:
        where = replace(where, requester_run=(await find_run(services, query["parent"], caller)).id)
    if "tree" in query:
        where = replace(where, below=(await find_run(services, query["tree"], caller)).id)
    # Whoever may see the run above may see those below it; else an agent sees its own.
    elif "parent" not in query and not caller.is_operator:
        where = replace(where, requester=services.engine.queries.inbox_of(caller.session))
    as_of = services.as_of()
    now_ms, rank = services.now_ms(), run_building.RANKS.get(query.choice("sort"))
    found = await services.engine.queries.page(where, rank and (lambda run: rank(run, now_ms)))
    around = services.around()
    rows = [run_building.shown(RunRow, run, now_ms, around) for run in found.runs]
    if where.top or where.folded:
        steps = [(run, run.resolved.step) for run in found.runs if where.folded]
        plans = [run.id for run, step in steps if step is not None and step.plan == run.id]
        parents = [run.id for run in found.runs if run.children and run.id not in plans]
        # One count for the whole page: it is bounded for all rows together.
        counts = await services.engine.queries.below([*parents, *plans], plans)
        rows = [
            structs.replace(row, below=run_building.below(counts, RunId(row.run_id)))
            for row in rows
        ]
    # A damaged row does not say whose it is, so only the operator hears of it.
    aside = await services.engine.queries.set_aside() if caller.is_operator else ()
    return answer(
        RunPage(
            **as_of,
            truncated=truncated_of(found),
            next_cursor=cursor_of(found, by_end=where.by_end, ranked=rank is not None),
            runs=rows,
            total=found.total.number,
            total_is_bound=found.total.is_bound,
            hidden=found.hidden.number,
            hidden_is_bound=found.hidden.is_bound,
            limit=where.limit,
            offset=where.offset,
            set_aside=[each.name for each in aside],
            scheduled=await _next_times(services) if caller.is_operator else [],
        )
    )


async def _next_times(services: Services) -> list[NextTime]:
    parts = services.engine.parts.values()
    due = sorted([each for part in parts for each in await part.upcoming()])
    return [NextTime(name=name, next_at=iso(due_ms)) for due_ms, name in due[:NEXT_MAX]]


async def show(request: Request) -> Response:
    """GET /v1/runs/{sel}: everything, but at most 8,000 characters of the result."""
    services, _, run = await on_run(request)
    return answer(run_building.detail(run, services.now_ms(), services.around()))


async def status(request: Request) -> Response:
    """GET /v1/runs/{sel}/status: the row, and what its worker was last seen at."""
    services, _, run = await on_run(request)
    return answer(await statuses.status(services, run))


async def result(request: Request) -> Response:
    """GET /v1/runs/{sel}/result: the result and what proves it; of a long result the end."""
    _, _, run = await on_run(request)
    return answer(run_building.shown(StoredResult, run))


async def result_text(request: Request) -> Response:
    """GET /v1/runs/{sel}/result/text: the whole result as plain UTF-8, or a range of its bytes."""
    query = query_of(request, RESULT_TEXT)
    services, _, run = await on_run(request)
    size = services.engine.results.size(run)
    offset = query.number("offset")
    limit = query.number("limit") if "limit" in query else RESULT_OFFSET_MAX
    length = max(min(limit, size - offset), 0)
    pages = services.engine.results.pages(run, offset=offset, limit=limit)
    # Read before the answer begins: a file that is gone is an error, not a short body.
    first = await anext(pages, b"")

    async def body() -> AsyncIterator[bytes]:
        yield first
        async for page in pages:
            yield page

    return StreamingResponse(
        body(),
        media_type="text/plain; charset=utf-8",
        headers={"content-length": str(length), "x-subagents-result-bytes": str(size)},
    )


async def tree(request: Request) -> Response:
    """GET /v1/runs/{sel}/tree: the run and all below it."""
    services, _, run = await on_run(request)
    found = await services.engine.queries.tree(run.id, most=TREE_NODES_MAX)
    return answer(run_building.tree(found, services.now_ms(), services.around()))


async def roots(request: Request) -> Response:
    """GET /v1/tree: the trees whose root fits the search; an agent sees those it asked for."""
    services, caller = services_of(request), Caller.of(request)
    query = query_of(request, FOREST)
    where = page_in(query, search_in(query, now_ms=services.now_ms()))
    if not caller.is_operator:
        where = replace(where, requester=services.engine.queries.inbox_of(caller.session))
    # What one session asked for may be below another run, and is a root here all the same.
    where = replace(where, top=where.requester is None)
    as_of = services.as_of()
    trees, found = await services.engine.queries.roots(where)
    now_ms, around = services.now_ms(), services.around()
    return answer(
        RunForest(
            **as_of,
            truncated=truncated_of(found),
            next_cursor=cursor_of(found),
            roots=[run_building.tree(each, now_ms, around) for each in trees],
            hidden=found.hidden.number,
            hidden_is_bound=found.hidden.is_bound,
        )
    )


async def timeline(request: Request) -> Response:
    """GET /v1/runs/{sel}/timeline: a page of events, each with the phase after it."""
    services, _, run = await on_run(request)
    query = query_of(request, TIMELINE)
    after_seq, limit = query.number("afterSeq"), query.number("limit")
    events: list[TimelineEvent] = []
    next_seq = None
    async for each in causes.played_back(services, run.id):
        if len(events) == limit:
            next_seq = events[-1].seq
            break
        if each.entry.seq > after_seq:
            events.append(event_building.timeline_event(each))
    return answer(Timeline(run_id=run.id, events=events, next_seq=next_seq))


async def why(request: Request) -> Response:
    """GET /v1/runs/{sel}/why: one sentence for now, one line per event, every delivery try."""
    services, _, run = await on_run(request)
    return answer(await causes.why(services, run))


async def log(request: Request) -> Response:
    """GET /v1/runs/{sel}/log: lines of its transcript, or with ``summary=1`` a digest.

    With ``afterSeq`` and ``waitSeconds`` the line is held until there is something behind it.
    """
    services, caller, run = await on_run(request)
    asked = log_pages.asked_in(query_of(request, log_pages.PARAMETERS))
    if asked.summary:
        work = log_summary.summary(services, caller, run, asked)
        return answer(await while_connected(request, work))
    return answer(await while_connected(request, log_pages.log_page(services, run, asked)))


# -- change -------------------------------------------------------------------------------------


async def cancel(request: Request) -> Response:
    """POST /v1/runs/{sel}/cancel: the durable intent; a run that ended says so.

    With ``after`` it is planned, also over a restart; until then it can be taken back.
    """
    services, caller, run = await on_run(request)
    body = wire.parse_body(await body_of(request), wire.CancelBody)
    # Not an error: what was wanted is so.
    if run.is_settled:
        return answer(run_building.changed(run, "already ended"))
    run = await cancelled(services, caller, run, body)
    return answer(run_building.changed(run, "planned" if run.planned else "cancelling"))


async def cancelled(services: Services, caller: Caller, run: Run, body: wire.CancelBody) -> Run:
    """The run, cancelled as the body says: now, or after a time.

    Raises:
        UsageError: The time is none, or too long.
    """
    after_ms, by, reason = body.after_ms(), caller.session, body.reason
    if not after_ms:
        return await services.engine.control.cancel(run.id, by=by, reason=reason)
    return await services.engine.control.plan_cancel(
        run.id, by=by, after_ms=after_ms, reason=reason
    )


async def withdraw_cancel(request: Request) -> Response:
    """DELETE /v1/runs/{sel}/cancel: take a planned cancel back; harmless where there is none."""
    services, caller, run = await on_run(request)
    run = await services.engine.control.withdraw_cancel(run.id, by=caller.session)
    return answer(run_building.changed(run, "not cancelled"))


async def steer(request: Request) -> Response:
    """POST /v1/runs/{sel}/steer: a message for the worker, now or for its next turn."""
    services, caller, run = await on_run(request)
    body = wire.parse_body(await body_of(request), wire.SteerBody)
    taken = await services.engine.control.steer(
        run.id, body.message, by=caller.session, ceiling=caller.ceiling, added=body.added
    )
    return answer(run_building.changed(await services.engine.queries.run(run.id), taken))


async def pause(request: Request) -> Response:
    """POST /v1/runs/{sel}/pause."""
    services, caller, run = await on_run(request)
    return _row(services, await services.engine.control.pause(run.id, by=caller.session))


async def resume(request: Request) -> Response:
    """POST /v1/runs/{sel}/resume."""
    services, caller, run = await on_run(request)
    return _row(services, await services.engine.control.resume(run.id, by=caller.session))


async def prioritize(request: Request) -> Response:
    """POST /v1/runs/{sel}/priority: its place among those that wait for a slot."""
    services, caller, run = await on_run(request)
    body = wire.parse_body(await body_of(request), wire.PriorityBody)
    given = await services.engine.control.prioritize(run.id, body.priority, by=caller.session)
    return _row(services, given)


async def redeliver(request: Request) -> Response:
    """POST /v1/runs/{sel}/redeliver: give a result that was read, or given up, once more."""
    services, caller, run = await on_run(request)
    return _row(services, await services.engine.control.redeliver(run.id, by=caller.session))


async def dismiss(request: Request) -> Response:
    """POST /v1/runs/{sel}/dismiss: mark how it ended as read; its requester gets it anyway."""
    services, caller, run = await on_run(request)
    return _row(services, await services.engine.control.dismiss(run.id, by=caller.session))


async def withdraw_dismissal(request: Request) -> Response:
    """DELETE /v1/runs/{sel}/dismiss: how it ended is unread again."""
    services, caller, run = await on_run(request)
    control = services.engine.control
    return _row(services, await control.dismiss(run.id, by=caller.session, withdrawn=True))


def _row(services: Services, run: Run) -> Response:
    return answer(run_building.shown(RunRow, run, services.now_ms(), services.around()))


OPERATIONS: Final = {
    ("GET", "/v1/runs"): Operation(list_runs, query=LIST, answers=(RunPage,)),
    ("GET", "/v1/tree"): Operation(roots, query=FOREST, answers=(RunForest,)),
    ("GET", "/v1/runs/{sel}"): Operation(show, answers=(RunDetail,)),
    ("GET", "/v1/runs/{sel}/status"): Operation(status, answers=(RunStatus,)),
    ("GET", "/v1/runs/{sel}/result"): Operation(result, answers=(StoredResult,)),
    ("GET", "/v1/runs/{sel}/result/text"): Operation(
        result_text, query=RESULT_TEXT, media=("text/plain",)
    ),
    ("GET", "/v1/runs/{sel}/tree"): Operation(tree, answers=(RunNode,)),
    ("GET", "/v1/runs/{sel}/timeline"): Operation(timeline, query=TIMELINE, answers=(Timeline,)),
    ("GET", "/v1/runs/{sel}/why"): Operation(why, answers=(Why,)),
    ("GET", "/v1/runs/{sel}/log"): Operation(
        log, query=log_pages.PARAMETERS, answers=(LogPage, LogSummary)
    ),
    ("POST", "/v1/runs/{sel}/cancel"): Operation(cancel, body=wire.CancelBody, answers=(RunState,)),
    ("DELETE", "/v1/runs/{sel}/cancel"): Operation(withdraw_cancel, answers=(RunState,)),
    ("POST", "/v1/runs/{sel}/steer"): Operation(steer, body=wire.SteerBody, answers=(RunState,)),
    ("POST", "/v1/runs/{sel}/pause"): Operation(pause, answers=(RunRow,)),
    ("POST", "/v1/runs/{sel}/priority"): Operation(
        prioritize, body=wire.PriorityBody, answers=(RunRow,)
    ),
    ("POST", "/v1/runs/{sel}/resume"): Operation(resume, answers=(RunRow,)),
    ("POST", "/v1/runs/{sel}/redeliver"): Operation(redeliver, answers=(RunRow,)),
    ("POST", "/v1/runs/{sel}/dismiss"): Operation(dismiss, answers=(RunRow,)),
    ("DELETE", "/v1/runs/{sel}/dismiss"): Operation(withdraw_dismissal, answers=(RunRow,)),
}
ROUTES: Final = routes(OPERATIONS)
