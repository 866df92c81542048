"""``wait`` and ``inbox``: take what came in; it counts as read only once it is printed."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from subagents.cli import long_results, output
from subagents.cli.connection import connect, is_worker
from subagents.cli.flags import Annotated, Json, Parameter, SomeRuns
from subagents.cli.reading import read
from subagents.cli.runs import follow, selectors
from subagents.cli.show import render
from subagents.errors import EXIT_INTERRUPTED
from subagents.text import duration, milliseconds_of, parse_duration

if TYPE_CHECKING:
    from subagents.api.wire.message_answers import Inbox, Message


def wait(
    *runs: SomeRuns,
    any_: Annotated[
        bool, Parameter(name="--any", help="Wait until one run has ended instead of all.")
    ] = False,
    timeout: Annotated[
        str | None, Parameter(help="Stop waiting after this long.", metavar="DURATION")
    ] = None,
    json: Json = False,
) -> int:
    """Wait for runs and print their results. Without a run, wait for all of this session's runs.

    The exit code is 0 if all runs succeeded, 5 if one did not, 6 if its verification failed and 8
    if some are still pending after --timeout.

    For example:

        subagents wait tests lint --timeout 10m

        subagents wait --any --json
    """
    timeout_s = None if timeout is None else parse_duration(timeout, field="--timeout") / 1000
    with connect(starts=True) as client:
        named = selectors.expand(client, runs)
    is_live = follow.can_draw() and not json and bool(named) and timeout_s != 0
    until = "any" if any_ else "all"
    try:
        waiting = follow.wait_for(
            named, until=until, timeout_s=timeout_s, is_live=is_live, starts=True
        )
    except KeyboardInterrupt:
        output.note("\nStopped waiting; the runs continue.")
        return EXIT_INTERRUPTED
    with follow.telling(waiting, is_any=any_):
        if json:
            is_whole = long_results.print_document(waiting.document)
        else:
            is_whole = follow.print_ends(waiting.result)
            if not any(waiting.document.values()):
                output.note("Nothing to wait for.")
    code = follow.exit_code(waiting.result, is_any=any_)
    return long_results.exit_code(code, is_whole=is_whole)


def inbox(
    *,
    all_: Annotated[
        bool, Parameter(name="--all", help="Include read messages and mark nothing as read.")
    ] = False,
    full: Annotated[bool, Parameter(help="Print whole texts, as models read them.")] = False,
    limit: Annotated[int, Parameter(help="Show at most N. Default: 50.", metavar="N")] = 50,
    json: Json = False,
) -> None:
    """Show new messages for this session (results, questions, notices) and mark them as read.

    A line each; workers get the whole texts. What a pipe's reader does not take stays unread.

    For example:

        subagents inbox

        subagents inbox --all --full
    """
    with connect() as client:
        if all_:
            answer = client.get("/v1/inbox", {"all": 1, "limit": limit})
        else:
            answer = client.post("/v1/inbox", {"limit": limit})
    found: Inbox = read(client, answer, "message_answers:Inbox")
    messages = found.messages
    # With --all nothing was handed over, so there is nothing to mark as read.
    with follow.HandOver([] if all_ else [message.id for message in messages]) as handing_over:
        if json:
            output.document(client.received)
            sys.stdout.flush()
        elif not messages:
            output.note("No new messages.")
        elif full or is_worker():
            for message in messages:
                _print_message(message)
                handing_over.printed()
        else:
            _print_lines(messages, handing_over.printed, with_read=all_)


def _print_lines(
    messages: "Sequence[Message]", printed: Callable[[], None], *, with_read: bool
) -> None:
    now_ms = time.time() * 1000
    rows = []
    for message in messages:
        age = render.age(message.sent_at, now_ms)
        what = message.status or message.kind
        number = "-" if message.number is None else str(message.number)
        said = message.headline or message.text
        seen = [("-" if message.consumed_at is None else "yes")] if with_read else []
        rows.append([number, what, message.run_id, message.label, age, *seen, said])
    headers = ["#", "what", "run", "label", "age", *(["read"] if with_read else []), "text"]
    output.table(headers, rows, styles={1: 1}, cut=(len(headers) - 1, 3), printed=printed)
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
