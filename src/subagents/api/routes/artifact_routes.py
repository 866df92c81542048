"""``/v1/runs/{sel}/artifacts``: what a run left, for whoever may see the run."""

import re
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from subagents.api.answers import run_building
from subagents.api.calls.call import AnswerTooLarge, RangeNotSatisfiable, answer, on_run, query_of
from subagents.api.calls.operation import Operation, routes
from subagents.api.wire.log_answers import ArtifactFile, ArtifactPage
from subagents.api.wire.parameters import word
from subagents.api.wire.run_answers import ResultFile
from subagents.api.wire.wire_struct import made
from subagents.errors import UsageError

BYTES_MAX: Final = 16 * 1024 * 1024
"""The most that one answer has; a longer file is read range by range."""
OCTETS: Final = "application/octet-stream"
CONTENT: Final = (word("path", "As `artifacts` has it, or one that a pattern there matches."),)
_RANGE: Final = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


async def artifacts(request: Request) -> Response:
    """GET /v1/runs/{sel}/artifacts: the files that its contract and its report name."""
    services, _, run = await on_run(request)
    query_of(request, ())
    as_of = services.as_of()
    files = services.engine.artifacts
    known = {each.path: each for each in run_building.artifacts(run)}
    found = []
    for each in await files.named(run):
        said = known.get(each.path, ResultFile(path=each.path))
        found.append(made(ArtifactFile, said, bytes=each.size, problem=each.problem))
    return answer(
        ArtifactPage(**as_of, run_id=run.id, artifacts=found, patterns=list(files.patterns(run)))
    )


async def content(request: Request) -> Response:
    """GET /v1/runs/{sel}/artifacts/content: one of these files, or a range of its bytes.

    Always as a download of no type: what a worker wrote is never shown by a browser by itself.
    """
    query = query_of(request, CONTENT)
    if not query.get("path"):
        raise UsageError("name the file", details={"field": "path"})
    services, _, run = await on_run(request)
    path = query["path"]
    found = await services.engine.artifacts.open(run, path)
    try:
        begin, end, is_part = range_of(request.headers.get("range"), found.size)
    except Exception:
        found.close()  # else ``pages`` does, once they are sent
        raise
    headers = {
        "content-length": str(end - begin),
        "content-disposition": f"attachment; filename*=UTF-8''{quote(path.rsplit('/', 1)[-1])}",
        "x-content-type-options": "nosniff",
        "accept-ranges": "bytes",
        "cache-control": "no-store",
        # Should a browser show it all the same, nothing in it can run.
        "content-security-policy": "sandbox; default-src 'none'",
    }
    if is_part:
        headers["content-range"] = f"bytes {begin}-{end - 1}/{found.size}"
    return StreamingResponse(
        found.pages(begin, end - begin),
        status_code=206 if is_part else 200,
        media_type=OCTETS,
        headers=headers,
    )


def range_of(header: str | None, size: int) -> tuple[int, int, bool]:
    """Where the wanted bytes begin and end, and whether they are only a part.

    Several ranges at once are none, as RFC 9110 allows: the whole is the answer.

    Raises:
        AnswerTooLarge: They are more than ``BYTES_MAX``.
        RangeNotSatisfiable: There are no such bytes.
    """
    asked = None if header is None else _RANGE.fullmatch(header.replace(" ", ""))
    if asked is None or asked.groups() == ("", ""):
        begin, end, is_part = 0, size, False
    else:
        first, last = asked.groups()
        begin = int(first) if first else max(size - int(last), 0)
        end = min(int(last) + 1, size) if first and last else size
        is_part = True
        if begin >= end:
            raise RangeNotSatisfiable(f"the file has {size:,} bytes", details={"bytes": size})
    if end - begin > BYTES_MAX:
        raise AnswerTooLarge(
            f"{end - begin:,} bytes are more than {BYTES_MAX:,}",
            hint=f"read it range by range: -H 'Range: bytes=0-{BYTES_MAX - 1}'",
            details={"bytes": size, "max": BYTES_MAX},
        )
    return begin, end, is_part


OPERATIONS: Final = {
    ("GET", "/v1/runs/{sel}/artifacts"): Operation(artifacts, answers=(ArtifactPage,)),
    ("GET", "/v1/runs/{sel}/artifacts/content"): Operation(
        content,
        query=CONTENT,
        headers=("Range",),
        media=(OCTETS,),
        also=((206, "The range of bytes that was asked for."),),
    ),
}
ROUTES: Final = routes(OPERATIONS)
