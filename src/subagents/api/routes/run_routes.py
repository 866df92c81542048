"""``/v1/runs/…`` and ``/v1/tree``: look at runs and change them (``spawn_routes`` starts them)."""

from collections.abc import AsyncIterator
from typing import Final

from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from subagents.api.answers import (
    causes,
    event_building,
    explain,
    log_pages,
    log_summary,
    run_building,
)
from subagents.api.answers import status as statuses
from subagents.api.calls.auth import Caller
from subagents.api.calls.call import (
    answer,
    body_of,
    find_run,
    flag_in,
    number_in,
    plan_id_of,
    query_of,
    run_of,
    while_connected,
)
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
from subagents.api.wire.event_answers import Timeline, TimelineEvent
from subagents.api.wire.parameters import flag, number, word
from subagents.api.wire.run_answers import NextTime, RunForest, RunPage, RunRow, StoredResult
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, replace
from subagents.engine.runs.queries import TREE_NODES_MAX
from subagents.text import iso

LIST_LIMIT_MAX: Final = 1000
LIST_LIMIT: Final = 50
ROOTS_LIMIT_MAX: Final = 200
ROOTS_LIMIT: Final = 50
OFFSET_MAX: Final = 10**9
RESULT_OFFSET_MAX: Final = 2**40
NEXT_MAX: Final = 3
TIMELINE_LIMIT: Final = 200
TIMELINE_LIMIT_MAX: Final = 1000
LIST_SORTS: Final = (*SORTS, *END_SORTS)
LIST: Final = (
    *SEARCH,
    word("tree", "Only this run and those below it."),
    word("plan", "Only the steps of this plan: its id, a unique prefix of it, its name or last."),
    word("parent", "Only runs that this run spawned itself."),
    flag("roots", "Only runs that no other run spawned, each with counts of those below it."),
    *page_parameters(limit=LIST_LIMIT, limit_max=LIST_LIMIT_MAX, sorts=LIST_SORTS),
)
FOREST: Final = (*SEARCH, *page_parameters(limit=ROOTS_LIMIT, limit_max=ROOTS_LIMIT_MAX))
RESULT_TEXT: Final = (
    number("offset", "From this byte on.", high=RESULT_OFFSET_MAX, default=0),
    number("limit", "At most this many bytes.", low=1, high=RESULT_OFFSET_MAX, default=None),
)
TIMELINE: Final = (
    number("afterSeq", "Only events behind this number.", high=OFFSET_MAX, default=0),
    number("limit", "At most so many.", low=1, high=TIMELINE_LIMIT_MAX, default=TIMELINE_LIMIT),
)


# -- look ---------------------------------------------------------------------------------------


async def list_runs(request: Request) -> Response:
    """GET /v1/runs: newest first; an agent sees its own tree."""
    services, caller = services_of(request), Caller.of(request)
    query = query_of(request, LIST)
    where = page_in(
        query,
        search_in(query, now_ms=services.now_ms()),
        limit=LIST_LIMIT,
        limit_max=LIST_LIMIT_MAX,
        sorts=LIST_SORTS,
    )
    where = replace(where, top=flag_in(query, "roots"))
    if "plan" in query:
        where = replace(where, steps_of=(await plan_id_of(services, query["plan"], caller),))
    if "parent" in query:
        where = replace(where, requester_run=(await find_run(services, query["parent"], caller)).id)
    if "tree" in query:
        where = replace(where, below=(await find_run(services, query["tree"], caller)).id)
    elif "parent" not in query and not caller.is_operator:
        where = replace(where, requester=services.engine.queries.inbox_of(caller.session))
    as_of = services.as_of()
    found = await services.engine.queries.page(where)
    now_ms, around = services.now_ms(), services.around()
    rows = [run_building.shown(RunRow, run, now_ms, around) for run in found.runs]
    if where.top:
        parents = [run.id for run in found.runs if run.children]
        counts = await services.engine.queries.below(parents)
        rows = [
            structs.replace(row, below=run_building.below(counts, RunId(row.run_id)))
            for row in rows
        ]
    # Nobody knows whose they were.
    aside = await services.engine.queries.set_aside() if caller.is_operator else ()
    return answer(
        RunPage(
            **as_of,
            truncated=truncated_of(found),
            next_cursor=cursor_of(found, by_end=where.by_end),
            runs=rows,
            total=found.total.number,
            total_is_bound=found.total.is_bound,
            hidden=found.hidden.number,
            hidden_is_bound=found.hidden.is_bound,
            limit=where.limit,
            offset=where.offset,
            set_aside=[each.name for each in aside],
            scheduled=_next_times(services) if caller.is_operator else [],
        )
    )


