"""``list --now``: how runs are doing, on two lines each."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from subagents.cli import output
from subagents.cli.connection import connect, warn_of_refusal
from subagents.cli.reading import read
from subagents.cli.runs import selectors
from subagents.cli.runs.selectors import NONE_ACTIVE, path_of
from subagents.cli.show import render
from subagents.cli.show.search_query import BOTH
from subagents.errors import UsageError
from subagents.text import duration, milliseconds_of, one_line, tools_in_words

if TYPE_CHECKING:
    from subagents.api.wire.run_answers import RunStatus

LINE_CHARS_MAX: Final = 200
PART_CHARS_MAX: Final = 120


def show_now(runs: Sequence[str], search: Mapping[str, str], *, json: bool) -> None:
    """These runs, or without any all that have not ended and fit the search."""
    if runs and search:
        raise UsageError(BOTH)
    with connect() as client:
        if runs:
            names = selectors.expand(client, runs)
        else:
            names = [
                row.run_id for row in selectors.listed(client, {**selectors.AT_WORK, **search})
            ]
        answers = [client.get(path_of(each, "/status")) for each in names]
        if not json:
            warn_of_refusal(client)
    if json:
        output.document(client.received if len(runs) == 1 == len(answers) else {"runs": answers})
        return
    if not answers:
        output.note(NONE_ACTIVE)
    now_ms = time.time() * 1000
    for answer in answers:
        found: RunStatus = read(client, answer, "run_answers:RunStatus")
        name = one_line(found.label, chars_max=60)
        parts = [
            f" {found.run_id}  {name}  {render.word(found.shown_state)}",
            *facts(found, now_ms),
        ]
        output.styled_line("  ".join(parts), render.icon(found.shown_state), found.shown_state)
        if now := " · ".join(doing(found, now_ms)):
            output.line(f"    {one_line(now, chars_max=LINE_CHARS_MAX)}")
        if may := " · ".join(allowed(found)):
            output.line(f"    {one_line(may, chars_max=LINE_CHARS_MAX)}")


def allowed(found: "RunStatus") -> list[str]:
    """What it may do, where that is less than everything."""
    granted = found.granted
    if granted is None:
        return []
    parts = []
    if granted.access is not None and granted.access.kept_by is not None:
        parts.append(granted.access.text)
    return parts + tools_in_words(granted.effective_tools, granted.tools_deny, granted.mcp_servers)


def facts(found: "RunStatus", now_ms: float) -> list[str]:
    """What can be counted: time, attempt, tokens and cost as far as they are known, tools."""
    parts = [render.elapsed(found, now_ms)]
    if (found.attempt or 0) > 1:
        parts.append(f"attempt {found.attempt}")
    if used := found.usage is not None and render.usage_text(found.usage):
        parts.append(used)
    if found.subtree_usage is not None and (all_of := render.usage_text(found.subtree_usage)):
        parts.append(all_of)
    if found.tools_used:
        parts.append(f"{found.tools_used} tool{'s' * (found.tools_used > 1)} used")
    if found.context_percent is not None:
        parts.append(f"context {found.context_percent}%")
    if found.children_total:
        done = found.children_total - found.children_active
        parts.append(f"children {done}/{found.children_total} done")
    return parts


def doing(found: "RunStatus", now_ms: float) -> list[str]:
    """What it is at, or why it is not; its last sign of life; what is left of its time."""
    parts = [one_line(render.now_text(found), chars_max=PART_CHARS_MAX)]
    if found.outcome is None:
        if found.waiting is not None and found.waiting != parts[0]:
            parts.append(f"waiting: {found.waiting}")
        if found.last_activity_age is not None:
            seen = one_line(found.last_activity or "a sign of life", chars_max=80)
            parts.append(f"{seen}, {found.last_activity_age}")
        if found.budget is not None and found.budget.text:
            parts.append(f"budget: {found.budget.text}")
        if (deadline_ms := milliseconds_of(found.deadline)) is not None:
            left = duration(max(round(deadline_ms - now_ms), 0))
            parts.append(f"{left} to its deadline")
    return [part for part in parts if part]
