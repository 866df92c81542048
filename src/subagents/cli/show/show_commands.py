"""Commands that only look: ``show``, ``result``, ``why``, and the trees of ``list --tree``."""

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec

from subagents.api.wire.event_answers import Timeline, Why
from subagents.api.wire.run_answers import RunDetail, RunForest, RunLink, RunNode, StoredResult
from subagents.api.wire.wire_struct import read
from subagents.cli import long_results, output
from subagents.cli.connection import connect
from subagents.cli.flags import Json, Parameter, Run, refusal, refuse_unused
from subagents.cli.runs.selectors import path_of
from subagents.cli.show import render
from subagents.cli.show.search_query import BOTH, nothing, say_hidden
from subagents.client.client import Document
from subagents.domain.run.access import Access
from subagents.domain.run.outcome import failure_text
from subagents.errors import EXIT_OK, UsageError
from subagents.text import duration, milliseconds_of, one_line

EVENTS_PAGE: Final = 500
OVERSHOOT: Final = {
    "none": " (no request starts that could cross it)",
    "one_request": " (can be overspent by one request)",
    "one_turn": " (can be overspent by one turn)",
    "unbounded": " (its worker reports no usage)",
}
EVENT_TEXT_CHARS_MAX: Final = 300
STORY_MAX: Final = 7
"""Lines of ``why`` below its first."""


def show_tree(
    runs: Sequence[str], search: Mapping[str, str], *, archived: bool, json: bool
) -> None:
    """The tree of a run, or those of all roots that fit: runs that no other run spawned.

    Raises:
        UsageError: More than one run is named, or a run and a search.
    """
    if len(runs) > 1:
        raise refusal("--tree", "takes one run, or a search for several")
    run = runs[0] if runs else None
    if run is not None and search:
        raise UsageError(BOTH)
    refuse_unused(
        "is about a search, not about a run that is named", archived=archived and run is not None
    )
    with connect() as client:
        if run is None:
            answer = client.get("/v1/tree", {**search, "archived": 1 if archived else None})
            forest = read(answer, RunForest)
        else:
            # Other commands name a tree so, and a root is named here in any case.
            answer = client.get(path_of(run.removeprefix("tree:"), "/tree"))
            forest = RunForest(roots=[read(answer, RunNode)])
        roots = forest.roots
        if not json and not roots and not forest.hidden:
            output.note(nothing(client, "No tree fits: subagents list --tree, or: subagents list"))
    if json:
        output.document(answer)
        return
    say_hidden(forest)
    if forest.truncated is not None:
        more = "more than " if forest.truncated.total_is_bound else ""
        older = forest.truncated.total - forest.truncated.shown
        output.note(f"{more}{older:,} older runs are not shown: --since, --until, or list")
    columns = output.columns()
    for row in render.tree_rows(roots, columns):
        sys.stdout.writelines(f"{each}\n" for each in row.lines(columns))


def show(
    run: Run,
    /,
    *,
    verbose: Annotated[
        bool,
        Parameter(name=("--verbose", "-v"), help="Also who asked for it, and its session's key."),
    ] = False,
    json: Json = False,
) -> None:
    """Show what a run is, what became of it, and what proves it.

    For example:

        subagents show last

        subagents show tests --json
    """
    with connect() as client:
        answer = client.get(path_of(run))
    if json:
        output.document(answer)
    else:
        _show(read(answer, RunDetail), is_whole=verbose)


