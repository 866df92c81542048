"""``events``: what happens to all runs, in one order, from any number on."""

import math
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, cast

from subagents.cli import output
from subagents.cli.connection import POLL_S, connect
from subagents.cli.flags import Parameter, refusal
from subagents.cli.runs.selectors import path_of
from subagents.client.client import Client, Document, persistently
from subagents.text import milliseconds_of, one_line

NEWEST: Final = 100
"""How far back it begins without ``--after``."""
LABEL_CELLS: Final = 24
LABEL_CELLS_NARROW: Final = 14
WIDE_CELLS: Final = 100
HEAD: Final = frozenset(
    {"seq", "type", "event", "agentId", "runId", "label", "occurredAt", "requester", "phase"}
)
"""Fields with a column of their own."""
JsonLines = Annotated[
    bool, Parameter(name="--json", help="Print JSON documents on stdout, one on each line.")
]
"""``--json`` of a command that goes on."""


def events(
    *,
    follow: Annotated[
        bool, Parameter(name=("--follow", "-f"), help="Keep printing new events.")
    ] = False,
    after: Annotated[
        int | None,
        Parameter(help="Only events after number N. Default: the newest 100.", metavar="N"),
    ] = None,
    run: Annotated[str | None, Parameter(help="Only events of this run.", metavar="RUN")] = None,
    alerts: Annotated[bool, Parameter(help="Only alerts, messages and completions.")] = False,
    json: JsonLines = False,
) -> None:
    """Print the events of all runs in order; with --follow, keep printing until Ctrl-C.

    For example:

        subagents events --follow --alerts

        subagents events --after 4711 --json
    """
    if after is not None and after < 0:
        raise refusal("--after", f"must be 0 or more, not {after}")
    with connect() as client:
        run_id = None if run is None else str(client.get(path_of(run, "/status"))["runId"])
        newest = _number(client.get("/v1/events"))
        if after is None:
            after = newest if follow else max(newest - NEWEST, 0)
        query = {"run": run_id, "level": "alerts" if alerts else "all"}
        for each in _pages(client, query, after, until=None if follow else newest):
            _print(each, json=json)


def _pages(
    client: Client, query: Mapping[str, str | None], after: int, *, until: int | None
) -> Iterator[Document]:
    """Every document behind ``after``; up to number ``until``, or for ever.

    A daemon that was restarted continues where the one before was.
    """
    wait_s = 0 if until is not None else int(POLL_S)
    while until is None or after < until:
        asked = {**query, "after": after, "wait": wait_s}
        # A single look fails at once; one that follows waits for the daemon to come back.
        answer = persistently(
            lambda asked=asked: client.get("/v1/events", asked, timeout_s=wait_s),  # type: ignore[misc]  # the default binds this one
            until=None if wait_s == 0 else math.inf,
        )
        # Numbers only grow, so one that is not there yet was given by another database.
        if answer.get("reset"):
            output.note(f"there is no event {after} yet: this is another database; starting over")
        found = cast("list[Document]", answer.get("events") or [])
        yield from found
        sys.stdout.flush()
        if _number(answer) <= after and until is not None:
            return
        after = _number(answer)


def _number(answer: Document) -> int:
    return cast("int", answer["seq"])


def _print(event: Document, *, json: bool) -> None:
    if json:
        output.record(event)
        return
    at_ms = milliseconds_of(str(event.get("occurredAt"))) or 0
    at = time.strftime("%H:%M:%S", time.localtime(at_ms / 1000))
    is_news = "event" in event
    name = event["event"] if is_news else event["type"]
    columns = output.columns()
    room = LABEL_CELLS if columns is None or columns >= WIDE_CELLS else LABEL_CELLS_NARROW
    label = output.within(one_line(str(event["label"])), room)
    filled = label + " " * (room - output.cells_wide(label))
    rest = " ".join(
        f"{key}={one_line(str(value), chars_max=80)}"
        for key, value in event.items()
        if key not in HEAD and value is not None
    )
    shown = rest if is_news else event["runId"]
    sign = "!" if is_news else " "
    whole = f"{event['seq']:>6} {at} {sign} {filled}  {name:<20}  {shown}".rstrip()
    output.line(output.within(whole, columns))
