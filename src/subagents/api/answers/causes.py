"""Why a run is where it is, read from its whole journal."""

from collections import deque
from collections.abc import AsyncIterator
from typing import Final

from subagents.api.answers import explain, run_building
from subagents.api.calls.services import Services
from subagents.api.wire.event_answers import Why, WhyStep
from subagents.domain.run.events import Paused
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId
from subagents.text import iso

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
    async for each in played_back(services, run.id):
        if isinstance(each.entry.event, Paused):
            paused_by = each.entry.event.by
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
        steps=[
            WhyStep(occurred_at=iso(each.at_ms), text=each.text, detail=each.is_detail)
            for each in newest
        ],
        delivery_tries=[run_building.delivery_try(each) for each in tries],
    )


async def played_back(services: Services, run_id: RunId) -> AsyncIterator[explain.Folded]:
    """Every entry of the journal with the run before and after it, a page in memory at a time.

    From the first one on, whatever is asked for: a phase is known only from the events before it.
    """
    run: Run | None = None
    after_seq = 0
    while page := await services.engine.queries.journal(
        run_id, after_seq=after_seq, limit=JOURNAL_PAGE
    ):
        for each in explain.fold(page, run):
            run = each.run
            yield each
        after_seq = page[-1].seq
