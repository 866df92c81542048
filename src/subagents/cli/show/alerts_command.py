"""``alerts``: alerts that were raised, newest first, and what became of each."""

import time
from typing import Annotated, Final

from subagents.api.wire.event_answers import AlertHistory, RaisedAlert
from subagents.api.wire.wire_struct import read
from subagents.cli import output
from subagents.cli.connection import connect
from subagents.cli.flags import Json, Parameter
from subagents.cli.runs.selectors import path_of
from subagents.cli.show import render
from subagents.text import one_line

LIMIT: Final = 20


def alerts(
    run: Annotated[str | None, Parameter(help="Only alerts of this run.", metavar="[RUN]")] = None,
    /,
    *,
    kind: Annotated[
        str | None, Parameter(help="Only these kinds, such as stuck,budget_alert.", metavar="KIND")
    ] = None,
    limit: Annotated[
        int, Parameter(help=f"Show at most N alerts. Default: {LIMIT}.", metavar="N")
    ] = LIMIT,
    cursor: Annotated[
        str | None, Parameter(help="Go on behind this alert: nextCursor in --json.", metavar="SEQ")
    ] = None,
    json: Json = False,
) -> None:
    """List alerts that were raised, newest first, and whether they were sent, held back or read.

    `subagents attention` shows what is wrong now; `subagents events --follow` brings new alerts.

    For example:

        subagents alerts --kind stuck,failure_loop

        subagents alerts docs --json
    """
    with connect() as client:
        run_id = None if run is None else str(client.get(path_of(run, "/status"))["runId"])
        query = {"run": run_id, "kind": kind, "limit": limit, "cursor": cursor}
        answer = client.get("/v1/alerts", query)
    if json:
        output.document(answer)
        return
    found, now_ms = read(answer, AlertHistory), time.time() * 1000
    if found.alerts:
        output.table(
            ["age", "run", "alert", "fate", "text"],
            [_cells(each, now_ms) for each in found.alerts],
            cut=(4, 1),
        )
    else:
        output.note("No alerts." if found.next_cursor is None else "None among the newest 5,000.")
    if found.next_cursor is not None:
        output.note(f"more: --cursor {found.next_cursor}")


def _cells(alert: RaisedAlert, now_ms: float) -> list[str]:
    fate = f"{alert.fate}, read" if alert.read_at is not None else alert.fate
    kind = alert.kind.replace("_", " ")
    shown = f"{kind} (now)" if alert.stands else kind
    age = render.age(alert.occurred_at, now_ms)
    return [age, alert.label, shown, fate, one_line(alert.text)]
