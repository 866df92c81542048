"""Commands that only look: ``list tree status show result log timeline why attention agents``.

Source: 5-surfaces §2.
"""

import difflib
import shutil
import sys
import time
from typing import Annotated, Final

from cyclopts import Parameter

from subagents.cli import output, render, selectors
from subagents.cli.connection import caller_cwd, connect, persistently, session
from subagents.cli.flags import Json, Run, Runs
from subagents.cli.selectors import path_of
from subagents.cli.views import (
    Agents,
    Attention,
    DependencyView,
    Details,
    Ended,
    LogView,
    Node,
    Roots,
    Row,
    Rows,
    Timeline,
    Why,
    view,
)
from subagents.client import Client, Document
from subagents.errors import EXIT_OK, NotFound, UsageError

FOLLOW_POLL_S: Final = 0.5
LOG_PAGE_BYTES: Final = 64 * 1024
EVENTS_PAGE: Final = 500
EVENT_TEXT_CHARS_MAX: Final = 100
EVENT_COLUMNS: Final = 60
"""Before an event's text."""


def list_(
    selector: Annotated[
        str | None, Parameter(help="`tree:RUN` or `phase:NAME[,NAME]`.", metavar="SELECTOR")
    ] = None,
    /,
    *,
    phase: Annotated[
        str | None, Parameter(help="Only runs in these phases.", metavar="NAME,…")
    ] = None,
    label: Annotated[str | None, Parameter(help="Only runs with this label.")] = None,
    agent: Annotated[str | None, Parameter(help="Only runs of this agent.")] = None,
    mine: Annotated[bool, Parameter(help="Only runs that this session spawned.")] = False,
    archived: Annotated[bool, Parameter(help="Archived runs, too.")] = False,
    limit: Annotated[int, Parameter(help="At most N runs. Default: 50.", metavar="N")] = 50,
    offset: Annotated[int, Parameter(help="Skip the newest N.", metavar="N")] = 0,
    json: Json = False,
) -> int:
    """Runs, newest first.

    For example:

        subagents list --phase running,retry_wait

        subagents list tree:nightly --json
    """
    tree = None
    if selector is not None:
        if selector.startswith(selectors.PHASE):
            phase = selector.removeprefix(selectors.PHASE)
        elif selector.startswith(selectors.TREE):
            tree = selector.removeprefix(selectors.TREE)
        else:
            raise UsageError(
                f"{selector!r} is no selector of several runs",
                hint=f"one run: subagents show {selector}; several: tree:RUN or phase:NAME",
            )
    query = {
        "phase": selectors.phases(phase) if phase else None,
        "label": label,
        "agentId": agent,
        "requester": session() if mine else None,
        "tree": tree,
        "archived": 1 if archived else None,
        "limit": limit,
        "offset": offset or None,
    }
    with connect() as client:
        answer = client.get("/v1/runs", query)
    if json:
        output.document(answer)
        return EXIT_OK
    found = view(answer, Rows)
    if not found.runs:
        output.note("No runs. Start one: subagents run 'echo hello'")
        return EXIT_OK
    now_ms = time.time() * 1000
    output.table(
        ["run", "label", "agent", "state", "time", "now"],
        [_cells(row, now_ms) for row in found.runs],
        styles={3: 3},
    )
    if found.total is not None and found.total > len(found.runs) + offset:
        output.note(f"{found.total - len(found.runs) - offset} more: --offset, --limit")
    return EXIT_OK


def _cells(row: Row, now_ms: float) -> list[str]:
    return [row.run_id, row.label, row.agent_id, row.state, _elapsed(row, now_ms), _now(row)]


def _elapsed(row: Row, now_ms: float) -> str:
    if row.started_at is None:
        return "-"
    return render.duration(round((row.ended_at or now_ms) - row.started_at))


