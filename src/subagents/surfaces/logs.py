"""Pages of what an attempt wrote: by byte offset, or its last lines.

Source: 5-surfaces §4; 4-observability §2.
"""

import codecs
from typing import Final

from subagents.domain.model import Run
from subagents.errors import NotFound, UsageError
from subagents.surfaces import documents
from subagents.surfaces.call import OutputPage, Services
from subagents.surfaces.decoding import one_of

LOG_BYTES: Final = 64 * 1024
LOG_BYTES_MAX: Final = 1024 * 1024
LOG_TAIL_LINES_MAX: Final = 10_000
STREAMS: Final = ("out", "err")
ATTEMPT_MAX: Final = 10_000


async def log_page(
    used: Services,
    run: Run,
    *,
    stream: str = "out",
    attempt: int | None = None,
    tail: int | None = None,
    offset: int | None = None,
    limit: int | None = None,
) -> documents.Document:
    """Part of what one attempt wrote.

    Args:
        used: The daemon's own.
        run: Whose.
        stream: ``out`` or ``err``.
        attempt: Its number; None = the newest.
        tail: So many last lines; excludes ``offset``.
        offset: First byte; None = 0.
        limit: Most bytes; None = 64 KiB, with ``tail`` 1 MiB.

    Raises:
        UsageError: An unknown stream, or both ``tail`` and ``offset``.
        NotFound: The run has no such attempt.
    """
    one_of("stream", stream, STREAMS)
    newest = len(run.attempts)
    if newest == 0:
        return _document(run, None, stream, OutputPage(data=b"", offset=0, total_bytes=0))
    number = newest if attempt is None else attempt
    if number > newest:
        raise NotFound(f"run {run.id} has {newest} attempts, no attempt {number}")
    if tail is not None and offset is not None:
        raise UsageError("tail and offset exclude each other: tail counts lines from the end")
    if tail is None:
        start = offset or 0
        most = limit or LOG_BYTES
        page = await used.off_loop(lambda: used.read_output(run, number, stream, start, most))
        return _document(run, number, stream, page)
    end = await used.off_loop(lambda: used.read_output(run, number, stream, 0, 0))
    most = limit or LOG_BYTES_MAX
    begin = max(end.total_bytes - most, 0)
    page = await used.off_loop(lambda: used.read_output(run, number, stream, begin, most))
    return _document(run, number, stream, _last_lines(page, tail))


def _last_lines(page: OutputPage, lines: int) -> OutputPage:
    kept = b"".join(page.data.splitlines(keepends=True)[-lines:]) if lines else b""
    offset = page.offset + len(page.data) - len(kept)
    return OutputPage(data=kept, offset=offset, total_bytes=page.total_bytes)


def _document(run: Run, number: int | None, stream: str, page: OutputPage) -> documents.Document:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(page.data)
    # Half a character at the end is left for the next page, but the last page has no next.
    half, _ = decoder.getstate()
    if half and (page.offset + len(page.data) >= page.total_bytes or len(half) == len(page.data)):
        text += decoder.decode(b"", final=True)
        half = b""
    return {
        "runId": run.id,
        "attempt": number,
        "stream": stream,
        "text": text,
        "offset": page.offset,
        "nextOffset": page.offset + len(page.data) - len(half),
        "totalBytes": page.total_bytes,
    }
