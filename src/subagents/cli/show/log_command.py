"""``log``: what a run's worker said and did, and ``--summary`` of it."""

import math
import sys
from typing import Annotated, Final

from subagents.api.wire.log_answers import LogPage, LogSummary
from subagents.api.wire.wire_struct import read
from subagents.cli import output
from subagents.cli.connection import POLL_S, connect
from subagents.cli.flags import WHEN, Parameter, Run, moment
from subagents.cli.runs.selectors import path_of
from subagents.cli.show.log_lines import shown
from subagents.client.client import Client, Document, Query, persistently
from subagents.errors import UsageError
from subagents.text import harmless

FOLLOW_LINES: Final = 1_000
"""The lines of one page while following."""
SUMMARY_S: Final = 60.0
"""How long a summarizer may take to answer."""


def log(
    run: Run,
    /,
    *,
    offset: Annotated[
        int | None,
        Parameter(help="From line N on (0 is the first). Default: the newest.", metavar="N"),
    ] = None,
    limit: Annotated[
        int | None, Parameter(help="At most N lines. Default: 50.", metavar="N")
    ] = None,
    tail: Annotated[
        int | None, Parameter(name=("--tail", "-n"), help="The newest N lines.", metavar="N")
    ] = None,
    grep: Annotated[
        str | None,
        Parameter(help="Only lines that this regular expression finds.", metavar="REGEX"),
    ] = None,
    since: Annotated[
        str | None,
        Parameter(help=f"Only lines since then: {WHEN}.", metavar="WHEN"),
    ] = None,
    type_: Annotated[
        tuple[str, ...],
        Parameter(
            name=("--type", "-t"),
            help="Only text, thinking, tool, error, system or user; repeatable.",
            metavar="TYPE",
        ),
    ] = (),
    attempt: Annotated[int | None, Parameter(help="Only attempt N.", metavar="N")] = None,
    after_seq: Annotated[
        int | None, Parameter(help="Only lines behind this number.", metavar="N")
    ] = None,
    summary: Annotated[
        bool, Parameter(help="What was done, in at most 40 lines, instead of the lines.")
    ] = False,
    follow: Annotated[
        bool, Parameter(name=("--follow", "-f"), help="Go on until the run has ended.")
    ] = False,
    json: Annotated[
        bool,
        Parameter(name="--json", help="Print JSON on stdout; with --follow a document a line."),
    ] = False,
) -> None:
    """Show what the worker said and did.

    The sign before a line: `+` tool, `!` error, `-` system, `>` input, `~` thinking, none for text.

    For example:

        subagents log last --grep 'error|fail'

        subagents log tests --since 5m --follow
    """
    if follow and (offset is not None or summary):
        other = "--offset" if offset is not None else "--summary"
        raise UsageError(f"--follow and {other} exclude each other", details={"field": "--follow"})
    asked: Query = {
        "offset": offset,
        "limit": limit,
        "tail": tail,
        "grep": grep,
        "since": moment(since, "--since"),
        "type": ",".join(type_) or None,
        "attempt": attempt,
        "afterSeq": after_seq,
        "summary": 1 if summary else None,
    }
    with connect() as client:
        path = path_of(run, "/log")
        if summary:
            _print_summary(client.get(path, asked, timeout_s=SUMMARY_S), json=json)
            return
        answer = client.get(path, asked)
        if json and not follow:
            output.document(answer)
            return
        printed = _print_page(answer, json=json, is_first=True)
        if follow:
            _follow(client, printed, asked, json=json)
        else:
            _say_what_is_missing(printed, asked)


def _follow(client: Client, page: LogPage, asked: Query, *, json: bool) -> None:
    """Go on from the cursor until the run ended; a daemon that dies meanwhile is waited for."""
    path = path_of(page.run_id, "/log")
    # Without ``since``, whose time has come: what is behind the cursor is newer.
    kept = {name: asked[name] for name in ("grep", "type", "attempt")}
    while not page.ended:
        sys.stdout.flush()
        query: Query = {
            **kept,
            "afterSeq": page.next_seq,
            "limit": FOLLOW_LINES,
            "waitSeconds": int(POLL_S),
        }
        answer = persistently(
            lambda query=query: client.get(path, query, timeout_s=POLL_S),  # type: ignore[misc]  # bound by the default
            until=math.inf,
        )
        page = _print_page(answer, json=json)


def _print_page(answer: Document, *, json: bool, is_first: bool = False) -> LogPage:
    """The lines; as JSON a document for each page."""
    page = read(answer, LogPage)
    if json:
        if is_first or page.lines or page.ended:
            output.record(answer)
        return page
    sys.stdout.writelines(f"{text}\n" for line in page.lines for text in shown(line))
    return page


def _say_what_is_missing(page: LogPage, asked: Query) -> None:
    count = len(page.lines)
    if not count:
        whole = f" of {page.total_lines}" if page.total_lines else ""
        output.note(f"No lines{whole}{f': {page.note}' if page.note else '.'}")
        return
    if count < page.total_lines:
        last = page.offset + count - 1
        how = "--offset, --limit" if asked["offset"] is not None else "--limit, --offset"
        output.note(f"Lines {page.offset} to {last} of {page.total_lines}: {how}")
    if page.dropped_lines:
        output.note(f"{page.dropped_lines} older lines were dropped (max_transcript_mb)")


def _print_summary(answer: Document, *, json: bool) -> None:
    if json:
        output.document(answer)
        return
    found = read(answer, LogSummary)
    output.data(harmless(found.summary))
    if found.note:
        output.note(f"Facts only, without a model: {found.note}")
    elif found.summary_run:
        output.note(f"Written by {found.written_by}: {found.summary_run}")