def _now(row: Row) -> str:
    """What it does, or why it does not."""
    if row.outcome is not None:
        return row.outcome.error or row.outcome.reason or ""
    if row.state == "running" and row.latest_progress is not None:
        return render.progress_text(row.latest_progress)
    return row.blocked_reason or row.why or ""


def tree(
    run: Annotated[
        str | None, Parameter(help="The run at its root; all of yours without.", metavar="RUN")
    ] = None,
    /,
    *,
    json: Json = False,
) -> int:
    """Runs with the runs they spawned.

    For example:

        subagents tree

        subagents tree last --json
    """
    with connect() as client:
        path = "/v1/tree" if run is None else path_of(run.removeprefix("tree:"), "/tree")
        answer = client.get(path)
    if json:
        output.document(answer)
        return EXIT_OK
    roots = view(answer, Roots).roots if run is None else [view(answer, Node)]
    if not roots:
        output.note("No runs of yours. Start one: subagents run 'echo hello'")
    lines = [each for root in roots for each in render.tree_lines(root)]
    for each in render.aligned(lines):
        icon = output.styled(render.icon(each.state), each.state)
        text = output.harmless(f"{each.name}  {each.text}")
        sys.stdout.write(f"{each.indent}{icon} {text}\n")
    return EXIT_OK


def status(*runs: Runs, json: Json = False) -> int:
    """One line about each run.

    For example:

        subagents status last

        subagents status tests lint --json
    """
    if not runs:
        raise UsageError("name at least one run", hint="subagents status last")
    with connect() as client:
        answers = [client.get(path_of(each, "/status")) for each in selectors.expand(client, runs)]
    if json:
        output.document(answers[0] if len(runs) == 1 == len(answers) else {"runs": answers})
        return EXIT_OK
    now_ms = time.time() * 1000
    for answer in answers:
        row = view(answer, Row)
        parts = [f" {row.run_id}  {row.label}  {render.word(row.state)}", _elapsed(row, now_ms)]
        if now := output.one_line(_now(row), chars_max=120):
            parts.append(now)
        output.styled_line("  ".join(parts), render.icon(row.state), row.state)
    return EXIT_OK


def show(run: Run, /, *, json: Json = False) -> int:
    """Everything about one run.

    For example:

        subagents show last

        subagents show tests --json
    """
    with connect() as client:
        answer = client.get(path_of(run))
    if json:
        output.document(answer)
        return EXIT_OK
    _show(view(answer, Details))
    return EXIT_OK


def _show(run: Details) -> None:
    output.styled_line(f" {run.run_id}  {run.label}", render.icon(run.state), run.state)
    state = run.phase if run.outcome is None else render.outcome_text(run.outcome)
    _field("state", f"{state}{'  (paused)' if run.paused else ''}")
    _field("why", run.why)
    if run.outcome is not None and run.outcome.error:
        for text in run.outcome.error.strip().splitlines()[:20]:
            _field("error", text)
    _field("agent", f"{run.agent_id} ({run.runtime})")
    _field("cwd", str(run.resolved.get("cwd", "")))
    _show_tools(run.resolved)
    _field("requester", run.requester)
    _field("session", run.session_key)
    _field("time", _elapsed(run, time.time() * 1000))
    if run.usage is not None:
        _field("usage", render.usage_text(run.usage))
    if run.latest_progress is not None:
        _field("progress", render.progress_text(run.latest_progress))
    _show_relatives(run)
    _show_proof(run)
    for name, long_text in (("task", run.task), ("result", run.result)):
        if long_text:
            output.line(f"{name}:")
            _indented(long_text)


def _show_tools(resolved: dict[str, object]) -> None:
    """The tools it was narrowed to; without a line it has what its runtime offers."""
    allowed, denied = resolved.get("effectiveTools"), resolved.get("toolsDeny")
    if isinstance(allowed, list):
        _field("tools", ", ".join(map(str, allowed)) or "none")
    elif isinstance(denied, list) and denied:
        _field("tools", f"all but {', '.join(map(str, denied))}")