def _show(run: RunDetail, *, is_whole: bool) -> None:
    output.styled_line(f" {run.run_id}  {run.label}", render.icon(run.shown_state), run.shown_state)
    ended = run.outcome is not None and render.outcome_text(run.outcome)
    state = ended or render.word(run.shown_state)
    _field("state", f"{state}{'  (paused)' if run.paused else ''}")
    _field("why", run.why)
    for text in () if run.outcome is None else render.error_of(run.outcome).splitlines()[:20]:
        if text not in (run.why or ""):
            _field("error", text)
    is_same = run.agent_id == run.runtime and not is_whole
    _field("agent", run.agent_id if is_same else f"{run.agent_id} ({run.runtime})")
    _field("cwd", str(run.resolved.get("cwd", "")))
    _show_tools(run.resolved)
    if is_whole:
        _field("requester", run.requester)
        _field("session", run.session_key)
    _field("continues", run.continues)
    _field("continued by", run.continued_by)
    _field("thread", run.thread_id)
    _field("time", render.elapsed(run, time.time() * 1000))
    if run.usage is not None:
        _field("usage", render.usage_text(run.usage))
    if run.subtree_usage is not None:
        _field("subtree", render.usage_text(run.subtree_usage))
    if run.budget is not None:
        _field("budget", f"{run.budget.text}{OVERSHOOT.get(run.budget.overshoot or '', '')}")
    if run.latest_progress is not None:
        _field("progress", render.progress_text(run.latest_progress))
    _show_relatives(run)
    _show_proof(run)
    for name, text in render.leftover_fields(run):
        _field(name, text)
    # Where there is no result, the last words are what comes closest to one.
    words = None if run.result else run.last_words
    for name, long_text in (("task", run.task), ("result", run.result), ("last words", words)):
        if long_text:
            output.line(f"{name}:")
            for each in long_text.rstrip("\n").splitlines():
                output.line(f"  {each}")


def _show_tools(resolved: dict[str, object]) -> None:
    """What it may do, and its tools; without a line it has what its runtime offers."""
    if resolved.get("access") is not None:
        _field("access", msgspec.convert(resolved["access"], Access).text)
    allowed, denied = resolved.get("effectiveTools"), resolved.get("toolsDeny")
    if isinstance(allowed, list):
        _field("tools", ", ".join(map(str, allowed)) or "none")
    elif isinstance(denied, list) and denied:
        _field("tools", f"all but {', '.join(map(str, denied))}")
    options = resolved.get("options")
    if isinstance(options, dict) and isinstance(named := options.get("mcp_servers"), list):
        _field("MCP", ", ".join(map(str, named)) or "none but ours")


def _show_relatives(run: RunDetail) -> None:
    for dependency in run.dependencies:
        _field("after", _relative(dependency, is_over=run.outcome is not None))
    for child in run.children:
        _field("child", _relative(child))
    for attempt in run.attempts if len(run.attempts) > 1 else []:
        text = "under way" if attempt.outcome is None else render.outcome_text(attempt.outcome)
        error = "" if attempt.outcome is None else render.error_of(attempt.outcome)
        _field(f"attempt {attempt.number}", f"{text}: {one_line(error)}" if error else text)
    for request in run.requests:
        answer = "pending" if request.status == "pending" else request.answer or request.status
        _field("question", f"{request.question} → {answer}  ({request.request_id})")


def _show_proof(run: RunDetail) -> None:
    if run.verification is not None:
        _field("contract", render.checks_text(run.verification))
        for check in run.verification.checks:
            sign = "✔" if check.passed else "✖"
            text = check.target if check.passed else failure_text(check.target, check.reason)
            if check.evidence and check.type == "judge" and check.passed:
                text += f": {check.evidence.splitlines()[0]}"
            elif check.evidence and check.type in {"command", "change"}:
                text += f" ({check.evidence.splitlines()[0]})"
            _field("", f"{sign} {text}")
    if run.vacuous and run.verification is None:
        _field("contract", render.VACUOUS)
    if run.report is not None:
        _field("report", f"{run.report.status}: {run.report.summary}")


def _field(name: str, text: str | None) -> None:
    """One line, unless there is nothing to say."""
    if text:
        label = f"{name}:" if name else ""
        output.hanging(f"  {label:<12}", one_line(text, chars_max=400))


def _relative(run: RunLink, *, is_over: bool = False) -> str:
    """A run beside it; where it ended before that one did, how that ended is not in its record."""
    unknown = "had not ended by then" if is_over else "not ended"
    status = unknown if run.outcome is None else run.outcome.status
    return f"{run.label}  {run.run_id}  {status}"


