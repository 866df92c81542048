"""``stats`` and ``list --format``: what runs came to and what they cost, in groups or each."""

import csv
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Final, Literal

import msgspec

from subagents.api.wire.run_answers import RunRow
from subagents.api.wire.wire_struct import Document
from subagents.cli import output
from subagents.cli.connection import connect
from subagents.cli.flags import Json, Parameter, refusal, refuse_unused
from subagents.cli.runs import selectors
from subagents.cli.setup.agent_commands import show_attempts
from subagents.cli.show.search_query import EVERYTHING, Archived, Search
from subagents.text import camel, compact, cost_bound, duration, milliseconds_of

By = Literal["day", "agent", "model", "tag", "directory", "session", "outcome", "plan"]
NONE: Final = "-"


def _own(*names: str) -> dict[str, Callable[[RunRow], object]]:
    return {camel(name): attrgetter(name) for name in names}


def _used(*names: str) -> dict[str, Callable[[RunRow], object]]:
    def of(name: str) -> Callable[[RunRow], object]:
        return lambda row: getattr(row.usage, name, None)

    return {camel(name): of(name) for name in names}


COLUMNS: Final[Mapping[str, Callable[[RunRow], object]]] = {
    **_own("run_id", "label", "agent_id", "runtime", "model", "requester", "directory", "plan_id"),
    **_own("tags", "state"),
    "status": lambda row: getattr(row.outcome, "status", None),
    "reason": lambda row: getattr(row.outcome, "reason", None),
    "attempts": attrgetter("attempt"),
    **_own("created_at", "started_at", "ended_at"),
    "seconds": lambda row: None if (took_ms := _took_ms(row)) is None else took_ms / 1000,
    **_used("tokens_in", "tokens_out", "cost_usd"),
    **_own("task", "took_ms", "run_status"),
    **_used("tokens_cache_read", "tokens_cache_write"),
}
"""The columns of a table for other programs; what is not known is empty."""