def _show_relatives(run: Details) -> None:
    for dependency in run.dependencies:
        _field("after", _relative(dependency))
    for child in run.children:
        _field("child", _relative(child))
    attempts = run.attempts if isinstance(run.attempts, list) else []
    for attempt in attempts if len(attempts) > 1 else []:
        text = "under way" if attempt.outcome is None else render.outcome_text(attempt.outcome)
        _field(f"attempt {attempt.number}", text)
    for request in run.requests:
        answer = "pending" if request.status == "pending" else request.answer or request.status
        _field("question", f"{request.question} → {answer}  ({request.request_id})")


def _show_proof(run: Details) -> None:
    if run.verification is not None:
        _field("contract", render.checks_text(run.verification))
        for check in run.verification.checks:
            sign = "✔" if check.passed else "✖"
            reason = f": {check.reason}" if check.reason else ""
            _field("", f"{sign} {check.target}{reason}")
    if run.vacuous:
        _field("warning", "the contract was met before the work began")
    if run.report is not None:
        _field("report", f"{run.report.status}: {run.report.summary}")


def _field(name: str, text: str | None) -> None:
    if text:
        label = f"{name}:" if name else ""
        output.line(f"  {label:<12}{output.one_line(text, chars_max=400)}")


def _indented(text: str) -> None:
    for each in text.rstrip("\n").splitlines():
        output.line(f"  {each}")


def _relative(run: DependencyView) -> str:
    status = "not ended" if run.outcome is None else run.outcome.status
    return f"{run.label}  {run.run_id}  {status}"


def result(run: Run, /, *, json: Json = False) -> int:
    """The whole stored result of a run, as the worker gave it.

    For example:

        subagents result last > answer.md

        subagents result tests --json
    """
    with connect() as client:
        answer = client.get(path_of(run, "/result"))
    if json:
        output.document(answer)
        return EXIT_OK
    ended = view(answer, Ended)
    text = ended.result or (ended.report.summary if ended.report else None)
    if text:
        output.data(text)
    else:
        state = "has no outcome yet" if ended.outcome is None else "left no text"
        output.note(f"{ended.label or run} {state}")
    if ended.result is not None and ended.result_bytes > len(ended.result.encode()):
        output.note(f"cut: the whole is {ended.result_bytes} bytes; see: subagents log {run}")
    return EXIT_OK


def log(
    run: Run,
    /,
    *,
    err: Annotated[bool, Parameter(help="What it wrote to stderr.")] = False,
    attempt: Annotated[
        int | None, Parameter(help="Of attempt N. Default: the newest.", metavar="N")
    ] = None,
    tail: Annotated[
        int | None, Parameter(name=["--tail", "-n"], help="The last N lines.", metavar="N")
    ] = None,
    follow: Annotated[
        bool, Parameter(name=["--follow", "-f"], help="Go on until the run has ended.")
    ] = False,
    json: Json = False,
) -> int:
    """What the worker wrote.

    For example:

        subagents log last --tail 20

        subagents log tests --err --follow
    """
    if tail is not None and tail < 0:
        raise UsageError(f"--tail must be 0 or more, not {tail}", details={"field": "--tail"})
    stream = "err" if err else "out"
    with connect() as client:
        run_id = str(client.get(path_of(run, "/status"))["runId"])
        first = {"stream": stream, "attempt": attempt, "tail": tail, "limit": LOG_PAGE_BYTES}
        answer = client.get(path_of(run_id, "/log"), first)
        while True:
            page = view(answer, LogView)
            _print_log(page, answer, json=json)
            offset = page.offset if page.next_offset is None else page.next_offset
            number = page.attempt
            if offset >= page.total_bytes:
                if not follow:
                    return EXIT_OK
                number = _next_attempt(client, run_id, page, is_fixed=attempt is not None)
                if number is None:
                    return EXIT_OK
                offset = offset if number == page.attempt else 0
            more = {"stream": stream, "attempt": number or None, "offset": offset}
            answer = _page(client, run_id, more)


