"""``list``: a page of runs, newest first."""

import time
from typing import TYPE_CHECKING, Final, Literal

from subagents.cli import output
from subagents.cli.connection import connect, warn_of_set_aside
from subagents.cli.flags import Annotated, Json, Parameter
from subagents.cli.reading import read
from subagents.cli.runs import selectors
from subagents.cli.show import render
from subagents.cli.show.search_query import EVERYTHING, Archived, Search
from subagents.client.client import Client
from subagents.text import counted, duration, milliseconds_of

if TYPE_CHECKING:
    from subagents.api.wire.run_answers import RunForest, RunPage, RunRow

NO_RUNS: Final = "No runs. Start one: subagents run 'echo hello'"


def list_(
    selector: Annotated[
        str | None,
        Parameter(
            help="`tree:RUN`, `phase:NAME,…`, `plan:NAME`, `tag:NAME` or `dir:DIR`.",
            metavar="SELECTOR",
        ),
    ] = None,
    /,
    *,
    search: Search = EVERYTHING,
    archived: Archived = False,
    limit: Annotated[int, Parameter(help="Show at most N runs. Default: 50.", metavar="N")] = 50,
    offset: Annotated[int, Parameter(help="Skip the first N.", metavar="N")] = 0,
    roots: Annotated[bool, Parameter(help="Only runs that no other run spawned.")] = False,
    sort: Annotated[
        Literal["newest", "oldest", "ended", "ended_oldest"] | None,
        Parameter(
            help="Which come first; `ended`, `ended_oldest`: only ended runs, by when they ended."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List runs, newest first.

    For example:

        subagents list --dir . --phase running,retry_wait

        subagents list --outcome error,timeout --since 2d

        subagents list tree:nightly --json
    """
    wanted = {**search, **({} if selector is None else selectors.query_of(selector))}
    window = {
        "archived": 1 if archived else None,
        "limit": limit,
        "offset": offset or None,
        "roots": 1 if roots else None,
        "sort": sort,
    }
    with connect() as client:
        answer = client.get("/v1/runs", {**wanted, **window})
        found: RunPage = read(client, answer, "run_answers:RunPage")
        # As it came: before another call overwrites what was received.
        if json:
            output.document(client.received)
            return
        warn_of_set_aside(answer)
        if not found.runs and not found.hidden:
            is_search = wanted or offset
            output.note(nothing(client, "No run fits: subagents list") if is_search else NO_RUNS)
    now_ms = time.time() * 1000
    if found.runs:
        output.table(
            ["run", "state", "label", "agent", "time", "age", "now"],
            [_cells(row, now_ms) for row in found.runs],
            styles={1: 1},
            cut=(2, 6),
        )
    _say_more(found)
    say_hidden(found)
    _say_scheduled(found, now_ms)


def _say_scheduled(found: "RunPage", now_ms: float) -> None:
    due = [(each.name, milliseconds_of(each.next_at)) for each in found.scheduled]
    parts = [
        f"{name} in {duration(max(round(at_ms - now_ms), 0)).split()[0]}"
        for name, at_ms in due
        if at_ms is not None
    ]
    if parts:
        output.note(f"scheduled: {', '.join(parts)} (subagents schedule list)")


def _say_more(found: "RunPage") -> None:
    if found.total_is_bound:
        output.note(f"{len(found.runs)} of more than {found.total:,}: --offset, --limit")
    elif found.total is not None and found.total > len(found.runs) + found.offset:
        output.note(f"{found.total - len(found.runs) - found.offset} more: --offset, --limit")


def say_hidden(found: "RunPage | RunForest") -> None:
    """How many runs are not shown because they are archived."""
    if found.hidden:
        more = "more than " if found.hidden_is_bound else ""
        output.note(f"{more}{counted(found.hidden, 'archived run')} not shown: --archived")


def nothing(client: Client, elsewhere: str) -> str:
    """What to say where no run is shown and none is hidden: there may be others."""
    everything = client.get("/v1/runs", {"archived": 1, "limit": 1})
    return elsewhere if everything.get("total") else NO_RUNS


def _cells(row: "RunRow", now_ms: float) -> list[str]:
    took, age = render.elapsed(row, now_ms), render.age(row.created_at, now_ms)
    now = render.now_text(row)
    return [row.run_id, row.shown_state, row.label, row.agent_id, took, age, now]