def export(form: str, search: Mapping[str, str], *, archived: bool) -> None:
    """Print all runs that fit, newest first, for a spreadsheet or another program.

    Usage is that of each run alone, so that it can be added up. What nobody reported is empty.
    """
    rows = _found(search, archived=archived)
    if form == "csv":
        table = csv.writer(sys.stdout, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows([_cell(value) for value in _values(row).values()] for row in rows)
        return
    if form == "json":
        output.document({"runs": [_values(row) for row in rows]})
        return
    for row in rows:
        output.record(_values(row))


def _values(row: RunRow) -> Document:
    return {name: value(row) for name, value in COLUMNS.items()}


def _cell(value: object) -> object:
    """A cell as spreadsheets take it."""
    if isinstance(value, list):
        value = " ".join(value)
    # A label or task of somebody else's that begins like a formula must not run as one.
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return value


def _found(query: Mapping[str, str], *, archived: bool) -> list[RunRow]:
    with connect() as client:
        return selectors.listed(client, {**query, "archived": 1 if archived else None})


class Group(msgspec.Struct, kw_only=True, rename="camel"):
    """Runs that have something in common."""

    name: str
    runs: int = 0
    ok: int = 0
    failed: int = 0
    """Ended, but neither ok nor cancelled."""
    cancelled: int = 0
    active: int = 0
    seconds: float = 0.0
    """The time that all of them together were at work."""
    tokens: int = 0
    cost_usd: float = 0.0
    cost_unknown_runs: int = 0
    """Runs that used a model and whose cost was not reported."""

    def add(self, row: RunRow) -> None:
        self.runs += 1
        if row.outcome is None:
            self.active += 1
        elif row.outcome.is_ok:
            self.ok += 1
        elif row.outcome.status == "cancelled":
            self.cancelled += 1
        else:
            self.failed += 1
        self.seconds += (_took_ms(row) or 0) / 1000
        if row.usage is not None:
            self.tokens += row.usage.tokens or 0
            self.cost_usd += row.usage.cost_usd or 0.0
            self.cost_unknown_runs += row.usage.cost_unknown_runs


KEYS: Final[Mapping[By, Callable[[RunRow], Sequence[str]]]] = {
    "day": lambda row: [_day(row.created_at)],
    "agent": lambda row: [row.agent_id],
    "model": lambda row: [row.model or NONE],
    "tag": lambda row: row.tags or [NONE],
    "directory": lambda row: [row.directory or NONE],
    "session": lambda row: [row.requester],
    "outcome": lambda row: [row.outcome.status if row.outcome else row.state],
    "plan": lambda row: [row.plan_id or NONE],
}


def stats(
    agent: Annotated[str | None, Parameter(help="Only this agent.", metavar="AGENT")] = None,
    /,
    *,
    by: Annotated[
        By | None, Parameter(help="What to group by. Default: day; with --attempts, agent.")
    ] = None,
    cost: Annotated[bool, Parameter(help="The dearest first.")] = False,
    attempts: Annotated[
        bool, Parameter(help="How attempts ended: success, verified, time, tokens, by agent.")
    ] = False,
    days: Annotated[
        int | None,
        Parameter(metavar="N", is_shown=False),
    ] = None,
    search: Search = EVERYTHING,
    archived: Archived = False,
    json: Json = False,
) -> None:
    """Count runs, their time, tokens and cost, in groups. Days are those of this machine.

    A run with several tags counts under each of them. With --attempts: how reliable agents are.
    Where there was a contract, only verified attempts count as success; the interval contains the
    true rate with a probability of 95 %, and `-` means unknown. They are counted by whole UTC days,
    of the last 30 without --since.

    For example:

        subagents stats --by agent --since 7d

        subagents stats --cost --by directory --archived --json

        subagents stats --attempts researcher --by tag --since 7d
    """
    if agent is not None:
        if "agentId" in search:
            raise refusal("--agent", f"and {agent}: name one agent, once")
        search = {**search, "agentId": agent}
    if attempts:
        refuse_unused("does not go with --attempts", cost=cost, archived=archived)
        show_attempts(by or "agent", search, days=days, json=json)
        return
    refuse_unused("needs --attempts", days=days is not None)
    by = by or "day"
    groups = grouped(_found(search, archived=archived), by)
    if cost:
        groups.sort(key=lambda each: -each.cost_usd)
    if json:
        output.document({"by": by, "groups": groups})
        return
    if not groups:
        output.note("No run fits: subagents list")
        return
    output.table(
        [by, "runs", "ok", "failed", "cancelled", "active", "time", "tokens", "cost"],
        [_line(each) for each in groups],
        cut=(0,),
    )


def grouped(rows: Iterable[RunRow], by: By) -> list[Group]:
    """The runs in groups: days newest first, anything else by its name."""
    found: dict[str, Group] = {}
    for row in rows:
        for name in KEYS[by](row):
            found.setdefault(name, Group(name=name)).add(row)
    return [found[name] for name in sorted(found, reverse=by == "day")]


def _line(group: Group) -> list[str]:
    tokens = compact(group.tokens) if group.tokens else NONE
    known = group.cost_usd or group.cost_unknown_runs
    cost = cost_bound(group.cost_usd, unknown_runs=group.cost_unknown_runs) if known else NONE
    counts = map(str, (group.runs, group.ok, group.failed, group.cancelled, group.active))
    return [group.name, *counts, duration(round(group.seconds * 1000)), tokens, cost]


def _took_ms(row: RunRow) -> int | None:
    began_ms, ended_ms = milliseconds_of(row.started_at), milliseconds_of(row.ended_at)
    return None if began_ms is None or ended_ms is None else round(ended_ms - began_ms)


def _day(at: str | None) -> str:
    at_ms = milliseconds_of(at)
    return NONE if at_ms is None else time.strftime("%Y-%m-%d", time.localtime(at_ms / 1000))
