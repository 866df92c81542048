"""``list``: a page of runs, newest first, or another view of them."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from subagents.cli import output
from subagents.cli.connection import connect, warn_of_set_aside
from subagents.cli.flags import (
    Annotated,
    Argument,
    Json,
    Parameter,
    SomeRuns,
    Together,
    chosen,
    refuse_unused,
)
from subagents.cli.reading import read
from subagents.cli.runs import selectors
from subagents.cli.show import render
from subagents.cli.show.search_query import (
    BOTH,
    EVERYTHING,
    NO_RUNS,
    Archived,
    Search,
    nothing,
    say_hidden,
)
from subagents.client.client import Query
from subagents.errors import UsageError
from subagents.text import milliseconds_of, upcoming

if TYPE_CHECKING:
    from subagents.api.wire.run_answers import RunPage, RunRow

VIEW: Final = "Another view"
MORE: Final = ": --limit and --offset, or all of them with --format jsonl"


class View(NamedTuple):
    """Another way to look at the runs that a list finds; at most one."""

    watch: bool = False
    now: bool = False
    tree: bool = False
    form: str | None = None
    interval: str | None = None
    once: bool = False


VIEW_FLAGS: Final = (
    Argument(
        "watch",
        ("--watch", "-w"),
        kind=bool,
        help="Show them live until they end.",
        group=VIEW,
    ),
    Argument(
        "now",
        ("--now",),
        kind=bool,
        help="What each does now, with time, tokens and last activity.",
        group=VIEW,
    ),
    Argument(
        "tree", ("--tree",), kind=bool, help="Together with the runs they spawned.", group=VIEW
    ),
    Argument(
        "form",
        ("--format",),
        choices=("csv", "json", "jsonl"),
        help="All that fit, for another program.",
        group=VIEW,
    ),
    Argument(
        "interval",
        ("--interval",),
        help="With --watch: the time between two updates. Default: 1s.",
        metavar="DURATION",
        group=VIEW,
    ),
    Argument("once", ("--once",), kind=bool, is_shown=False),
)
AS_A_LIST: Final = View()


def list_(
    *runs: SomeRuns,
    view: Annotated[View, Together(View, lambda: VIEW_FLAGS)] = AS_A_LIST,
    search: Search = EVERYTHING,
    archived: Archived = False,
    limit: Annotated[
        int | None, Parameter(help="Show at most N runs. Default: 50.", metavar="N")
    ] = None,
    offset: Annotated[int, Parameter(help="Skip the first N.", metavar="N")] = 0,
    roots: Annotated[bool, Parameter(help="Only runs that no other run spawned.")] = False,
    sort: Annotated[
        Literal["newest", "oldest", "ended", "ended_oldest", "cost", "took", "tokens"] | None,
        Parameter(
            help="Which come first; `ended`, `ended_oldest`: only ended runs, by when they ended;"
            " `cost`, `took`, `tokens`: the most of the newest 1,000 that fit."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List runs, newest first.

    --watch and --now show the runs that are named, or without one those that have not ended.

    For example:

        subagents list --dir . --state working,needs-you

        subagents list --watch

        subagents list --state failed --since 2d --format csv
    """
    page = {"limit": limit is not None, "offset": bool(offset), "roots": roots, "sort": bool(sort)}
    is_chosen = chosen(watch=view.watch, now=view.now, tree=view.tree, format=view.form is not None)
    if not view.watch:
        refuse_unused("needs --watch", interval=view.interval is not None, once=view.once)
    if is_chosen:
        at_work, how = view.watch or view.now, f"{is_chosen} {view.form or ''}".rstrip()
        refuse_unused(f"does not go with {how}", **page, archived=archived and at_work)
    if view.watch:
        from subagents.cli.show.watch_command import watch_runs  # noqa: PLC0415  as needed

        watch_runs(runs, search, interval=view.interval or "1s", is_once=view.once, json=json)
    elif view.now:
        from subagents.cli.show.run_status import show_now  # noqa: PLC0415  as needed

        show_now(runs, search, json=json)
    elif view.tree:
        from subagents.cli.show.show_commands import show_tree  # noqa: PLC0415  as needed

        show_tree(runs, search, archived=archived, json=json)
    elif view.form is not None:
        from subagents.cli.show.report_commands import export  # noqa: PLC0415  as needed

        export(view.form, {**search, **_selected(runs)}, archived=archived)
    elif runs and not _selected(runs):
        refuse_unused("is about a search, not about runs that are named", **page, archived=archived)
        _list_named(runs, search, json=json)
    else:
        window = {
            "archived": 1 if archived else None,
            "limit": 50 if limit is None else limit,
            "offset": offset or None,
            "roots": 1 if roots else None,
            "sort": sort,
        }
        _list_page({**search, **_selected(runs)}, window, json=json)


