"""A dry run on the terminal: a row for each run that would start, and what is to be said of it."""

from subagents.api.wire.run_answers import DryRun, PlannedRun
from subagents.cli import output
from subagents.text import counted, money, one_line


def show(found: DryRun, *, name: str = "") -> None:
    """The table on stdout, warnings and sums on stderr.

    Args:
        found: The daemon's answer.
        name: Of the plan; empty = it is a run alone.
    """
    output.table(
        ["#", "label", "agent", "starts", "task"],
        [_row(place, each) for place, each in enumerate(found.runs, 1)],
        cut=(4, 1, 3),
    )
    output.warnings((each.label, warning) for each in found.runs for warning in each.warnings)
    for each in found.runs:
        if each.chosen is not None:
            output.note(f"  {each.label}: agent {each.agent_id}: {each.chosen}")
        if each.question is not None:
            output.note(f"  {each.label} begins when somebody allows it: {each.question}")
    what = f"plan {name}: {counted(len(found.runs), 'run')}" if name else "1 run"
    output.note(f"{what}{_most(found)}; nothing was started")


def _row(place: int, run: PlannedRun) -> list[str]:
    return [str(place), run.label, run.agent_id, starts(run), one_line(run.task)]


def starts(run: PlannedRun) -> str:
    """When it would begin, in a few words."""
    if run.run_id is not None:
        return f"is {run.run_id} already"
    if run.waits_for:
        waits = run.waits_for
        return f"after {waits[0].label if len(waits) == 1 else counted(len(waits), 'run')}"
    if run.question is not None:
        return "when allowed"
    if run.starts_at_once:
        return "at once"
    if run.phase != "queued":
        return run.phase
    lane = run.lane
    if lane.limit is not None:
        return lane.limit
    return f"lane {lane.name}: {lane.ahead} ahead, {lane.used} of {lane.slots} slots taken"


def _most(found: DryRun) -> str:
    tokens, cost = found.max_tokens, found.max_cost_usd
    words = [
        *([] if tokens is None else [f"{tokens:,} tokens"]),
        *([] if cost is None else [money(cost)]),
    ]
    return f", at most {' and '.join(words)} together" if words else ""