def _page(client: Client, run_id: str, query: dict[str, str | int | None]) -> Document:
    path = path_of(run_id, "/log")
    return persistently(lambda: client.get(path, {**query, "limit": LOG_PAGE_BYTES}))


def _print_log(page: LogView, answer: Document, *, json: bool) -> None:
    if json:
        output.document(answer)
    elif page.text:
        shown = output.harmless(page.text) if sys.stdout.isatty() else page.text
        sys.stdout.write(shown)
    sys.stdout.flush()


def _next_attempt(client: Client, run_id: str, page: LogView, *, is_fixed: bool) -> int | None:
    """Wait for more output: the number of the attempt that has it, None when none will come."""
    number = page.attempt or 0
    while True:
        # Asked before the file: what was written until the end was seen is then in it.
        row = view(persistently(lambda: client.get(path_of(run_id, "/status"))), Row)
        newest = row.attempt or 0
        if number:
            query: dict[str, str | int | None] = {"stream": page.stream, "attempt": number}
            found = view(_page(client, run_id, {**query, "offset": page.next_offset}), LogView)
            if found.text:
                return number
        if newest > number:
            return None if is_fixed else number + 1
        if row.outcome is not None:
            return None
        time.sleep(FOLLOW_POLL_S)


def timeline(run: Run, /, *, json: Json = False) -> int:
    """Every event of a run, from spawn to cleanup.

    For example:

        subagents timeline last

        subagents timeline tests --json
    """
    with connect() as client:
        answer = client.get(path_of(run, "/timeline"), {"limit": EVENTS_PAGE})
        page = view(answer, Timeline)
        raw = list(_events(answer))
        events = list(page.events)
        while page.next_seq is not None:
            more = {"afterSeq": events[-1].seq, "limit": EVENTS_PAGE}
            answer = client.get(path_of(page.run_id, "/timeline"), more)
            page = view(answer, Timeline)
            raw += _events(answer)
            events += page.events
            if not page.events:
                break
    if json:
        output.document({"runId": page.run_id, "events": raw, "nextSeq": None})
        return EXIT_OK
    start_ms = events[0].at_ms if events else 0
    room = EVENT_TEXT_CHARS_MAX
    if output.is_tty():
        room = max(20, shutil.get_terminal_size().columns - EVENT_COLUMNS)
    for event in events:
        at = f"+{(event.at_ms - start_ms) / 1000:.3f}s"
        phase = "(stale)" if event.stale else event.phase or ""
        text = output.one_line(_event_text(event.data), chars_max=room)
        output.line(f"{at:>11}  {event.seq:>3}  {phase:<17}  {event.type:<20}  {text}".rstrip())
    return EXIT_OK


def _events(answer: Document) -> list[object]:
    events = answer.get("events")
    return events if isinstance(events, list) else []


def _event_text(data: dict[str, object], prefix: str = "") -> str:
    """The scalars of an event, ``name=value``."""
    parts: list[str] = []
    for name, value in data.items():
        if isinstance(value, dict) and not prefix:
            parts.append(_event_text(value, f"{name}."))
        elif isinstance(value, str | int | float | bool) and name != "key":
            parts.append(f"{prefix}{name}={output.one_line(str(value), chars_max=60)}")
    return " ".join(part for part in parts if part)


