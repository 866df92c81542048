"""The digest of a run, from its transcript: who looks at it reads it, and who takes it over."""

from typing import Final, NamedTuple

from subagents.domain.run.run import Run
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import LineType
from subagents.domain.transcript.digest import digest, shortened
from subagents.domain.transcript.transcript_query import Line, LogQuery
from subagents.engine.records.recorder import Recorder

PAGE_LINES: Final = 2_000
PAGES_MAX: Final = 5
"""Pages of tools, errors and messages: the newest ten thousand say enough for forty lines."""
WORDS: Final = 5
SHOWN_TYPES: Final = (LineType.TOOL, LineType.ERROR, LineType.SYSTEM, LineType.USER)


class Digest(NamedTuple):
    """What a run did, in at most forty lines."""

    text: str
    left_out: int
    """Older lines that were not looked at."""
    next_seq: int
    """Behind the newest line that was."""


async def digest_of(recorder: Recorder, run: Run, where: LogQuery, *, now_ms: int) -> Digest:
    """Read the newest lines of a run's transcript.

    Args:
        recorder: Has it.
        run: Whose.
        where: Narrows what is looked at: since when, which attempt.
        now_ms: Now.

    Raises:
        StoreUnavailable: The transcript cannot be read.
    """
    lines, left_out, next_seq = await _newest_lines(recorder, run, where)
    words = await recorder.read(run, replace(where, types=(LineType.TEXT,), limit=WORDS))
    text = digest(
        run,
        lines,
        words=shortened(words.lines),
        watch=await recorder.watch_of(run),
        now_ms=now_ms,
        left_out=left_out,
    )
    return Digest(text, left_out, next_seq)


async def _newest_lines(
    recorder: Recorder, run: Run, where: LogQuery
) -> tuple[list[Line], int, int]:
    """The newest lines that tell what happened, oldest first; how many older; the cursor behind."""
    query = replace(where, types=SHOWN_TYPES, limit=PAGE_LINES)
    newest = await recorder.read(run, query)
    if newest.total_lines <= PAGE_LINES:
        return shortened(newest.lines), 0, newest.next_seq
    left_out = max(newest.total_lines - PAGE_LINES * PAGES_MAX, 0)
    query = replace(query, offset=left_out)
    found: list[Line] = []
    next_seq = 0
    for _ in range(PAGES_MAX):
        page = await recorder.read(run, query)
        found += shortened(page.lines)
        next_seq = page.next_seq
        if len(page.lines) < PAGE_LINES:
            break
        # By number, not by place: the oldest lines may go while this reads.
        query = replace(query, offset=0, after_seq=page.lines[-1].seq)
    return found, left_out, next_seq
