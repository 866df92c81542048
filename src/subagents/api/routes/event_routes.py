"""``GET /v1/events``: what happens to runs, as it happens, from any number on; and past alerts.

Server-sent events for browsers and ``curl``; a client that accepts only ``application/json`` gets
one page at a time by long poll, from the same place. Either continues behind the last number it has
seen, also with the next daemon.

See docs/events.md.
"""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from subagents.api.answers import event_building, run_building
from subagents.api.calls.auth import Caller
from subagents.api.calls.call import (
    Query,
    answer,
    find_run,
    query_of,
    while_connected,
    whole_number,
)
from subagents.api.calls.operation import JSON, Operation, routes
from subagents.api.calls.services import Services, services_of
from subagents.api.wire.event_answers import AlertHistory, EventPage
from subagents.api.wire.parameters import choice, choices, flag, number, word
from subagents.api.wire.run_answers import RunRow
from subagents.domain.run.alert import AlertKind
from subagents.domain.run.run import Run
from subagents.domain.transcript.feed_entry import NAMES, NEWS, ROW, FeedDocument
from subagents.engine.runs.feed import Follower, Scope
from subagents.errors import Unavailable, UsageError

HEARTBEAT_S: Final = 15.0
"""Shorter than the patience of proxies; also how a client that went away unnoticed is noticed."""
RECONNECT_MS: Final = 1_000
"""How long a browser waits before it comes again."""
NUMBER_MAX: Final = 10**18 - 1
EVENT_STREAM: Final = "text/event-stream"
RESET: Final = "reset"
"""The number that was given lies in the future: it is of another database."""
LEVELS: Final = {"alerts": frozenset(NEWS), "all": frozenset(NAMES)}
ALERTS: Final = (
    word("run", "Only alerts of this run."),
    choices("kind", "Only alerts of these kinds.", AlertKind),
    number("limit", "At most so many.", low=1, high=500, default=50),
    number("cursor", "The page behind: `nextCursor` of the page before.", high=NUMBER_MAX),
)
FOLLOW: Final = (
    number("after", "Only events behind this number; Last-Event-ID is stronger.", high=NUMBER_MAX),
    word("run", "Only events of this run."),
    word("tree", "Only events of this run and those below it."),
    choices("types", "Only these events; excludes level.", NAMES),
    choice("level", "Everything, or only what alerts tell.", LEVELS, default="all"),
    flag("rows", "Also each run that changed, as a row of lists: at most once a second."),
    number("wait", "With JSON: hold the line so many seconds.", high=60, default=0),
)


