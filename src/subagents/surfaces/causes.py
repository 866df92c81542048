"""Why a run is where it is, from its whole journal: for the calls of every door.

Source: 2-lifecycle §1, §7 (``subagents why RUN`` prints every delivery try).
"""

from typing import Final

from subagents.domain.model import Run
from subagents.domain.values import RunId
from subagents.ports import JournalEntry
from subagents.surfaces import documents, explain
from subagents.surfaces.call import Services

JOURNAL_PAGE: Final = 500
STEPS_MAX: Final = 500
"""Newest lines of ``why``; the whole journal is in the timeline."""


async def why(used: Services, run: Run, *, steps_max: int = STEPS_MAX) -> documents.Document:
    """One sentence for now, one line per event (the newest ``steps_max``), every delivery try."""
    entries = await whole_journal(used, run.id)
    sentence = explain.why_now(
        run,
        used.now_ms(),
        lane=used.lane_of(run),
        paused_by=explain.paused_by(entries) if run.paused else None,
    )
    tries = run.delivery.tries if run.delivery else ()
    return {
        "runId": run.id,
        "phase": run.phase,
        "why": sentence,
        "steps": [documents.step(each) for each in explain.steps(entries)[-steps_max:]],
        "deliveryTries": [documents.delivery_try(each) for each in tries],
    }


async def whole_journal(used: Services, run_id: RunId) -> list[JournalEntry]:
    entries: list[JournalEntry] = []
    while True:
        after_seq = entries[-1].seq if entries else 0
        page = await used.queries.journal(run_id, after_seq=after_seq, limit=JOURNAL_PAGE)
        if not page:
            return entries
        entries += page
