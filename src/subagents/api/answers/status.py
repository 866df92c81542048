"""How one run is doing now: its row, and what its worker was last seen at.

Source: 4-observability §3; seed 003 §3.
"""

from typing import Final

from subagents.api.calls.services import Services
from subagents.api.wire import documents
from subagents.api.wire import usage as spending
from subagents.domain.run.run import Run
from subagents.domain.run.spending import total_usage
from subagents.text import age, duration, shortened

QUESTION_CHARS_MAX: Final = 500


async def status(used: Services, run: Run) -> documents.Document:
    """A run's status: everything of its row, and more.

    ``runtime`` is how long it has been at work, as seed 003 has it; the adapter that runs it,
    which is ``runtime`` in a row, is ``adapter`` here.

    Raises:
        StoreUnavailable: What is known of its worker cannot be read.
    """
    now_ms = used.now_ms()
    row = documents.row(run, now_ms, lane=used.lane_of(run))
    watch = await used.engine.watch_of(run)
    usage = total_usage(run)
    is_over = run.ended_at_ms is not None
    took_ms = None
    if run.started_at_ms is not None:
        took_ms = max((run.ended_at_ms or now_ms) - run.started_at_ms, 0)
    silent_ms = None if watch.last_at_ms is None else max(now_ms - watch.last_at_ms, 0)
    return {
        **row,
        "adapter": run.resolved.runtime,
        "runtime": None if took_ms is None else duration(took_ms),
        "runtimeMs": took_ms,
        "state": documents.run_status(run),
        "sessionId": run.session_key,
        "costUsd": usage.cost_usd,
        "tokensIn": usage.tokens_in,
        "tokensOut": usage.tokens_out,
        "toolsUsed": watch.tools_used,
        "lastActivity": watch.last_activity,
        "lastActivityAt": watch.last_at_ms,
        "lastActivityAge": None if silent_ms is None else age(silent_ms),
        "lastActivityAgeMs": silent_ms,
        "contextPercent": watch.context_percent,
        "contextTokens": watch.context_tokens,
        "pendingRequests": [
            {
                "requestId": each.id,
                "question": shortened(each.question, QUESTION_CHARS_MAX),
                "options": list(each.options),
                "priority": each.priority,
                "askedAt": each.asked_at_ms,
                "deadline": each.deadline_ms,
            }
            for each in run.pending_requests
        ],
        "childrenActive": len(run.active_children),
        "childrenTotal": len(run.children),
        "requesterRun": run.requester_run,
        "deadline": run.attempts[-1].deadline_ms if run.attempts and not is_over else None,
        "paused": run.paused,
        "waiting": used.lane_of(run).limit or used.engine.backing_off(run),
        "budget": spending.budget(run, now_ms),
    }