async def events(request: Request) -> Response:
    """GET /v1/events: an agent gets the events of its own tree, the operator all."""
    services, caller = services_of(request), Caller.of(request)
    query = query_of(request, FOLLOW)
    names = wanted_names(query)
    scope = await _scope(services, query, caller)
    number, is_reset = await services.engine.feed.begin(_after(request, query))
    follower = Follower(
        services.engine.feed,
        after=number,
        scope=scope,
        names=names,
        rows_of=partial(_rows, services) if query.flag("rows") else None,
    )
    if _wants_json(request):
        waiting = follower.more(query.number("wait"))
        found = await while_connected(request, waiting)
        page = [event_building.stream_event(each) for each in found]
        return answer(EventPage(events=page, seq=follower.resume_at, reset=is_reset))
    return StreamingResponse(
        _frames(request, follower, is_reset=is_reset),
        media_type=EVENT_STREAM,
        # nginx would otherwise collect events before it passes them on.
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _rows(services: Services, runs: Sequence[Run]) -> Sequence[FeedDocument]:
    now_ms, around, number = services.now_ms(), services.around(), services.engine.queries.seq
    rows = (run_building.shown(RunRow, run, now_ms, around) for run in runs)
    return [event_building.row_document(row, number, now_ms) for row in rows]


def wanted_names(query: Query) -> frozenset[str]:
    """Which events are wanted: ``types`` names them, else ``level`` (``all``) does.

    Raises:
        UsageError: An unknown one, with the nearest known.
    """
    if "types" not in query:
        return LEVELS[query.choice("level")]
    if "level" in query:
        raise UsageError("types and level exclude each other", details={"field": "level"})
    return frozenset(query.choices("types") or ())


async def _scope(services: Services, query: Query, caller: Caller) -> Scope:
    run = await find_run(services, query["run"], caller) if "run" in query else None
    tree = await find_run(services, query["tree"], caller) if "tree" in query else None
    return Scope(
        run=None if run is None else run.id,
        tree=None if tree is None else tree.id,
        session=None if caller.is_operator else caller.session,
    )


def _after(request: Request, query: Query) -> int | None:
    """What was seen already; the header is newer than the address that a browser repeats."""
    given = request.headers.get("last-event-id")
    if given:
        return whole_number("Last-Event-ID", given, high=NUMBER_MAX)
    return query.number("after") if "after" in query else None


def _wants_json(request: Request) -> bool:
    # A client that takes both gets the stream.
    accepted = request.headers.get("accept", "")
    return JSON in accepted and EVENT_STREAM not in accepted


async def _frames(request: Request, follower: Follower, *, is_reset: bool) -> AsyncIterator[bytes]:
    """Until the client goes away or the daemon stops; then the client comes again by itself."""
    # A block without data is no event to a browser, but its id counts from now on.
    yield f"retry: {RECONNECT_MS}\nid: {follower.number}\n\n".encode()
    if is_reset:
        document = msgspec.json.encode({"type": RESET, "seq": follower.number}).decode()
        yield f"event: {RESET}\ndata: {document}\n\n".encode()
    while True:
        try:
            found = await while_connected(request, follower.more(HEARTBEAT_S))
        except (ClientDisconnect, Unavailable):
            return
        yield frames(found, follower.resume_at)


def frames(found: Sequence[FeedDocument], resume_at: int) -> bytes:
    """The documents as server-sent events.

    Two of one number: only the last names it. A client cut off between them asks for both again.
    Rows come behind all events that they are for, so only what stands behind the rows names a
    number; and none names one behind ``resume_at``, before which something has not come yet.
    """
    if not found:
        return f": still here\nid: {resume_at}\n\n".encode()
    has_rows = found[-1].name == ROW
    named = set() if has_rows else {each.number for each in found if each.number <= resume_at}
    last = [one.number != other.number for one, other in pairwise(found)]
    lines = [
        b"%bevent: %b\ndata: %b\n\n"
        % (
            b"id: %d\n" % each.number if is_last and each.number in named else b"",
            each.name.encode(),
            msgspec.json.encode(each.document),
        )
        for each, is_last in zip(found, [*last, True], strict=True)
    ]
    return b"".join([*lines, b"id: %d\n\n" % resume_at] if has_rows else lines)


async def alerts(request: Request) -> Response:
    """GET /v1/alerts: alerts that were raised, newest first, and what became of each.

    An agent sees those of the runs it asked for.
    """
    services, caller = services_of(request), Caller.of(request)
    query = query_of(request, ALERTS)
    kinds = query.choices("kind")
    run = await find_run(services, query["run"], caller) if "run" in query else None
    inbox = services.engine.queries.inbox_of(caller.session)
    as_of = services.as_of()
    found = await services.engine.alert_history.page(
        before=query.number("cursor") if "cursor" in query else NUMBER_MAX,
        limit=query.number("limit"),
        run_id=None if run is None else run.id,
        kinds=None if kinds is None else tuple(map(AlertKind, kinds)),
        # Whoever may see the run may see its alerts: ``find_run`` has checked that.
        may_see=lambda each: caller.is_operator or run is not None or each.requester == inbox,
    )
    return answer(
        AlertHistory(
            **as_of,
            next_cursor=None if found.before is None else str(found.before),
            alerts=[event_building.raised_alert(each) for each in found.alerts],
        )
    )


OPERATIONS: Final = {
    ("GET", "/v1/events"): Operation(
        events,
        query=FOLLOW,
        headers=("Last-Event-ID",),
        media=(EVENT_STREAM, JSON),
        answers=(EventPage,),
    ),
    ("GET", "/v1/alerts"): Operation(alerts, query=ALERTS, answers=(AlertHistory,)),
}
ROUTES: Final = routes(OPERATIONS)