def _next_times(services: Services) -> list[NextTime]:
    parts = services.engine.parts.values()
    due = sorted(each for part in parts for each in part.upcoming)
    return [NextTime(name=name, next_at=iso(due_ms)) for due_ms, name in due[:NEXT_MAX]]


async def show(request: Request) -> Response:
    """GET /v1/runs/{sel}: everything, but at most 4,000 characters of the result."""
    services = services_of(request)
    run = await run_of(request, Caller.of(request))
    return answer(run_building.detail(run, services.now_ms(), services.around()))


async def status(request: Request) -> Response:
    """GET /v1/runs/{sel}/status: the row, and what its worker was last seen at."""
    run = await run_of(request, Caller.of(request))
    return answer(await statuses.status(services_of(request), run))


async def result(request: Request) -> Response:
    """GET /v1/runs/{sel}/result: the result and what proves it; of a long result the end."""
    return answer(run_building.shown(StoredResult, await run_of(request, Caller.of(request))))


async def result_text(request: Request) -> Response:
    """GET /v1/runs/{sel}/result/text: the whole result as plain UTF-8, or a range of its bytes."""
    services = services_of(request)
    query = query_of(request, RESULT_TEXT)
    run = await run_of(request, Caller.of(request))
    size = services.engine.results.size(run)
    offset = number_in(query, "offset", default=0, high=RESULT_OFFSET_MAX)
    limit = number_in(query, "limit", default=RESULT_OFFSET_MAX, low=1, high=RESULT_OFFSET_MAX)
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
    services = services_of(request)
    run = await run_of(request, Caller.of(request))
    found = await services.engine.queries.tree(run.id, most=TREE_NODES_MAX)
    return answer(run_building.tree(found, services.now_ms(), services.around()))


async def roots(request: Request) -> Response:
    """GET /v1/tree: the trees whose root fits the search; an agent sees those it asked for."""
    services, caller = services_of(request), Caller.of(request)
    query = query_of(request, FOREST)
    where = page_in(
        query,
        search_in(query, now_ms=services.now_ms()),
        limit=ROOTS_LIMIT,
        limit_max=ROOTS_LIMIT_MAX,
    )
    if not caller.is_operator:
        where = replace(where, requester=services.engine.queries.inbox_of(caller.session))
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
    services = services_of(request)
    run = await run_of(request, Caller.of(request))
    query = query_of(request, TIMELINE)
    after_seq = number_in(query, "afterSeq", default=0, high=OFFSET_MAX)
    limit = number_in(query, "limit", default=TIMELINE_LIMIT, low=1, high=TIMELINE_LIMIT_MAX)
    events: list[TimelineEvent] = []
    folded: Run | None = None
    seq = 0
    # A phase is known only from the events before it, so every page folds from the start; one
    # page of the journal is in memory at a time.
    while len(events) <= limit:
        page = await services.engine.queries.journal(
            run.id, after_seq=seq, limit=causes.JOURNAL_PAGE
        )
        if not page:
            break
        seq = page[-1].seq
        for each in explain.fold(page, folded):
            folded = each.run
            if each.entry.seq > after_seq and len(events) <= limit:
                events.append(event_building.timeline_event(each))
    more = len(events) > limit
    shown = events[:limit]
    next_seq = shown[-1].seq if more else None
    return answer(Timeline(run_id=run.id, events=shown, next_seq=next_seq))


async def why(request: Request) -> Response:
    """GET /v1/runs/{sel}/why: one sentence for now, one line per event, every delivery try."""
    services = services_of(request)
    run = await run_of(request, Caller.of(request))
    return answer(await causes.why(services, run))


async def log(request: Request) -> Response:
    """GET /v1/runs/{sel}/log: lines of its transcript, or with ``summary=1`` a digest.

    With ``afterSeq`` and ``waitSeconds`` the line is held until there is something behind it.
    """
    services, caller = services_of(request), Caller.of(request)
    run = await run_of(request, caller)
    asked = log_pages.asked_in(query_of(request, log_pages.PARAMETERS))
    if asked.summary:
        work = log_summary.summary(services, caller, run, asked)
        return answer(await while_connected(request, services, work))
    return answer(
        await while_connected(request, services, log_pages.log_page(services, run, asked))
    )