def _selected(runs: Sequence[str]) -> dict[str, str]:
    """The search that one selector stands for; nothing for runs that are named."""
    return selectors.query_of(runs[0]) if len(runs) == 1 and selectors.is_several(runs[0]) else {}


def _list_named(runs: Sequence[str], search: Mapping[str, str], *, json: bool) -> None:
    if search:
        raise UsageError(BOTH)
    with connect() as client:
        names = selectors.expand(client, runs)
        found = [client.get(selectors.path_of(each)) for each in names]
        rows: list[RunRow] = [read(client, each, "run_answers:RunRow") for each in found]
    if json:
        from subagents.api.wire import run_answers, wire_struct  # noqa: PLC0415  slow to import

        output.document({"runs": [wire_struct.read(each, run_answers.RunRow) for each in found]})
    else:
        _table(rows, time.time() * 1000)


def _list_page(wanted: Mapping[str, str], window: Query, *, json: bool) -> None:
    with connect() as client:
        answer = client.get("/v1/runs", {**wanted, **window})
        found: RunPage = read(client, answer, "run_answers:RunPage")
        # As it came: before another call overwrites what was received.
        if json:
            output.document(client.received)
            _say_more(found)
            return
        warn_of_set_aside(answer)
        if not found.runs and not found.hidden:
            is_search = wanted or window["offset"]
            output.note(nothing(client, "No run fits: subagents list") if is_search else NO_RUNS)
    now_ms = time.time() * 1000
    if found.runs:
        _table(found.runs, now_ms)
    _say_more(found)
    say_hidden(found)
    if not wanted:
        _say_scheduled(found, now_ms)


def _table(rows: "Sequence[RunRow]", now_ms: float) -> None:
    output.table(
        ["run", "state", "label", "agent", "time", "age", "now"],
        [_cells(row, now_ms) for row in rows],
        styles={1: 1},
        cut=(2, 6, 5, 4, 3),
        why=(6,),
    )


def _say_scheduled(found: "RunPage", now_ms: float) -> None:
    due = [(each.name, milliseconds_of(each.next_at)) for each in found.scheduled]
    parts = [f"{name} {upcoming(at_ms, now_ms)}" for name, at_ms in due if at_ms is not None]
    if parts:
        output.note(f"scheduled: {', '.join(parts)} (subagents schedule list)")


def _say_more(found: "RunPage") -> None:
    if found.total_is_bound:
        output.note(f"{len(found.runs)} of more than {found.total:,} runs{MORE}")
    elif found.total is not None and found.total > len(found.runs) + found.offset:
        output.note(f"{found.total - len(found.runs) - found.offset} more runs{MORE}")


def _cells(row: "RunRow", now_ms: float) -> list[str]:
    took, age = render.elapsed(row, now_ms), render.age(row.created_at, now_ms)
    now = render.now_text(row)
    state = render.word(row.shown_state)
    return [row.run_id, state, row.label, row.agent_id, took, age, now]
