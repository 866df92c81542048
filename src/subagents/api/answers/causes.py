"""Why a run is where it is, read from its whole journal."""

from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Final

from subagents.api.answers import event_building, explain, run_building
from subagents.api.calls.services import Services
from subagents.api.wire.event_answers import Why
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId
from subagents.ports import JournalEntry

JOURNAL_PAGE: Final = 500
STEPS_MAX: Final = 500
"""Newest lines of ``why``; the whole journal is in the timeline."""


async def why(services: Services, run: Run, *, steps_max: int = STEPS_MAX) -> Why:
    """One sentence for now, one line per event (the newest ``steps_max``), every delivery try.

    The journal is played back page by page: a run of 10,000 events takes no more memory than one
    of 500, and other calls get their turn between the pages.
    """
    newest: deque[explain.Step] = deque(maxlen=steps_max)
    paused_by: str | None = None
    folded: Run | None = None
    async for page in journal_pages(services, run.id):
        paused_by = explain.paused_by(page) or paused_by
        for each in explain.fold(page, folded):
            folded = each.run
            newest.extend(explain.steps_of(each))
    around = services.around()
    sentence = explain.why_now(
        run,
        services.now_ms(),
        lane=around.lane_of(run),
        paused_by=paused_by if run.control.paused else None,
        is_cluster=around.is_cluster,
    )
    tries = run.delivery.tries if run.delivery else ()
    return run_building.shown(
        Why,
        run,
        why=sentence,
        steps=[event_building.why_step(each) for each in newest],
        delivery_tries=[run_building.delivery_try(each) for each in tries],
    )


async def journal_pages(services: Services, run_id: RunId) -> AsyncIterator[Sequence[JournalEntry]]:
    """The journal from its first event on, a page at a time."""
    after_seq = 0
    while page := await services.engine.queries.journal(
        run_id, after_seq=after_seq, limit=JOURNAL_PAGE
    ):
        yield page
        after_seq = page[-1].seq
