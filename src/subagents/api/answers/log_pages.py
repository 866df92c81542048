"""Pages of a run's transcript: what callers may ask for, and the answer they get."""

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from subagents.api.calls.call import Query
from subagents.api.calls.services import Services
from subagents.api.wire import log_answers as wire
from subagents.api.wire.decoding import one_of
from subagents.api.wire.parameters import choices, flag, number, word
from subagents.api.wire.wire_struct import made
from subagents.domain.run.run import Run
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import LineType
from subagents.domain.transcript.transcript_query import (
    GREP_CHARS_MAX,
    LOG_LINES,
    LOG_LINES_MAX,
    Line,
    LogPage,
    LogQuery,
)
from subagents.errors import NotFound, UsageError
from subagents.text import parse_time

WAIT_SECONDS_MAX: Final = 50
ATTEMPT_MAX: Final = 10_000
NUMBER_MAX: Final = 10**12
"""The highest offset or sequence number that is taken."""
ANSWER_BYTES_MAX: Final = 8 * 1024 * 1024
"""The lines of one answer; ten thousand of the longest would be ten times as much."""
DELETED: Final = "its transcript was deleted when it ended (cleanup: delete)"
LOOK_S: Final = 0.2
"""The pause between two looks for a reader that waits: a worker that writes without pause costs
five reads a second, not one for each of its lines."""
TOOL_CALLS: Final = "tool_use"
"""What harnesses call a tool's call in their own streams. No line of ours holds the word, so a
search for it alone means the lines of type tool."""
PARAMETERS: Final = (
    number("offset", "The first line, from 0; without it the newest come.", high=NUMBER_MAX),
    number("limit", "At most so many lines.", low=1, high=LOG_LINES_MAX),
    number("tail", "So many of the newest lines.", high=LOG_LINES_MAX),
    word("grep", "A regular expression that the line matches."),
    flag("hits", "With grep: where it matches in each line, too."),
    word("since", "Only newer lines: 5m, 2h, 1d, or an ISO time."),
    choices("type", "Only lines of these types.", LineType),
    number("attempt", "Only lines of this attempt.", low=1, high=ATTEMPT_MAX),
    number("afterSeq", "Only lines behind this number.", high=NUMBER_MAX),
    number("waitSeconds", "With afterSeq: wait so long for one.", high=WAIT_SECONDS_MAX, default=0),
    flag("summary", "A digest instead of lines."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The part of a log that is wanted, in a caller's words; None = not given."""

    offset: int | None = None
    limit: int | None = None
    tail: int | None = None
    """So many of the newest lines; another word for ``limit`` without ``offset``."""
    grep: str | None = None
    hits: bool = False
    """Where it matches, too."""
    since: str | None = None
    type: str | None = None
    """One type, or several with commas."""
    attempt: int | None = None
    after_seq: int | None = None
    wait_s: int = 0
    """Hold the line so long when there is nothing behind ``after_seq`` yet."""
    summary: bool = False


def asked_in(query: Query) -> Asked:
    """The parameters of an HTTP call; ``query`` has none but ``PARAMETERS``.

    Raises:
        UsageError: Names the one that is wrong, and its bounds.
    """

    def number(name: str) -> int | None:
        return query.number(name) if name in query else None

    return Asked(
        offset=number("offset"),
        limit=number("limit"),
        tail=number("tail"),
        grep=query.get("grep"),
        hits=query.flag("hits"),
        since=query.get("since"),
        type=query.get("type"),
        attempt=number("attempt"),
        after_seq=number("afterSeq"),
        wait_s=query.number("waitSeconds"),
        summary=query.flag("summary"),
    )


def query_for(asked: Asked, run: Run, *, now_ms: int) -> LogQuery:
    """The caller's words as the store takes them.

    With ``after_seq`` and without a window the oldest lines behind it come, so that a reader that
    continues loses none; else without ``offset`` the newest.

    Raises:
        UsageError: Names the field that is wrong, or two that exclude each other.
        NotFound: The run has no such attempt.
    """
    _check_together(asked)
    types = types_in(asked.type)
    grep = asked.grep
    if grep is not None and not 1 <= len(grep) <= GREP_CHARS_MAX:
        raise _wrong("grep", f"must have 1 to {GREP_CHARS_MAX} characters")
    if grep == TOOL_CALLS and not types:
        # Answered by the type: as a pattern it would find nothing.
        grep, types = None, (LineType.TOOL,)
    newest = len(run.attempts)
    if asked.attempt is not None and asked.attempt > newest:
        raise NotFound(
            f"run {run.id} has {newest} attempts, no attempt {asked.attempt}",
            details={"field": "attempt"},
        )
    since_ms = None
    if asked.since is not None:
        since_ms = parse_time(asked.since, now_ms=now_ms, field="since")
    limit = asked.tail if asked.tail is not None else asked.limit
    reads_on = asked.after_seq is not None and asked.tail is None
    return LogQuery(
        offset=0 if asked.offset is None and reads_on else asked.offset,
        limit=LOG_LINES if limit is None else limit,
        grep=grep,
        hits=asked.hits,
        since_ms=since_ms,
        types=types,
        attempt=asked.attempt,
        after_seq=asked.after_seq,
    )


def _check_together(asked: Asked) -> None:
    """Refuse what says two things at once.

    Raises:
        UsageError: Names both.
    """
    given = {
        "offset": asked.offset is not None,
        "limit": asked.limit is not None,
        "tail": asked.tail is not None,
        "grep": asked.grep is not None,
        "type": asked.type is not None,
        "afterSeq": asked.after_seq is not None,
        "waitSeconds": asked.wait_s > 0,
    }
    if given["tail"] and (given["offset"] or given["limit"]):
        other = "offset" if given["offset"] else "limit"
        raise _wrong("tail", f"and {other} exclude each other: tail counts lines from the end")
    if asked.wait_s and asked.after_seq is None:
        raise _wrong("waitSeconds", "needs afterSeq: the nextSeq of the answer before")
    if asked.summary:
        for name, is_given in given.items():
            if is_given:
                raise _wrong(name, "and summary exclude each other; since and attempt go with it")


def types_in(text: str | None) -> tuple[LineType, ...]:
    """One type, or several with commas between them; none = all.

    Raises:
        UsageError: Lists the types, with the nearest.
    """
    if text is None:
        return ()
    words = dict.fromkeys(word.strip() for word in text.split(","))
    return tuple(LineType(one_of("type", word, list(LineType))) for word in words)


def _wrong(field: str, what: str) -> UsageError:
    return UsageError(f"{field} {what}", details={"field": field})


# -- answering ----------------------------------------------------------------------------------


async def log_page(
    services: Services, run: Run, asked: Asked, *, bytes_max: int = ANSWER_BYTES_MAX
) -> wire.LogPage:
    """The lines that are wanted, as HTTP, MCP and the supervisor socket answer them.

    Their texts together have at most ``bytes_max`` bytes; the page is shorter when they have more.

    Raises:
        UsageError: A parameter is wrong, ``grep`` too; it is named.
        NotFound: The run has no such attempt.
        StoreUnavailable: The transcript cannot be read.
    """
    query = query_for(asked, run, now_ms=services.now_ms())
    due = time.monotonic() + asked.wait_s
    with services.engine.recorder.readers.waiting(run.id) as written:
        while True:
            written.clear()
            run = await services.engine.queries.run(run.id)
            # Looked at before the lines are read: what a run wrote before it ended is then in them.
            is_over = _is_over(run, query)
            page = await services.engine.recorder.read(run, query)
            left_s = due - time.monotonic()
            if page.lines or is_over or left_s <= 0:
                return _answer(run, query, page, is_over=is_over, bytes_max=bytes_max)
            try:
                await asyncio.wait_for(written.wait(), left_s)
            except TimeoutError:
                continue  # one last look: the time is up
            await asyncio.sleep(min(LOOK_S, left_s))
            # Lines that did not match need not be searched again.
            query = replace(query, after_seq=max(page.next_seq, query.after_seq or 0))


def _is_over(run: Run, query: LogQuery) -> bool:
    """Whether no more lines can come that this query would find."""
    return run.is_settled or (query.attempt is not None and query.attempt < len(run.attempts))


def _answer(
    run: Run, query: LogQuery, page: LogPage, *, is_over: bool, bytes_max: int
) -> wire.LogPage:
    lines, skipped = _within(page.lines, bytes_max, keeps_newest=query.offset is None)
    hits = page.hits[skipped:] if query.offset is None else page.hits[: len(lines)]
    offset = page.offset + (skipped if query.offset is None else 0)
    is_last = offset + len(lines) >= page.total_lines
    # A page that was cut continues after its last line, not after the last line looked at.
    next_seq = page.next_seq if is_last or not lines else lines[-1].seq
    return made(
        wire.LogPage,
        page,
        run_id=run.id,
        label=run.resolved.label,
        returned_lines=len(lines),
        offset=offset,
        lines=lines,
        hits=hits,
        next_seq=next_seq,
        ended=is_over and is_last,
        note=None if run.times.erased_at_ms is None or lines else DELETED,
    )


def _within(
    lines: tuple[Line, ...], bytes_max: int, *, keeps_newest: bool
) -> tuple[tuple[Line, ...], int]:
    """As many lines as there is room for, at least one, and how many were left out."""
    room, kept = bytes_max, 0
    for each in reversed(lines) if keeps_newest else lines:
        room -= len(each.text.encode())
        if room < 0 and kept:
            break
        kept += 1
    found = lines[len(lines) - kept :] if keeps_newest else lines[:kept]
    return found, len(lines) - kept
