"""What is wrong with a run at work *now*: alerts whose cause still stands.

An alert is news and stays in the inbox; this is the present. A worker that speaks again, a tool
that succeeds, take it away.
"""

from typing import NamedTuple

from subagents.domain.alerts.detectors import Watch
from subagents.domain.rules.budgets import budgets
from subagents.domain.run.alert import AlertKind
from subagents.domain.run.run import Phase, Run
from subagents.text import duration


class Concern(NamedTuple):
    """One thing that is wrong with a run now."""

    kind: AlertKind
    text: str
    since_ms: int
    """The last sign of life for ``stuck``, else the beginning of the phase."""


def concerns(run: Run, watch: Watch, *, now_ms: int) -> tuple[Concern, ...]:
    """What stands now; nothing for a run that is not at work."""
    if run.phase is not Phase.RUNNING:
        return ()
    found: list[Concern] = []
    rules, since_ms = run.resolved.alerts, run.times.phase_since_ms
    # One that waits for an answer is silent for that.
    asks = any(each.priority is None for each in run.pending_requests)
    if watch.is_silence_told and watch.last_at_ms is not None and not asks:
        silent = duration(max(now_ms - watch.last_at_ms, 0))
        last = f" (last: {watch.last_activity})" if watch.last_activity else ""
        text = f"no sign of life for {silent}{last}"
        found.append(Concern(AlertKind.STUCK, text, watch.last_at_ms))
    if watch.failures >= rules.failures:
        what = watch.failed_tool or "tool"
        text = f"{watch.failures} {what} failures in a row"
        found.append(Concern(AlertKind.FAILURE_LOOP, text, since_ms))
    if watch.api_errors:
        text = "nothing has succeeded since its model's provider, program or a permission refused"
        found.append(Concern(AlertKind.API_ERROR, text, since_ms))
    shares = budgets.shares(run, now_ms)
    if shares and shares[0].percent >= 100:
        text = f"its budget is used up: {shares[0].text}"
        found.append(Concern(AlertKind.BUDGET_ALERT, text, since_ms))
    return tuple(found)
