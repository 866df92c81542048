"""``inbox``: messages, what needs a person now, and the alerts that there were.

A message counts as read only once it is printed.
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from subagents.cli import output
from subagents.cli.connection import connect, is_worker
from subagents.cli.flags import Annotated, Json, Parameter, chosen, refusal, refuse_unused
from subagents.cli.reading import read
from subagents.cli.runs import follow
from subagents.cli.runs.selectors import path_of
from subagents.cli.show import render
from subagents.text import duration, milliseconds_of, one_line

if TYPE_CHECKING:
    from subagents.api.wire.event_answers import AlertHistory, RaisedAlert
    from subagents.api.wire.message_answers import Attention, Inbox, Message

MESSAGES_SHOWN: Final = 50
ALERTS_SHOWN: Final = 20
ALERTS: Final = "Alerts"


def inbox(
    *runs: Annotated[
        str,
        Parameter(help="Of --dismiss and --redeliver; of --alerts: one.", metavar="[RUN...]"),
    ],
    attention: Annotated[
        bool, Parameter(help="What needs a person now, in all sessions; nothing is marked as read.")
    ] = False,
    all_: Annotated[
        bool, Parameter(name="--all", help="Include read messages and mark nothing as read.")
    ] = False,
    full: Annotated[bool, Parameter(help="Print whole texts, as models read them.")] = False,
    limit: Annotated[
        int | None,
        Parameter(
            help=f"Show at most N. Default: {MESSAGES_SHOWN} messages, {ALERTS_SHOWN} alerts.",
            metavar="N",
        ),
    ] = None,
    dismiss: Annotated[
        bool, Parameter(help="Take these from --attention; who asked still gets their results.")
    ] = False,
    redeliver: Annotated[
        bool, Parameter(help="Offer the results of these once more: read and lost, or given up.")
    ] = False,
    alerts: Annotated[
        bool,
        Parameter(
            help="Alerts that were raised, newest first, and what became of each.", group=ALERTS
        ),
    ] = False,
    kind: Annotated[
        str | None,
        Parameter(
            help="Only these kinds, such as stuck,budget_alert.", metavar="KIND", group=ALERTS
        ),
    ] = None,
    cursor: Annotated[
        str | None,
        Parameter(
            help="Go on behind this alert: nextCursor in --json.", metavar="SEQ", group=ALERTS
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show new messages for this session (results, questions, notices) and mark them as read.

    A line each; workers get the whole texts. What a pipe's reader does not take stays unread.

    For example:

        subagents inbox

        subagents inbox --attention

        subagents inbox --alerts --kind stuck,failure_loop
    """
    view = chosen(attention=attention, alerts=alerts, dismiss=dismiss, redeliver=redeliver)
    if not alerts:
        refuse_unused("needs --alerts", kind=kind is not None, cursor=cursor is not None)
    if runs and not (dismiss or redeliver or (alerts and len(runs) == 1)):
        way_out = f"everything about it: subagents show {runs[0]}"
        raise refusal("RUN", "needs --alerts (of one), --dismiss or --redeliver", hint=way_out)
    if view:
        is_limited = not alerts and limit is not None
        refuse_unused(f"does not go with {view}", all=all_, full=full, limit=is_limited)
    if dismiss or redeliver:
        from subagents.cli.runs.control_commands import each_of  # noqa: PLC0415  seldom needed

        each_of(runs, view.removeprefix("--"), json=json)
        return
    most = (ALERTS_SHOWN if alerts else MESSAGES_SHOWN) if limit is None else limit
    if attention:
        _show_attention(json=json)
    elif alerts:
        _show_alerts(next(iter(runs), None), kind, most, cursor, json=json)
    else:
        _show_messages(most, with_read=all_, is_full=full, json=json)


def _show_messages(limit: int, *, with_read: bool, is_full: bool, json: bool) -> None:
    with connect() as client:
        if with_read:
            answer = client.get("/v1/inbox", {"all": 1, "limit": limit})
        else:
            answer = client.post("/v1/inbox", {"limit": limit})
    found: Inbox = read(client, answer, "message_answers:Inbox")
    messages = found.messages
    # With --all nothing was handed over, so there is nothing to mark as read.
    with follow.HandOver([] if with_read else [message.id for message in messages]) as handing_over:
        if json:
            output.document(client.received)
            sys.stdout.flush()
        elif not messages:
            output.note("No new messages.")
        elif is_full or is_worker():
            for message in messages:
                _print_message(message)
                handing_over.printed()
        else:
            _print_lines(messages, handing_over.printed, with_read=with_read)


