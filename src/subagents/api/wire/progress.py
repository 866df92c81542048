"""A worker's progress as the documents of the wire.

Source: 3-tools ``report_progress``; seed 000 §5.
"""

from subagents.api.wire.documents import Document
from subagents.domain.rules.admission import PROGRESS_LINES_MAX
from subagents.domain.run.run import Progress
from subagents.engine.messages.reports import ProgressAnswer


def taken(value: ProgressAnswer) -> Document:
    """What became of one update: ``stored``, ``rate_limited`` or ``latest_only``."""
    if value.retry_after_s is not None:
        return {"status": "rate_limited", "retryAfterSeconds": value.retry_after_s}
    if value.is_latest_only:
        note = f"the run has {PROGRESS_LINES_MAX} updates already; only the latest is shown"
        return {"status": "latest_only", "note": note}
    return {"status": "stored"}


def line(value: Progress) -> Document:
    """One update of the log; the run itself shows only the newest, and less of it."""
    return {
        "number": value.number,
        "phase": value.phase,
        "percentComplete": value.percent_complete,
        "level": value.level,
        "metrics": dict(value.metrics),
        "at": value.updated_at_ms,
    }
