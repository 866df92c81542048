"""``GET /v1/runs/{sel}/ag-ui``: a run, for user interfaces that speak AG-UI.

From its beginning to its end, also when it has ended: whoever comes again gets everything again,
under the same ids. The events are those of ``ag-ui-protocol``, an extra that is loaded with the
first request.
"""

from collections.abc import AsyncIterator
from types import ModuleType
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from subagents.api.answers import log_pages
from subagents.api.calls import extras
from subagents.api.calls.call import on_run, while_connected
from subagents.api.calls.services import Services
from subagents.domain.run.run import Run
from subagents.errors import Unavailable

EXTRA: Final = "ag-ui"
LINES: Final = 500
WAIT_S: Final = 15
"""The time between two signs of life of a run that says nothing."""
RESULT_BYTES_MAX: Final = 4 * 1024 * 1024
"""The longest result in the last event; the end of a longer one is left out."""
_EVENTS: Final = "subagents.extensions.ag_ui.ag_ui_events"


async def stream(request: Request) -> Response:
    """GET /v1/runs/{sel}/ag-ui: the run as AG-UI events, until it has ended."""
    services, _, run = await on_run(request)
    # Before the answer begins: then nobody else could give it.
    await services.engine.partitions.require_read(run)
    events = extras.loaded(_EVENTS, extra=EXTRA)
    return StreamingResponse(
        _frames(request, services, run, events),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _frames(
    request: Request, services: Services, run: Run, events: ModuleType
) -> AsyncIterator[bytes]:
    """Until the run has ended, the client goes away, or the daemon stops."""
    yield events.encoded(events.started(run))
    told: set[str] = set()
    seq = 0
    while True:
        wanted = log_pages.Asked(after_seq=seq, limit=LINES, wait_s=0 if seq == 0 else WAIT_S)
        try:
            work = log_pages.log_page(services, run, wanted)
            page = await while_connected(request, work)
        except (ClientDisconnect, Unavailable):
            return
        for line in page.lines:
            for event in events.of_line(run, line):
                yield events.encoded(event)
        run = await services.engine.queries.run(run.id)
        for each in run.pending_requests:
            if each.id not in told:
                told.add(each.id)
                yield events.encoded(events.asked(each))
        if page.ended and run.outcome is not None:
            pages = services.engine.results.pages(run, offset=0, limit=RESULT_BYTES_MAX)
            result = b"".join([each async for each in pages]).decode(errors="ignore")
            yield events.encoded(events.ended(run, run.outcome, result or None))
            return
        if not page.lines:
            yield b": still here\n\n"
        seq = page.next_seq


ROUTES: Final = (Route("/v1/runs/{sel}/ag-ui", stream, methods=["GET"]),)
