"""Who is notified of a run's end, and over which routes in which order."""

from subagents.domain.run.outcome import Reason, Skipped, SkipReason
from subagents.domain.run.run import Run
from subagents.domain.run.values import Value
from subagents.domain.text.announcement import SILENT_TEXTS


class Route(Value, frozen=True):
    """Delivery phases to try, in order, by their names in the trace."""

    phases: tuple[str, ...]
    mode: str
    """``internal`` = injected into a run of ours, ``fallback`` = the requester's inbox; a try that
    found a courier bound to the requester's agent is on record as ``bound``."""


def skip_reason(run: Run) -> Skipped | None:
    """Whether nobody is to be pushed; the inbox row exists all the same."""
    is_orphaned = run.outcome is not None and run.outcome.reason is Reason.PARENT_ENDED
    if is_orphaned or run.lineage.judges is not None:
        return Skipped(reason=SkipReason.NOT_EXPECTED)
    silent = SILENT_TEXTS.get((run.result or "").strip())
    return None if silent is None else Skipped(reason=silent)


def route(run: Run) -> Route:
    """``expectsCompletionMessage``: direct first, then queue/steer; else the other way round.

    A nested requester is notified by internal injection only: nothing of a child's child goes to an
    outside channel, not even when its parent is gone and the message bubbled up to a session that
    has one. What cannot be steered waits in the inbox, and the reducer's follow-up turn
    (``lifecycle._follow_up``) hands it to the agent: for a nested
    requester that turn is the direct delivery.
    """
    if run.lineage.requester_run is not None:
        return Route(phases=("steer-internal", "queue-internal"), mode="internal")
    if run.spec.expects_completion_message:
        return Route(phases=("direct-primary", "steer-fallback", "queue-fallback"), mode="fallback")
    return Route(phases=("steer-primary", "queue-primary", "direct-fallback"), mode="fallback")