def why(run: Run, /, *, json: Json = False) -> int:
    """Why a run is where it is: each step, each retry, each try to deliver its end.

    For example:

        subagents why last

        subagents why nightly --json
    """
    with connect() as client:
        answer = client.get(path_of(run, "/why"))
    if json:
        output.document(answer)
        return EXIT_OK
    found = view(answer, Why)
    output.line(f"{found.run_id} is {found.phase}: {found.why}")
    start_ms = next((step.at_ms for step in found.steps if step.at_ms is not None), None)
    for step in found.steps:
        at = "" if step.at_ms is None or start_ms is None else _offset(step.at_ms - start_ms)
        output.line(f"  {at:>9}  {output.one_line(step.text, chars_max=400)}")
    if found.delivery_tries:
        output.line("delivery:")
    for each in found.delivery_tries:
        at_ms = each.get("at", each.get("atMs"))
        is_known = isinstance(at_ms, int) and start_ms is not None
        at = _offset(at_ms - start_ms) if is_known else ""  # type: ignore[operator]  # is_known
        output.line(f"  {at:>9}  to {each.get('target')}: {_delivery(each.get('outcome'))}")
    return EXIT_OK


def _offset(milliseconds: int) -> str:
    return f"+{render.duration(milliseconds)}"


def _delivery(outcome: object) -> str:
    if not isinstance(outcome, dict):
        return str(outcome)
    rest = " ".join(str(value) for name, value in outcome.items() if name != "kind")
    return f"{outcome.get('kind')} {rest}".strip()


def attention(*, json: Json = False) -> int:
    """What needs a person: questions, blockers, failures, results nobody took.

    For example:

        subagents attention

        subagents attention --json
    """
    with connect() as client:
        answer = client.get("/v1/attention")
    if json:
        output.document(answer)
        return EXIT_OK
    items = view(answer, Attention).items
    if not items:
        output.note("Nothing needs you.")
    now_ms = time.time() * 1000
    for item in items:
        age = "" if item.since is None else f", {render.duration(round(now_ms - item.since))} ago"
        text = output.one_line(item.text, chars_max=200)
        output.styled_line(f"  {item.label} ({item.run_id}{age}): {text}", item.kind, item.kind)
        if item.request_id:
            output.line(f"    answer: subagents answer {item.request_id} TEXT")
        elif item.kind == "failed":
            output.line(f"    see: subagents why {item.run_id}")
        elif item.kind in {"undelivered", "unread"}:
            output.line(f"    read: subagents result {item.run_id}")
        elif item.kind == "blocker":
            output.line(f"    reply: subagents steer {item.run_id} TEXT")
    return EXIT_OK


def agents_list(*, json: Json = False) -> int:
    """Agents that are configured here, and whether this session may use them.

    For example:

        subagents agents list

        subagents agents list --json
    """
    with connect(starts=True) as client:
        answer = client.get("/v1/agents", {"cwd": caller_cwd()})
    if json:
        output.document(answer)
        return EXIT_OK
    output.table(
        ["agent", "runtime", "cost", "may use", "description"],
        [
            [
                agent.id,
                agent.runtime or "- (only calls)",
                agent.cost_tier or "-",
                "yes" if agent.allowed else "no",
                agent.description or "",
            ]
            for agent in view(answer, Agents).agents
        ],
    )
    return EXIT_OK


def agents_show(
    agent: Annotated[str, Parameter(help="Its id.", metavar="AGENT")], /, *, json: Json = False
) -> int:
    """One agent's card.

    For example:

        subagents agents show command

        subagents agents show researcher --json
    """
    with connect(starts=True) as client:
        answer = client.get("/v1/agents", {"cwd": caller_cwd()})
    listed = answer.get("agents")
    cards = {
        str(card.get("id")): card
        for card in (listed if isinstance(listed, list) else [])
        if isinstance(card, dict)
    }
    card = cards.get(agent)
    if card is None:
        near = difflib.get_close_matches(agent, list(cards), n=1)
        raise NotFound(
            f"no agent {agent!r} is configured",
            hint=f"did you mean {near[0]!r}?" if near else f"agents: {', '.join(sorted(cards))}",
        )
    if json:
        output.document(card)
        return EXIT_OK
    for name, value in card.items():
        if value not in (None, "", [], {}):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            output.line(f"{name + ':':<14}{shown}")
    return EXIT_OK
