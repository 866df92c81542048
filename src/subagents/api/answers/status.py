"""How one run is doing now: its row, and what its worker was last seen at."""

from typing import Final

from subagents.api.answers import run_building
from subagents.api.calls.services import Services
from subagents.api.wire.run_answers import PendingRequest, RunStatus
from subagents.api.wire.wire_struct import iso_or_none, made
from subagents.domain.run.run import Request, Run
from subagents.domain.run.spending import total_usage
from subagents.text import age, duration, shortened

QUESTION_CHARS_MAX: Final = 500


async def status(services: Services, run: Run) -> RunStatus:
    """A run's status: everything of its row, and more.

    Raises:
        StoreUnavailable: What is known of its worker cannot be read.
    """
    now_ms = services.now_ms()
    around = services.around()
    watch = await services.engine.recorder.watch_of(run)
    usage = total_usage(run)
    is_over = run.ended_at_ms is not None
    took_ms = run_building.took_ms(run, now_ms)
    silent_ms = None if watch.last_at_ms is None else max(now_ms - watch.last_at_ms, 0)
    return run_building.shown(
        RunStatus,
        run,
        now_ms,
        around,
        took=None if took_ms is None else duration(took_ms),
        state=run_building.run_status(run),
        session_id=run.session_key,
        cost_usd=usage.cost_usd,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        tools_used=watch.tools_used,
        last_activity=watch.last_activity,
        last_activity_at=iso_or_none(watch.last_at_ms),
        last_activity_age=None if silent_ms is None else age(silent_ms),
        last_activity_age_ms=silent_ms,
        context_percent=watch.context_percent,
        context_tokens=watch.context_tokens,
        pending_requests=[_pending(each) for each in run.pending_requests],
        deadline=iso_or_none(run.attempts[-1].times.deadline_ms)
        if run.attempts and not is_over and run.control.frozen_since_ms is None
        else None,
        waiting=around.lane(run).limit or services.engine.provider_gates.backing_off(run),
    )


def _pending(request: Request) -> PendingRequest:
    question = shortened(request.question, QUESTION_CHARS_MAX)
    return made(PendingRequest, request, request_id=request.id, question=question)