# -- change -------------------------------------------------------------------------------------


async def cancel(request: Request) -> Response:
    """POST /v1/runs/{sel}/cancel: the durable intent; a run that ended says so.

    With ``after`` it is planned, also over a restart; until then it can be taken back.
    """
    services, caller = services_of(request), Caller.of(request)
    run = await run_of(request, caller)
    body = wire.parse_body(await body_of(request), wire.CancelBody)
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
    services, caller = services_of(request), Caller.of(request)
    run = await run_of(request, caller)
    run = await services.engine.control.withdraw_cancel(run.id, by=caller.session)
    return answer(run_building.changed(run, "not cancelled"))


async def steer(request: Request) -> Response:
    """POST /v1/runs/{sel}/steer: a message for the worker, now or for its next turn."""
    services, caller = services_of(request), Caller.of(request)
    run = await run_of(request, caller)
    body = wire.parse_body(await body_of(request), wire.SteerBody)
    taken = await services.engine.control.steer(
        run.id, body.message, by=caller.session, ceiling=caller.ceiling
    )
    return answer(run_building.changed(await services.engine.queries.run(run.id), taken))


async def pause(request: Request) -> Response:
    """POST /v1/runs/{sel}/pause."""
    services, caller = services_of(request), Caller.of(request)
    run = await run_of(request, caller)
    return _row(services, await services.engine.control.pause(run.id, by=caller.session))


async def resume(request: Request) -> Response:
    """POST /v1/runs/{sel}/resume."""
    services, caller = services_of(request), Caller.of(request)
    run = await run_of(request, caller)
    return _row(services, await services.engine.control.resume(run.id, by=caller.session))


async def prioritize(request: Request) -> Response:
    """POST /v1/runs/{sel}/priority: its place among those that wait for a slot."""
    services, caller = services_of(request), Caller.of(request)
    run = await run_of(request, caller)
    body = wire.parse_body(await body_of(request), wire.PriorityBody)
    given = await services.engine.control.prioritize(run.id, body.priority, by=caller.session)
    return _row(services, given)


async def redeliver(request: Request) -> Response:
    """POST /v1/runs/{sel}/redeliver: give a result that was read, or given up, once more."""
    services, caller = services_of(request), Caller.of(request)
    run = await run_of(request, caller)
    return _row(services, await services.engine.control.redeliver(run.id, by=caller.session))


async def dismiss(request: Request) -> Response:
    """POST /v1/runs/{sel}/dismiss: its escalation was dealt with; take it from attention."""
    services, caller = services_of(request), Caller.of(request)
    run = await run_of(request, caller)
    return _row(services, await services.engine.control.dismiss(run.id, by=caller.session))


def _row(services: Services, run: Run) -> Response:
    return answer(run_building.shown(RunRow, run, services.now_ms(), services.around()))


ROUTES: Final = (
    Route("/v1/runs", list_runs, methods=["GET"]),
    Route("/v1/tree", roots, methods=["GET"]),
    Route("/v1/runs/{sel}", show, methods=["GET"]),
    Route("/v1/runs/{sel}/status", status, methods=["GET"]),
    Route("/v1/runs/{sel}/result", result, methods=["GET"]),
    Route("/v1/runs/{sel}/result/text", result_text, methods=["GET"]),
    Route("/v1/runs/{sel}/tree", tree, methods=["GET"]),
    Route("/v1/runs/{sel}/timeline", timeline, methods=["GET"]),
    Route("/v1/runs/{sel}/why", why, methods=["GET"]),
    Route("/v1/runs/{sel}/log", log, methods=["GET"]),
    Route("/v1/runs/{sel}/cancel", cancel, methods=["POST"]),
    Route("/v1/runs/{sel}/cancel", withdraw_cancel, methods=["DELETE"]),
    Route("/v1/runs/{sel}/steer", steer, methods=["POST"]),
    Route("/v1/runs/{sel}/pause", pause, methods=["POST"]),
    Route("/v1/runs/{sel}/priority", prioritize, methods=["POST"]),
    Route("/v1/runs/{sel}/resume", resume, methods=["POST"]),
    Route("/v1/runs/{sel}/redeliver", redeliver, methods=["POST"]),
    Route("/v1/runs/{sel}/dismiss", dismiss, methods=["POST"]),
)