def result(run: Run, /, *, json: Json = False) -> int:
    """Print the full result of a run, exactly as the worker returned it.

    For example:

        subagents result last > answer.md

        subagents result tests --json
    """
    with connect() as client:
        answer = client.get(path_of(run, "/result"))
    if json:
        is_whole = long_results.print_run_document(answer)
        return long_results.exit_code(EXIT_OK, is_whole=is_whole)
    ended = read(answer, StoredResult)
    text = ended.result or (ended.report.summary if ended.report else None)
    is_whole = True
    if ended.result:
        is_whole = long_results.print_result(ended)
    elif text:
        output.data(text)
    else:
        state = "has not ended yet" if ended.outcome is None else "returned no text"
        output.note(f"{ended.label or run} {state}")
    render.say_leftovers(ended, has_result=bool(text))
    return long_results.exit_code(EXIT_OK, is_whole=is_whole)


def _timeline(run: str, *, json: bool) -> None:
    with connect() as client:
        answer = client.get(path_of(run, "/timeline"), {"limit": EVENTS_PAGE})
        page = read(answer, Timeline)
        raw = list(_events(answer))
        events = list(page.events)
        while page.next_seq is not None:
            more = {"afterSeq": events[-1].seq, "limit": EVENTS_PAGE}
            # By its id: `last` may mean another run by now.
            answer = client.get(path_of(page.run_id, "/timeline"), more)
            page = read(answer, Timeline)
            raw += _events(answer)
            events += page.events
            if not page.events:
                break
    if json:
        output.document({"runId": page.run_id, "events": raw, "nextSeq": None})
        return
    start_ms = milliseconds_of(events[0].occurred_at) or 0 if events else 0
    rows = [
        (
            f"+{((milliseconds_of(event.occurred_at) or 0) - start_ms) / 1000:.3f}s",
            str(event.seq),
            "(stale)" if event.stale else event.phase or "",
            event.type,
            one_line(event.text, chars_max=EVENT_TEXT_CHARS_MAX),
        )
        for event in events
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    columns = output.columns()
    for at, seq, phase, name, text in rows:
        known = (at.rjust(widths[0]), seq.rjust(widths[1]), phase.ljust(widths[2]))
        whole = "  ".join((*known, name.ljust(widths[3]), text)).rstrip()
        output.line(output.within(whole, columns))


def _events(answer: Document) -> list[object]:
    events = answer.get("events")
    return events if isinstance(events, list) else []


def why(
    run: Run,
    /,
    *,
    verbose: Annotated[
        bool,
        Parameter(name=("--verbose", "-v"), help="Every step, with each retry and delivery."),
    ] = False,
    json: Json = False,
) -> None:
    """Explain why a run is in its current state, in at most eight lines.

    For example:

        subagents why last

        subagents why nightly --verbose
    """
    if verbose:
        _timeline(run, json=json)
        return
    with connect() as client:
        answer = client.get(path_of(run, "/why"))
    if json:
        output.document(answer)
        return
    found = read(answer, Why)
    output.hanging("", f"{one_line(found.label, chars_max=60)} ({found.run_id}): {found.why}")
    start_ms = milliseconds_of(found.steps[0].occurred_at) if found.steps else None
    story = [each for each in found.steps if not each.detail]
    # How it began, and how it came to where it is.
    left_out = range(2, len(story) - STORY_MAX + 3) if len(story) > STORY_MAX else range(0)
    for index, step in enumerate(story):
        if index not in left_out:
            at = _offset(step.occurred_at, start_ms)
            output.hanging(f"  {at:>9}  ", one_line(step.text, chars_max=400))
        elif index == left_out.start:
            output.line(f"  {'…':>9}  {len(left_out)} more: subagents why -v {found.run_id}")


def _offset(at: str | None, start_ms: int | None) -> str:
    at_ms = milliseconds_of(at)
    if at_ms is None or start_ms is None:
        return ""
    return f"+{duration(at_ms - start_ms)}"