def _print_lines(
    messages: "Sequence[Message]", printed: Callable[[], None], *, with_read: bool
) -> None:
    now_ms = time.time() * 1000
    rows = []
    for message in messages:
        age = render.age(message.sent_at, now_ms)
        what = render.word(message.status) if message.status else message.kind
        number = "-" if message.number is None else str(message.number)
        said = (message.headline or message.text).removeprefix(f"[subagent:{message.label}] ")
        seen = [("-" if message.consumed_at is None else "yes")] if with_read else []
        rows.append([number, what, message.run_id, message.label, age, *seen, said])
    headers = ["#", "what", "run", "label", "age", *(["read"] if with_read else []), "text"]
    text = len(headers) - 1
    cut = (3, text, *range(4, text))
    output.table(headers, rows, styles={1: 1}, cut=cut, why=(text,), printed=printed)
    for message in messages:
        if message.kind == "question" and message.consumed_at is None:
            output.note(f"answer #{message.number} with: subagents answer {message.id} TEXT")
    output.note("whole texts: subagents inbox --all --full")


def _print_message(message: "Message") -> None:
    age = ""
    sent_ms = milliseconds_of(message.sent_at)
    if sent_ms is not None:
        age = f"  {duration(round(time.time() * 1000 - sent_ms))} ago"
    mark = "  (read)" if message.consumed_at is not None else ""
    number = "" if message.number is None else f"#{message.number} "
    said = "".join(f"\n  {line}" for line in message.text.rstrip("\n").splitlines())
    # In one piece: a reader takes the whole of it or leaves it unread.
    text = f"  {message.run_id}{age}{mark}{said}\n"
    output.styled_line(text, f"{number}{message.kind}", message.kind)


def _show_attention(*, json: bool) -> None:
    with connect() as client:
        answer = client.get("/v1/attention")
    if json:
        output.document(client.received)
        return
    found: Attention = read(client, answer, "message_answers:Attention")
    if not found.items and not found.channels:
        output.note("Nothing needs your attention.")
    for channel in found.channels:
        text = f"  you are not told of runs through {channel.to}: {one_line(channel.problem or '')}"
        output.styled_line(text, "channel", "failed")
        name, _, is_named = channel.to.partition(" (")
        test = f"subagents notifications test {name}"
        output.line(f"    → {test if is_named else 'subagents doctor'}")
    now_ms = time.time() * 1000
    for item in found.items:
        since_ms = milliseconds_of(item.since_at)
        age = "" if since_ms is None else f", {duration(round(now_ms - since_ms))} ago"
        text = one_line(item.text, chars_max=200)
        said = f"{item.label} ({item.run_id}{age}): {text}"
        output.hanging("  ", said, mark=item.kind, word=item.kind)
        for command in item.commands:
            output.line(f"    → {command}")


def _show_alerts(
    run: str | None, kind: str | None, limit: int, cursor: str | None, *, json: bool
) -> None:
    with connect() as client:
        run_id = None if run is None else str(client.get(path_of(run, "/status"))["runId"])
        query = {"run": run_id, "kind": kind, "limit": limit, "cursor": cursor}
        answer = client.get("/v1/alerts", query)
    if json:
        output.document(client.received)
        return
    found: AlertHistory = read(client, answer, "event_answers:AlertHistory")
    now_ms = time.time() * 1000
    if found.alerts:
        output.table(
            ["age", "run", "alert", "fate", "text"],
            [_alert_cells(each, now_ms) for each in found.alerts],
            cut=(1, 4),
            why=(4,),
        )
    else:
        output.note("No alerts." if found.next_cursor is None else "None among the newest 5,000.")
    if found.next_cursor is not None:
        output.note(f"more: --cursor {found.next_cursor}")


def _alert_cells(alert: "RaisedAlert", now_ms: float) -> list[str]:
    fate = f"{alert.fate}, read" if alert.read_at is not None else alert.fate
    kind = alert.kind.replace("_", " ")
    shown = f"{kind} (now)" if alert.stands else kind
    age = render.age(alert.occurred_at, now_ms)
    return [age, alert.label, shown, fate, one_line(alert.text)]
