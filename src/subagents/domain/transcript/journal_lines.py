"""Lines of a transcript that only the journal knows: starts, messages to the worker, verdicts."""

from subagents.domain.run.events import Event
from subagents.domain.run.run import Run
from subagents.domain.run.worker_output import LineType, OutputItem
from subagents.domain.text.event_words import transcript_line


def journal_line(run: Run, seq: int, event: Event) -> OutputItem | None:
    """The line of one event; None = it has none, because the stream says so itself or nobody asks.

    Args:
        run: As it is now, or later than the event.
        seq: The event's number.
        event: What happened.
    """
    found = transcript_line(event, run)
    if run.outcome is None or not run.is_settled_by(seq):
        return None if found is None else OutputItem(type=found[0], text=found[1])
    ending = f"run ended: {run.outcome.status}"
    if run.outcome.reason is not None:
        ending += f" ({run.outcome.reason})"
    before = f"{found[1]} — " if found is not None else ""
    return OutputItem(type=LineType.SYSTEM, text=f"{before}{ending}")
